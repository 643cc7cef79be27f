"""Faults while floors are written, on a real API server: no owner's value is lost, no write is made twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.floor.autoscalers import BEFORE, MODE
from forecaster.kube.lease import WRITE_SECONDS
from tests.support.control_plane.acting import ActingReplica, apply_components
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.audit import audited
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.dying_replica import STEPS
from tests.support.faulty_api_server import FaultyApiServer
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.domain.report import Effected
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.audit import AuditedWrite
    from tests.support.control_plane.plane import ControlPlane
    from tests.support.http_server import HttpRequest

HPA = "HorizontalPodAutoscaler"
FLOOR = {"floor": {"enabled": True}, "policy": {"mode": "floor"}}


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the component `floor`."""
    apply_components(control_plane, tmp_path_factory.mktemp("faults"), "floor")
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
    return control_plane


@pytest.fixture(autouse=True)
def free(plane: ControlPlane) -> None:
    """A Lease without a holder: waiting for its end is the subject of another file."""
    plane.api.merge("Lease", "forecaster", {"spec": {"holderIdentity": None}}, NAMESPACE)


@pytest.fixture
def web(plane: ControlPlane, namespace: str) -> str:
    """A namespace with a Deployment of one pod, and its HPA."""
    plane.api.create(deployment("web", 1), namespace)
    plane.api.create(external_hpa("web", target="1", most=10), namespace)
    return namespace


@pytest.fixture
def faulty(plane: ControlPlane, tmp_path: Path) -> Iterator[FaultyApiServer]:
    with FaultyApiServer(plane, tmp_path, "forecaster", NAMESPACE) as running:
        yield running


@pytest.fixture
def behind(plane: ControlPlane, faulty: FaultyApiServer) -> Iterator[ActingReplica]:
    """A leader that reaches the API server through the proxy alone."""
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, {**FLOOR, "acting": {"kubeconfig": str(faulty.kubeconfig)}})
        replica.until_leading()
        yield replica


def floor(replica: ActingReplica, namespace: str, count: int | None) -> Effected:
    """Run a cycle and return its effect on HPAs."""
    return replica.cycle(namespace, count)["floor"]


def owners_part(plane: ControlPlane, namespace: str) -> Document:
    """Return the parts of the HPA that are its owner's."""
    hpa = plane.api.read(HPA, "web", namespace)
    return {"spec": hpa["spec"], "annotations": hpa["metadata"].get("annotations")}


def written(plane: ControlPlane, namespace: str) -> list[AuditedWrite]:
    """Writes that were carried out."""
    return [write for write in audited(plane.folder, "horizontalpodautoscalers", namespace) if write.status == 200]


def minimum(plane: ControlPlane, namespace: str) -> int:
    return int(plane.api.read(HPA, "web", namespace)["spec"]["minReplicas"])


@pytest.mark.parametrize("step", STEPS)
def test_a_leader_killed_within_a_write(plane: ControlPlane, web: str, step: str) -> None:
    """The next one finds what was done, does the rest, and in the end the HPA is its owner's."""
    before, restoring = owners_part(plane, web), step.startswith("between")
    with ExitStack() as parts:
        if restoring:
            replica = ActingReplica(plane, parts, FLOOR)
            replica.until_leading()
            floor(replica, web, 5)
    mode = "publish" if restoring else "floor"
    account = str(plane.account("forecaster", NAMESPACE))
    command = [sys.executable, "-m", "tests.support.dying_replica", account, web, "5", mode, step]
    died = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    assert died.returncode == -signal.SIGKILL, died.stderr
    plane.api.merge("Lease", "forecaster", {"spec": {"holderIdentity": None}}, NAMESPACE)
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, {**FLOOR, "policy": {"mode": mode}})
        replica.until_leading()
        floor(replica, web, 5)
        if not restoring:
            assert minimum(plane, web) == 5
            assert plane.api.read(HPA, "web", web)["metadata"]["annotations"][BEFORE] == "1"
            plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: "publish"}}}, web)
            floor(replica, web, 5)
            plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: None}}}, web)
    after = owners_part(plane, web)
    assert (after["spec"], after["annotations"] or None) == (before["spec"], before["annotations"] or None)
    counts = [write.min_replicas for write in written(plane, web) if write.min_replicas]
    assert counts == [5, 1]


STORMS = {
    "429 to writes": (429, "PATCH", "429"),
    "409 to writes": (409, "PATCH", "409"),
    "500 to writes": (500, "PATCH", "500"),
    "503 to everything about HPAs": (503, "", "503"),
    "410 to lists": (410, "GET", "410"),
    "403 to writes": (403, "PATCH", "403"),
}


@pytest.mark.parametrize(("status", "method", "reason"), STORMS.values(), ids=STORMS)
def test_a_storm_of_refusals_is_a_line_and_over_with_the_storm(
    plane: ControlPlane, faulty: FaultyApiServer, behind: ActingReplica, web: str, status: int, method: str, reason: str
) -> None:
    def refused(request: HttpRequest) -> int:
        return status if "horizontalpodautoscalers" in request.path and method in {"", request.method} else 0

    before = owners_part(plane, web)
    faulty.fault = refused
    for _ in range(3):
        effect = floor(behind, web, 5)
        assert effect.writes.get(("raise", "written"), 0) == 0
        assert any(reason in line for line in effect.failures), effect.failures
    assert faulty.refused <= 3 * 2  # each cycle asks once, and once more after a conflict
    assert owners_part(plane, web) == before
    faulty.mended()
    assert floor(behind, web, 5).writes["raise", "written"] == 1
    assert [write.min_replicas for write in written(plane, web)] == [5]


