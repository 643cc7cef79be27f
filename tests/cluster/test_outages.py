"""A cluster's outages, clocks, tokens and owners while counts are written: no owner's value is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.floor.autoscalers import BEFORE
from forecaster.actuators.scale.scales import BEFORE as COUNT_BEFORE
from forecaster.kube.lease import VALID_SECONDS, WRITE_SECONDS
from tests.support.control_plane.acting import ActingReplica, apply_components, events
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.audit import audited
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.support.control_plane.plane import ControlPlane

HPA = "HorizontalPodAutoscaler"
SETTINGS = {"floor": {"enabled": True}, "scale": {"enabled": True}}
FLOOR = {**SETTINGS, "policy": {"mode": "floor"}}
SCALE = {**SETTINGS, "policy": {"mode": "scale", "horizontal": {"min_replicas": 1, "max_replicas": 20}}}
OUTAGE = VALID_SECONDS + 2.0
"""Seconds of an outage, longer than a Lease lasts."""
SKEW = timedelta(minutes=6)
"""Difference between two clocks; less than half of what a floor lasts, as the docs ask for."""


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the components `floor` and `scale`."""
    apply_components(control_plane, tmp_path_factory.mktemp("outages"), "floor", "scale")
    for resource in ("horizontalpodautoscalers.autoscaling", "deployments.apps"):
        control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", resource)
    return control_plane


@pytest.fixture(autouse=True)
def free(plane: ControlPlane) -> None:
    """A Lease without a holder."""
    plane.api.merge("Lease", "forecaster", {"spec": {"holderIdentity": None}}, NAMESPACE)


@pytest.fixture
def web(plane: ControlPlane, namespace: str) -> str:
    """A namespace with a Deployment of two pods."""
    plane.api.create(deployment("web", 2), namespace)
    wait_until(lambda: replicas(plane.api, "web", namespace).ready == 2, goal="two pods")
    return namespace


@pytest.fixture
def with_hpa(plane: ControlPlane, web: str) -> str:
    plane.api.create(external_hpa("web", target="1", most=10), web)
    wait_until(lambda: plane.api.condition(HPA, "web", "AbleToScale", web) != {}, goal="the HPA")
    return web


@pytest.fixture
def scaling(plane: ControlPlane) -> Iterator[ActingReplica]:
    with ExitStack() as parts:
        yield leader(plane, parts, SCALE)


def leader(plane: ControlPlane, parts: ExitStack, settings: dict[str, object]) -> ActingReplica:
    replica = ActingReplica(plane, parts, settings)
    replica.until_leading()
    return replica


def minimum(plane: ControlPlane, namespace: str) -> int:
    return int(plane.api.read(HPA, "web", namespace)["spec"]["minReplicas"])


def floors(plane: ControlPlane, namespace: str) -> list[int | None]:
    """Minima that were written to HPAs, in their order."""
    written = audited(plane.folder, "horizontalpodautoscalers", namespace)
    return [write.min_replicas for write in written if write.status == 200 and write.min_replicas]


