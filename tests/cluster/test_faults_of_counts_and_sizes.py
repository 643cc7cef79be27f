"""Refusals and a lost right while counts and sizes are written, on a real API server: what owners stated comes back."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from forecaster.actuators.resize.pods import LABEL as RESIZED
from forecaster.actuators.scale.scales import LABEL as SCALED
from forecaster.app.effects import released_objects
from forecaster.domain.decision import Reason, Resize
from forecaster.domain.workload import ContainerSize, Resources
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from tests.support.api_objects import own_marks
from tests.support.control_plane.acting import ActingReplica, apply_components
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.faulty_api_server import FaultyApiServer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.domain.report import Effected
    from forecaster.sources.live import LiveCluster
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane
    from tests.support.http_server import HttpRequest

LARGE = Resources(cpu_request=0.3, memory_request=2.0**27)
SIZE = Resize(LARGE, Reason.SIZED, "sized", (ContainerSize("app", Resources(), LARGE, None, None, ""),))
BOUNDS = {"min_replicas": 1, "max_replicas": 20}


class Mode(NamedTuple):
    """The part that a mode writes, and the objects on which it writes it."""

    part: str
    settings: dict[str, Any]
    objects: str
    step: str
    """Subresource of the second of the mode's two requests: the owner's value is written down before."""
    role: str
    mark: str

    def cycle(self, replica: ActingReplica, namespace: str) -> Effected:
        return replica.cycle(namespace, 5, sizes=SIZE)[self.part]


COUNTS = Mode(
    "scale",
    {"scale": {"enabled": True}, "policy": {"mode": "scale", "horizontal": BOUNDS}},
    "/deployments/",
    "/scale",
    "forecaster-scale",
    SCALED,
)
SIZES = Mode(
    "resize",
    {"resize": {"enabled": True}, "policy": {"vertical": {"mode": "in-place"}}},
    "/pods/",
    "/resize",
    "forecaster-vertical",
    RESIZED,
)
MODES = pytest.mark.parametrize("mode", [COUNTS, SIZES], ids=["scale", "in-place"])


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and both components."""
    apply_components(control_plane, tmp_path_factory.mktemp("faults"), "scale", "vertical")
    for resource in ("deployments.apps", "pods"):
        control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", resource)
    return control_plane


@pytest.fixture
def faulty(plane: ControlPlane, tmp_path: Path) -> Iterator[FaultyApiServer]:
    with FaultyApiServer(plane, tmp_path, "forecaster", NAMESPACE) as running:
        yield running


@pytest.fixture
def behind(plane: ControlPlane, live: LiveCluster, faulty: FaultyApiServer, mode: Mode) -> Iterator[ActingReplica]:
    """A leader that reaches the API server through the proxy alone, but for what it watches."""
    plane.api.merge("Lease", "forecaster", {"spec": {"holderIdentity": None}}, NAMESPACE)
    with ExitStack() as parts:
        rights = {"kubeconfig": str(faulty.kubeconfig)}
        replica = ActingReplica(plane, parts, {**mode.settings, "acting": rights, "kubernetes": rights}, live)
        replica.until_leading()
        yield replica