def test_an_answer_that_is_lost_is_no_second_write(
    plane: ControlPlane, faulty: FaultyApiServer, behind: ActingReplica, web: str
) -> None:
    """The write arrives, and its answer is a fault of what lies between."""
    passed: list[str] = []

    def lost(request: HttpRequest) -> int:
        if request.method != "PATCH" or "horizontalpodautoscalers" not in request.path or passed:
            return 0
        # Where the HPA controller wrote its status meanwhile, no write arrives.
        if faulty.passed_on(request).status != 200:
            return 0
        passed.append(request.path)
        return 504

    faulty.fault = lost
    assert floor(behind, web, 5).writes["raise", "failed"] == 1
    assert ("raise", "written") not in floor(behind, web, 5).writes
    assert [write.min_replicas for write in written(plane, web)] == [5]
    assert plane.api.read(HPA, "web", web)["metadata"]["annotations"][BEFORE] == "1"


def at_the_write(faulty: FaultyApiServer, happens: object) -> None:
    """Let something happen to the cluster just before the first write arrives."""

    def once(request: HttpRequest) -> None:
        if request.method == "PATCH" and "horizontalpodautoscalers" in request.path:
            faulty.before = lambda _: None
            happens()  # type: ignore[operator]

    faulty.before = once


def test_an_hpa_that_is_deleted_before_the_write_arrives_stays_deleted(
    plane: ControlPlane, faulty: FaultyApiServer, behind: ActingReplica, web: str
) -> None:
    """Server-side apply would make one: the uid that it names is not there any more."""
    at_the_write(faulty, lambda: plane.api.delete(HPA, "web", web))
    effect = floor(behind, web, 5)
    assert len(effect.failures) == 1
    assert not plane.api.has(HPA, "web", web)
    assert floor(behind, web, 5).failures == ()


def test_an_hpa_that_is_made_anew_before_the_write_arrives_keeps_its_own_minimum(
    plane: ControlPlane, faulty: FaultyApiServer, behind: ActingReplica, web: str
) -> None:
    def again() -> None:
        plane.api.delete(HPA, "web", web)
        manifest = external_hpa("web", target="1", most=10)
        manifest["spec"]["minReplicas"] = 3
        plane.api.create(manifest, web)

    at_the_write(faulty, again)
    assert floor(behind, web, 5).writes == {("raise", "conflict"): 1}
    assert minimum(plane, web) == 3
    floor(behind, web, 5)
    assert plane.api.read(HPA, "web", web)["metadata"]["annotations"][BEFORE] == "3"


def test_an_owner_who_lowers_the_maximum_under_the_floor_is_refused_by_the_api_server_and_a_floor_never_above_it(
    plane: ControlPlane, faulty: FaultyApiServer, behind: ActingReplica, web: str
) -> None:
    at_the_write(faulty, lambda: plane.api.merge(HPA, "web", {"spec": {"maxReplicas": 4}}, web))
    assert floor(behind, web, 5).writes == {("raise", "conflict"): 1}
    floor(behind, web, 5)
    assert minimum(plane, web) == 4
    with pytest.raises(RefusedError, match="422"):
        plane.api.merge(HPA, "web", {"spec": {"maxReplicas": 3}}, web)
    assert {write.status for write in audited(plane.folder, "horizontalpodautoscalers", web)} <= {200, 409}


def test_a_workload_scaled_to_zero_by_hand_stays_there_whatever_its_floor(plane: ControlPlane, web: str) -> None:
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, FLOOR)
        replica.until_leading()
        plane.api.merge("Deployment", "web", {"spec": {"replicas": 0}}, web)
        wait_until(
            lambda: plane.api.condition(HPA, "web", "ScalingActive", web).get("reason") == "ScalingDisabled",
            goal="the HPA to see it",
        )
        floor(replica, web, 5)
        looks = time.monotonic() + 2.5  # two syncs of the controller
        wait_until(lambda: time.monotonic() > looks, goal="two syncs")
        assert replicas(plane.api, "web", web).desired == 0
        assert floor(replica, web, None).failures == ()


def test_a_right_that_is_removed_at_run_time_is_named_and_missed_no_longer_than_it_is_away(
    plane: ControlPlane, web: str
) -> None:
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, FLOOR)
        replica.until_leading()
        binding = plane.api.read("ClusterRoleBinding", "forecaster-floor")
        plane.api.delete("ClusterRoleBinding", "forecaster-floor")
        try:
            wait_until(lambda: any("403" in failure for failure in floor(replica, web, 4).failures), goal="the refusal")
            lost = floor(replica, web, 5)
            assert any("is forbidden" in failure for failure in lost.failures), lost.failures
        finally:
            del binding["metadata"]["resourceVersion"]
            plane.api.create(binding)
        wait_until(lambda: not floor(replica, web, 5).failures, goal="the right")
        assert minimum(plane, web) == 5


def test_a_leader_that_is_cut_off_writes_nothing_after_its_renewal_deadline(
    plane: ControlPlane, faulty: FaultyApiServer, behind: ActingReplica, web: str
) -> None:
    floor(behind, web, 3)
    faulty.fault = lambda request: 503 if "leases" in request.path else 0
    cut = time.monotonic()
    wait_until(lambda: not behind.actuators.election.leading(), goal="the end of the lead")
    assert time.monotonic() - cut <= WRITE_SECONDS + 1.0
    effect = floor(behind, web, 8)
    assert effect.writes == {}
    assert any("503" in failure for failure in effect.failures)
    assert [write.min_replicas for write in written(plane, web)] == [3]