OUTAGES: dict[str, Callable[[ControlPlane], AbstractContextManager[None]]] = {
    "etcd is away": lambda plane: plane.programs.away("etcd"),
    "the API server hangs": lambda plane: plane.programs.hanging("kube-apiserver"),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_an_outage_that_is_longer_than_the_lease(
    plane: ControlPlane, with_hpa: str, outage: Callable[[ControlPlane], AbstractContextManager[None]]
) -> None:
    """An outage ends the lead of one replica and begins none of the other; then one of them goes on where it was."""
    with ExitStack() as parts:
        first = leader(plane, parts, FLOOR)
        second = ActingReplica(plane, parts, FLOOR)
        assert first.cycle(with_hpa, 4)["floor"].writes["raise", "written"] == 1
        with outage(plane):
            cut = time.monotonic()
            wait_until(lambda: not first.actuators.election.leading(), goal="the end of the lead")
            assert time.monotonic() - cut <= WRITE_SECONDS + 1.0
            effect = first.cycle(with_hpa, 6)["floor"]
            assert effect.writes == {}
            assert effect.failures
            wait_until(lambda: time.monotonic() > cut + OUTAGE, goal="the end of the Lease")
            assert first.actuators.election.fault
            assert not second.actuators.election.leading()
        plane.until_answering()
        both = (first, second)
        wait_until(lambda: any(replica.actuators.election.leading() for replica in both), goal="the next leader")
        assert floors(plane, with_hpa) == [4]
        (leading,) = (replica for replica in both if replica.actuators.election.leading())

        def raised() -> bool:
            """An API server whose store was away answers 429 to lists for a moment."""
            return leading.cycle(with_hpa, 5)["floor"].writes["raise", "written"] == 1

        wait_until(raised, goal="the next floor")
    assert floors(plane, with_hpa) == [4, 5]
    assert plane.api.read(HPA, "web", with_hpa)["metadata"]["annotations"][BEFORE] == "1"


def test_a_token_that_ends_is_said_until_there_is_another(plane: ControlPlane, with_hpa: str, tmp_path: Path) -> None:
    """The token is bound to a Secret that is deleted; a kubelet puts another one into its place."""
    secret, account = "bound-to", plane.account("forecaster", NAMESPACE)
    plane.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}}, NAMESPACE)
    bound = ("--bound-object-kind=Secret", f"--bound-object-name={secret}")
    document, rights = json.loads(account.read_text()), tmp_path / "rights"
    document["users"][0]["user"]["token"] = plane.kubectl(
        "create", "token", "forecaster", f"--namespace={NAMESPACE}", *bound
    ).strip()
    rights.write_text(json.dumps(document))
    with ExitStack() as parts:
        replica = leader(plane, parts, {**FLOOR, "acting": {"kubeconfig": str(rights)}})
        replica.cycle(with_hpa, 4)
        plane.api.delete("Secret", secret, NAMESPACE)

        def refused() -> bool:
            return any("401" in line for line in replica.cycle(with_hpa, 4)["floor"].failures)

        wait_until(refused, goal="the refusal")  # the API server believes a token for ten seconds
        wait_until(lambda: not replica.actuators.election.leading(), goal="the end of the lead")
        assert "401" in replica.actuators.election.fault
        assert replica.cycle(with_hpa, 6)["floor"].writes == {}
        account.replace(rights)
        replica.until_leading()

        def raised() -> bool:
            return bool(replica.cycle(with_hpa, 5)["floor"].writes["raise", "written"])

        wait_until(raised, goal="the other token in all clients")
    assert floors(plane, with_hpa) == [4, 5]


def test_clocks_that_are_minutes_apart_end_no_floor(plane: ControlPlane, with_hpa: str) -> None:
    with ExitStack() as parts:
        leader(plane, parts, FLOOR).cycle(with_hpa, 4)
    with ExitStack() as parts:  # the next leader's clock is ahead
        ahead = ActingReplica(plane, parts, FLOOR)
        ahead.actuators.election.clock = lambda: datetime.now(UTC) + SKEW
        ahead.until_leading()
        effect = ahead.cycle(with_hpa, None, at=datetime.now(UTC) + SKEW)["floor"]
        assert effect.writes.keys() <= {("renew", "written")}
    assert released_where_expired(plane) == ""
    with ExitStack() as parts:  # and that of the one after it is behind
        behind = ActingReplica(plane, parts, FLOOR)
        behind.actuators.election.clock = lambda: datetime.now(UTC) - SKEW
        behind.until_leading()
        assert behind.cycle(with_hpa, 5, at=datetime.now(UTC) - SKEW)["floor"].writes["raise", "written"] == 1
    assert released_where_expired(plane) == ""
    assert minimum(plane, with_hpa) == 5


def released_where_expired(plane: ControlPlane) -> str:
    """Output of the CronJob's command now, by the clock of a third machine."""
    rights = f"--kubeconfig={plane.account('forecaster-release', NAMESPACE)}"
    command = [sys.executable, "-m", "forecaster", "release", "--expired", rights]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


def test_a_leader_whose_clock_is_ahead_lowers_no_count_that_it_has_not_looked_at_for_as_long(
    plane: ControlPlane, web: str
) -> None:
    with ExitStack() as parts:
        leader(plane, parts, SCALE).cycle(web, 6)
    with ExitStack() as parts:
        ahead = leader(plane, parts, SCALE)
        assert ahead.cycle(web, 3, at=datetime.now(UTC) + SKEW)["scale"].writes == {}
        assert ahead.cycle(web, 3, at=datetime.now(UTC))["scale"].writes == {}  # its clock was set right
    assert replicas(plane.api, "web", web).desired == 6