@pytest.fixture
def web(plane: ControlPlane, live: LiveCluster, namespace: str) -> str:
    """A namespace with a Deployment of one pod, older than a second: field managers' times are whole ones."""
    plane.api.create(deployment("web", 1), namespace)
    created = plane.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")["metadata"]["creationTimestamp"]
    wait_until(lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" > created, goal="the next second")
    wait_until(lambda: replicas(plane.api, "web", namespace).ready == 1, goal="a pod")
    wait_until(
        lambda: any(key[0] == namespace and pod.ready for key, pod in live.pods.objects.items()), goal="its watch"
    )
    return namespace


def value(plane: ControlPlane, namespace: str) -> tuple[int, str]:
    """The count of the Deployment, and what its first pod requests."""
    pod = plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"][0]
    requested = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return replicas(plane.api, "web", namespace).desired, str(requested)


OWN = (1, "100m")
WRITTEN = {"scale": (5, "100m"), "resize": (1, "300m")}


def marks(plane: ControlPlane, namespace: str) -> set[str]:
    """Labels and annotations of ours on the Deployment, its ReplicaSets and pods."""
    objects: list[Document] = [plane.api.read("Deployment", "web", namespace)]
    for path in (f"/apis/apps/v1/namespaces/{namespace}/replicasets", f"/api/v1/namespaces/{namespace}/pods"):
        objects += plane.api.get(path)["items"]
    return own_marks(*objects)


def until_written(plane: ControlPlane, replica: ActingReplica, mode: Mode, namespace: str) -> None:
    def done() -> bool:
        mode.cycle(replica, namespace)
        return value(plane, namespace) == WRITTEN[mode.part]

    wait_until(done, goal="the write")
    assert mode.mark in marks(plane, namespace)


def give_back(plane: ControlPlane, replica: ActingReplica, namespace: str) -> None:
    """Run `forecaster release`, after which the cluster is as before."""
    client = ApiClient(client_config_source(plane.account("forecaster", NAMESPACE)))
    now, options = datetime.now(UTC), {"expired": False, "dry_run": False, "at_once": True}
    lines = [*released_objects(client, replica.settings, now, **options, chosen=lambda space, _: space == namespace)]
    client.close()
    assert [line.done for line in lines] == [True]
    wait_until(lambda: value(plane, namespace) == OWN, goal="the owner's value")
    assert marks(plane, namespace) == set()


@MODES
@pytest.mark.parametrize(("status", "only_second"), [(429, False), (429, True), (503, True), (409, False)], ids=str)
def test_a_storm_of_refusals_changes_nothing_and_is_over_with_the_storm(
    plane: ControlPlane,
    faulty: FaultyApiServer,
    behind: ActingReplica,
    web: str,
    mode: Mode,
    status: int,
    *,
    only_second: bool,
) -> None:
    def refused(request: HttpRequest) -> int:
        path = request.path.partition("?")[0]
        concerned = mode.objects in path and (path.endswith(mode.step) or not only_second)
        return status if request.method == "PATCH" and concerned else 0

    faulty.fault = refused
    effect = mode.cycle(behind, web)
    assert not [key for key in effect.writes if key[1] == "written"]
    assert any(str(status) in line for line in effect.failures), effect
    assert value(plane, web) == OWN
    faulty.mended()
    until_written(plane, behind, mode, web)
    give_back(plane, behind, web)


@MODES
def test_a_right_that_is_removed_at_run_time_is_named_and_loses_no_owners_value(
    plane: ControlPlane, behind: ActingReplica, web: str, mode: Mode
) -> None:
    binding = plane.api.read("ClusterRoleBinding", mode.role)
    plane.api.delete("ClusterRoleBinding", mode.role)
    try:
        wait_until(lambda: any("403" in failure for failure in mode.cycle(behind, web).failures), goal="the refusal")
    finally:
        del binding["metadata"]["resourceVersion"]
        plane.api.create(binding)
    until_written(plane, behind, mode, web)
    give_back(plane, behind, web)


@MODES
def test_a_leader_that_stood_still_between_two_requests_does_not_send_the_second(
    behind: ActingReplica, faulty: FaultyApiServer, web: str, mode: Mode
) -> None:
    """A node that is suspended for longer than a Lease lasts wakes up while another replica leads."""
    sent: list[str] = []

    def another_leads(request: HttpRequest) -> None:
        if request.method == "PATCH" and mode.objects in request.path:
            sent.append(request.path)
            behind.actuators.election.release()

    faulty.before = another_leads
    effected = mode.cycle(behind, web)
    assert (len(sent), mode.step in sent[0]) == (1, False)
    assert "not sent, this replica leads no longer" in effected.failures[0]
