"""Counts that are taken back on a real API server, by the accounts of deploy/components/floor and scale."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from forecaster.actuators.rollback import WATCH
from forecaster.app.effects import released_objects
from forecaster.domain.signal import Signal
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.sources.queries import ERROR_SIGNAL_PREFIX
from tests.support.control_plane.acting import ActingReplica, apply_components, events
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.fakes import FakeSource, Load
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forecaster.sources.live import LiveCluster
    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.plane import ControlPlane

HPA = "HorizontalPodAutoscaler"
HTTP = Signal(f"{ERROR_SIGNAL_PREFIX}http", unit="")
MEASURED = 4
"""Count that the measured demand of every decision here asks for."""


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the components that write counts."""
    apply_components(control_plane, tmp_path_factory.mktemp("rollback"), "floor", "scale")
    for resource in ("horizontalpodautoscalers.autoscaling", "deployments.apps"):
        control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", resource)
    return control_plane


@pytest.fixture(scope="module")
def errors() -> FakeSource:
    """Errors as Prometheus reports them; none until a test says so."""
    return FakeSource([])


@pytest.fixture(scope="module")
def leader(plane: ControlPlane, live: LiveCluster, errors: FakeSource) -> Iterator[ActingReplica]:
    """A replica in mode scale, and in mode floor for workloads called `api`."""
    with ExitStack() as parts:
        settings = {
            "floor": {"enabled": True},
            "scale": {"enabled": True},
            "queries": {"errors": {"http": "errors"}},
            "policy": {
                "mode": "scale",
                "horizontal": {"min_replicas": 1, "max_replicas": 20},
                "rollback": {"errors": "http", "limit": 0.05},
            },
            "overrides": [{"match": {"name": "api"}, "policy": {"mode": "floor"}}],
        }
        replica = ActingReplica(plane, parts, settings, live, source=errors)
        replica.until_leading()
        yield replica


def deployed(plane: ControlPlane, live: LiveCluster, name: str, namespace: str) -> WorkloadId:
    plane.kubectl("apply", f"--namespace={namespace}", "-f-", given=yaml.safe_dump(deployment(name, 2)))
    id_ = WorkloadId(namespace, "Deployment", name)
    wait_until(lambda: len(ready(live, id_)) == 2, goal="two pods that are watched")
    return id_


def ready(live: LiveCluster, id_: WorkloadId) -> Sequence[object]:
    return [pod for pod in (live.living({id_}) or {}).get(id_, ()) if pod.ready]


def stated(api: Api, kind: str, name: str, namespace: str) -> Document:
    """Return the parts of an object that are its owner's."""
    document = api.read(kind, name, namespace)
    noted = document["metadata"].get("annotations", {})
    annotations = {key: value for key, value in noted.items() if key != "deployment.kubernetes.io/revision"}
    return {"spec": document["spec"], "labels": document["metadata"].get("labels"), "annotations": annotations}


def crash(api: Api, namespace: str, pods: int) -> None:
    """Let so many pods have restarted twice by the next full second, since a kubelet states whole ones."""
    at = datetime.now(UTC) + timedelta(seconds=1)
    ended = {"terminated": {"exitCode": 1, "finishedAt": at.strftime("%Y-%m-%dT%H:%M:%SZ")}}
    for pod in api.get(f"/api/v1/namespaces/{namespace}/pods")["items"][:pods]:
        statuses = [{**each, "restartCount": 2, "lastState": ended} for each in pod["status"]["containerStatuses"]]
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status"
        body = {"status": {"containerStatuses": statuses}}
        answer = api.ask("PATCH", path, body, content_type="application/merge-patch+json")
        assert answer.is_success, answer.text


def released(plane: ControlPlane, leader: ActingReplica, namespace: str) -> list[bool]:
    client = ApiClient(client_config_source(plane.account("forecaster", NAMESPACE)))
    with ExitStack() as parts:
        parts.callback(client.close)
        now = datetime.now(UTC)
        mine = released_objects(
            client,
            leader.settings,
            now,
            expired=False,
            dry_run=False,
            at_once=True,
            chosen=lambda space, _: space == namespace,
        )
        return [line.done for line in mine]