def test_a_paused_deployment_is_scaled_and_stays_paused(plane: ControlPlane, scaling: ActingReplica, web: str) -> None:
    """A pause stops roll-outs; its pods carry the load as ever."""
    plane.kubectl("rollout", "pause", "deployment/web", f"--namespace={web}")
    assert scaling.cycle(web, 6)["scale"].writes == {("raise", "written"): 1}
    wait_until(lambda: replicas(plane.api, "web", web).ready == 6, goal="six pods")
    document = plane.api.read("Deployment", "web", web)
    assert document["spec"]["paused"] is True
    assert document["metadata"]["labels"][COUNT_BEFORE] == "2"


def test_a_deployment_that_is_scaled_to_zero_meanwhile_stays_there(
    plane: ControlPlane, scaling: ActingReplica, web: str
) -> None:
    scaling.cycle(web, 6)
    plane.kubectl("scale", "deployment/web", "--replicas=0", f"--namespace={web}")
    wait_until(lambda: replicas(plane.api, "web", web).ready == 0, goal="what its controller writes, too")
    assert scaling.cycle(web, 6)["scale"].writes == {("yield", "written"): 1}
    assert scaling.cycle(web, 8)["scale"].writes == {}
    assert ("ScaleBackedOff", "another client wrote replicas 0; left alone for 1h") in events(plane.api, web)
    rights = f"--kubeconfig={plane.account('forecaster', NAMESPACE)}"
    released = [sys.executable, "-m", "forecaster", "release", f"{web}/web", rights]
    subprocess.run(released, capture_output=True, check=True, timeout=PATIENCE)
    assert replicas(plane.api, "web", web).desired == 0


def test_a_deployment_that_is_renamed_begins_with_its_owners_count(
    plane: ControlPlane, scaling: ActingReplica, web: str
) -> None:
    scaling.cycle(web, 6)
    plane.kubectl("delete", "deployment", "web", f"--namespace={web}")
    plane.api.create(deployment("shop", 3), web)
    effect = scaling.cycle(web, 8)["scale"]
    assert (effect.writes, effect.failures) == ({}, ())
    assert not plane.api.has("Deployment", "web", web)
    assert replicas(plane.api, "shop", web).desired == 3
    assert scaling.cycle(web, 5, name="shop")["scale"].writes == {("raise", "written"): 1}
    assert plane.api.read("Deployment", "shop", web)["metadata"]["labels"][COUNT_BEFORE] == "3"


def test_an_hpa_whose_workload_is_renamed_keeps_no_floor_of_it(plane: ControlPlane, with_hpa: str) -> None:
    """Its target is another one: what was forecast of the old name says nothing of the new one."""
    with ExitStack() as parts:
        replica = leader(plane, parts, FLOOR)
        replica.cycle(with_hpa, 4)
        plane.kubectl("delete", "deployment", "web", f"--namespace={with_hpa}")
        plane.api.create(deployment("shop", 2), with_hpa)
        plane.api.merge(HPA, "web", {"spec": {"scaleTargetRef": {"name": "shop"}}}, with_hpa)
        effect = replica.cycle(with_hpa, 6)["floor"]
        assert ("raise", "written") not in effect.writes
        assert minimum(plane, with_hpa) <= 4
        assert replicas(plane.api, "shop", with_hpa).desired <= 4
        assert replica.cycle(with_hpa, 5, name="shop")["floor"].writes["raise", "written"] == 1
    assert plane.api.read(HPA, "web", with_hpa)["metadata"]["annotations"][BEFORE] == "1"


def test_a_maximum_below_the_minimum_is_refused_to_its_owner(plane: ControlPlane, web: str) -> None:
    """The API server refuses an HPA about whose floor nothing could be decided."""
    manifest = external_hpa("web", target="1", most=3)
    manifest["spec"]["minReplicas"] = 5
    with pytest.raises(RefusedError, match="must be greater than or equal to `minReplicas`"):
        plane.api.create(manifest, web)