def test_pods_that_restart_after_a_raise_bring_the_count_back_and_a_release_leaves_no_trace(
    plane: ControlPlane, leader: ActingReplica, live: LiveCluster, namespace: str
) -> None:
    web = deployed(plane, live, "web", namespace)
    before = stated(plane.api, "Deployment", "web", namespace)
    assert leader.cycle(namespace, 6)["scale"].writes == {("raise", "written"): 1}
    wait_until(lambda: len(ready(live, web)) == 6, goal="six pods that are watched")
    assert leader.cycle(namespace, 6)["scale"].writes == {}
    crash(plane.api, namespace, 3)
    wait_until(lambda: taken_back(leader, namespace, "scale"), goal="the count to be taken back")
    assert replicas(plane.api, "web", namespace).desired == MEASURED
    effect = leader.cycle(namespace, 8)["scale"]
    assert (effect.writes, effect.states["rolled-back"]) == ({}, 1)
    code, why = leader.actuators.refusal(web) or ("", "")
    assert (code, "3 pods restarted, 0 had before; held until" in why) == ("rolled-back", True)
    (text,) = [message for reason, message in events(plane.api, namespace) if reason == "ScaleRolledBack"]
    assert text.startswith("replicas 6 → 4: worse off since the last change: 3 pods restarted, 0 had before")
    assert released(plane, leader, namespace) == [True]
    wait_until(lambda: replicas(plane.api, "web", namespace) == (2, 2), goal="the owner's pods")
    assert stated(plane.api, "Deployment", "web", namespace) == before


def taken_back(leader: ActingReplica, namespace: str, mode: str, name: str = "web") -> bool:
    effect = leader.cycle(namespace, 6, name=name)[mode]
    return effect.writes == {("roll-back", "written"): 1}


def test_errors_after_a_floor_bring_the_owners_minimum_back_which_its_owner_may_apply_anew(
    plane: ControlPlane, leader: ActingReplica, live: LiveCluster, errors: FakeSource, namespace: str
) -> None:
    api = deployed(plane, live, "api", namespace)
    manifest = external_hpa("api", target="1", most=10)
    apply = ("apply", "--server-side", "--field-manager=owner", f"--namespace={namespace}", "-f-")
    plane.kubectl(*apply, given=yaml.safe_dump(manifest))
    wait_until(lambda: live.present(api) is not None and bool(live.scalers(api)), goal="the HPA that is watched")
    before = stated(plane.api, HPA, "api", namespace)
    errors.loads = [Load(Workload(api, 2, 2), {HTTP: lambda _: 0.01})]
    began = datetime.now(UTC)

    def cycle(minutes: int) -> dict[str, int]:
        at = began + timedelta(minutes=minutes)
        return {
            change: count
            for (change, _), count in leader.cycle(namespace, 4, at=at, name="api")["floor"].writes.items()
        }

    assert cycle(0) == {"raise": 1}
    wait_until(lambda: WATCH in live.scalers(api)[0][1].meta.annotations, goal="the floor that is watched")
    errors.loads = [Load(Workload(api, 2, 2), {HTTP: lambda _: 0.2})]
    assert cycle(1) == {"roll-back": 1}
    hpa = plane.api.read(HPA, "api", namespace)
    assert hpa["spec"]["minReplicas"] == 1
    owned = [entry["manager"] for entry in hpa["metadata"]["managedFields"] if "f:minReplicas" in str(entry)]
    assert "forecaster" not in owned
    (text,) = [message for reason, message in events(plane.api, namespace) if reason == "FloorRolledBack"]
    assert text.startswith(
        "minReplicas 4 → 1: worse off since the last change: errors are 0.2, above the limit of 0.05"
    )
    wait_until(lambda: live.scalers(api)[0][1].spec.bounds.min_replicas == 1, goal="the roll back that is watched")
    assert cycle(2) == {}
    plane.kubectl(*apply, given=yaml.safe_dump(manifest))
    errors.loads = []
    assert released(plane, leader, namespace) == [True]
    after = stated(plane.api, HPA, "api", namespace)
    assert {**after, "labels": after["labels"] or None} == {**before, "labels": before["labels"] or None}
