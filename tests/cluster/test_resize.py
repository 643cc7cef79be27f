"""Running pods are resized on a real API server, by the account of deploy/components/vertical.

The nodes are pretended: they never apply a size, nor say that they cannot. What they would say is put there by tests.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.resize.pods import BEFORE, LABEL
from forecaster.app.effects import released_objects
from forecaster.config.settings import parse
from forecaster.domain.decision import Reason, Resize
from forecaster.domain.signal import Signal
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import ContainerSize, Resources, Workload, WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.sources.queries import ERROR_SIGNAL_PREFIX
from forecaster.vertical.sizing.containers import ContainerSizing
from forecaster.vertical.sizing.pod import size
from tests.support import builders
from tests.support.control_plane.acting import ActingReplica, apply_components, events
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.fakes import FakeSource, Load
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.report import Effected
    from forecaster.sources.live import LiveCluster
    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.plane import ControlPlane

MIB = 2.0**20
TEMPLATE = Resources(cpu_request=0.1, memory_request=64 * MIB)


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the component `vertical`."""
    apply_components(control_plane, tmp_path_factory.mktemp("vertical"), "vertical")
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "pods")
    return control_plane


@pytest.fixture(scope="module")
def errors() -> FakeSource:
    """Errors as Prometheus reports them; none until a test says so."""
    return FakeSource([])


@pytest.fixture(scope="module")
def leader(plane: ControlPlane, live: LiveCluster, errors: FakeSource) -> Iterator[ActingReplica]:
    with ExitStack() as parts:
        settings = {
            "resize": {"enabled": True},
            "queries": {"errors": {"http": "errors"}},
            "policy": {"vertical": {"mode": "in-place"}, "rollback": {"errors": "http", "limit": 0.05}},
        }
        replica = ActingReplica(plane, parts, settings, live, source=errors)
        replica.until_leading()
        yield replica


@pytest.fixture
def web(plane: ControlPlane, live: LiveCluster, namespace: str) -> str:
    """A namespace with a Deployment of two pods."""
    plane.api.create(deployment("web", 2), namespace)
    wait_until(lambda: replicas(plane.api, "web", namespace).ready == 2, goal="two pods")
    wait_until(lambda: len(live_pods(live, namespace)) == 2, goal="two pods that are watched")
    return namespace


def live_pods(live: LiveCluster, namespace: str) -> list[str]:
    return [key[1] for key, pod in live.pods.objects.items() if key[0] == namespace and pod.ready]


def sized(cpu: float, mebibytes: float, limit: float | None = None) -> Resize:
    now = TEMPLATE
    new = Resources(cpu_request=cpu, memory_request=mebibytes * MIB, cpu_limit=limit)
    size = ContainerSize("app", now, new, None, None, "")
    return Resize(new, Reason.SIZED, "sized", (size,))


def pods(api: Api, namespace: str) -> list[Document]:
    return sorted(
        api.get(f"/api/v1/namespaces/{namespace}/pods")["items"], key=lambda pod: str(pod["metadata"]["name"])
    )


def requests(api: Api, namespace: str) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods(api, namespace))


def resized(api: Api, namespace: str) -> Document:
    (pod,) = (each for each in pods(api, namespace) if LABEL in each["metadata"].get("labels", {}))
    return pod


def node_reports(api: Api, namespace: str, *conditions: Document, restarts: int = 0) -> None:
    """Write the conditions that the node of the resized pod would report."""
    pod = resized(api, namespace)
    others = [condition for condition in pod["status"]["conditions"] if not condition["type"].startswith("PodResize")]
    statuses = [{**status, "restartCount": restarts} for status in pod["status"]["containerStatuses"]]
    body = {"status": {"conditions": others + list(conditions), "containerStatuses": statuses}}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status"
    answer = api.ask("PATCH", path, body, content_type="application/merge-patch+json")
    assert answer.is_success, answer.text


def pending(reason: str) -> Document:
    return {"type": "PodResizePending", "status": "True", "reason": reason, "message": "the node is full"}


def test_pods_get_their_size_one_after_the_other_without_a_restart(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    began, names = datetime.now(UTC), [pod["metadata"]["uid"] for pod in pods(plane.api, web)]
    assert leader.cycle(web, 2, at=began, sizes=sized(0.3, 128))["resize"].writes == {("resize", "written"): 1}
    assert requests(plane.api, web) == ["100m", "300m"]
    assert '"cpu":"100m"' in resized(plane.api, web)["metadata"]["annotations"][BEFORE]
    assert [reason for reason, _ in events(plane.api, web)] == ["Resized"]
    soon = leader.cycle(web, 2, at=began + timedelta(minutes=1), sizes=sized(0.3, 128))["resize"]
    assert soon.writes == {}
    wait_until(lambda: _second(leader, began, web), goal="the second pod", timeout=20.0)
    assert requests(plane.api, web) == ["300m", "300m"]
    assert [pod["metadata"]["uid"] for pod in pods(plane.api, web)] == names
    assert plane.api.read("Deployment", "web", web)["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "64Mi"}
    }


def test_a_rollout_with_another_request_is_not_undone_by_what_was_read_before_it(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    """The HPA acts on CPU, which therefore has no size of ours; memory has one."""
    before = Resources(cpu_request=0.05, memory_request=64.0 * MIB)
    sizing = ContainerSizing("app", before, builders.sized(0.04), builders.sized(128.0 * MIB), 14.0)
    decided = size(builders.workload(autoscaler=builders.hpa(builders.CPU_HALF)), (sizing,), VerticalPolicy())
    assert isinstance(decided, Resize)
    assert leader.cycle(web, 2, sizes=decided)["resize"].writes == {("resize", "written"): 1}
    (container,) = resized(plane.api, web)["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "128Mi"}


def test_a_container_without_a_size_keeps_what_a_rollout_gave_it_beside_one_that_has_one(
    plane: ControlPlane, live: LiveCluster, leader: ActingReplica, namespace: str
) -> None:
    """A new proxy has no day of usage yet; its request of 50m was read before the rollout."""
    manifest = deployment("web", 1)
    (app,) = manifest["spec"]["template"]["spec"]["containers"]
    manifest["spec"]["template"]["spec"]["containers"] = [app, {**app, "name": "proxy"}]
    plane.api.create(manifest, namespace)
    wait_until(lambda: len(live_pods(live, namespace)) == 1, goal="a pod that is watched")
    app_size = ContainerSizing("app", TEMPLATE, builders.sized(0.3), builders.sized(128.0 * MIB), 14.0)
    proxy_size = ContainerSizing("proxy", Resources(cpu_request=0.05, memory_request=32.0 * MIB))
    decided = size(builders.workload(autoscaler=None), (app_size, proxy_size), VerticalPolicy())
    assert isinstance(decided, Resize)
    assert leader.cycle(namespace, 1, sizes=decided)["resize"].writes == {("resize", "written"): 1}
    (pod,) = pods(plane.api, namespace)
    requested = [container["resources"]["requests"] for container in pod["spec"]["containers"]]
    assert requested == [{"cpu": "300m", "memory": "128Mi"}, {"cpu": "100m", "memory": "64Mi"}]


def test_a_pod_that_states_its_resources_as_a_whole_gets_the_sum_of_its_containers(
    plane: ControlPlane, live: LiveCluster, leader: ActingReplica, namespace: str
) -> None:
    """Pod-level resources: what its containers do not state they do not get."""
    plane.api.create(whole("web"), namespace)
    wait_until(lambda: len(live_pods(live, namespace)) == 1, goal="a pod that is watched")
    workload = live.workload(WorkloadId(namespace, "Deployment", "web"))
    assert workload is not None
    assert workload.resources == Resources(0.2, 0.4, 128 * MIB, 256 * MIB)
    (pod,) = pods(plane.api, namespace)
    (failed,) = leader.cycle(namespace, 1, sizes=two_sized())["resize"].failures
    assert f"pod update requires features {IN_PLACE} which are not available on node" in failed
    node = f"/api/v1/nodes/{pod['spec']['nodeName']}/status"
    declared = {"status": {"declaredFeatures": [IN_PLACE]}}
    plane.api.ask("PATCH", node, declared, content_type="application/merge-patch+json").raise_for_status()
    wait_until(lambda: _written(leader, namespace), goal="a node that is known to take it")
    (pod,) = pods(plane.api, namespace)
    assert pod["spec"]["resources"] == {
        "requests": {"cpu": "500m", "memory": "256Mi"},
        "limits": {"cpu": "1", "memory": "384Mi"},
    }
    assert [container["resources"] for container in pod["spec"]["containers"]] == [{}, {}]
    messages = [message for reason, message in events(plane.api, namespace) if reason == "Resized"]
    assert messages[0].startswith(
        "the pod cpu 200m/400m, memory 128Mi/256Mi → the pod cpu 500m/1, memory 256Mi/384Mi: "
    )
    released(plane, leader, namespace)
    (pod,) = pods(plane.api, namespace)
    assert pod["spec"]["resources"]["requests"] == {"cpu": "200m", "memory": "128Mi"}


IN_PLACE = "InPlacePodLevelResourcesVerticalScaling"
"""Feature that a node declares if it can change such a size (KEP-5328)."""


def _written(leader: ActingReplica, namespace: str) -> bool:
    return leader.cycle(namespace, 1, sizes=two_sized())["resize"].writes == {("resize", "written"): 1}


def two_sized() -> Resize:
    """One size for both containers of `whole`."""
    size = Resources(0.25, None, 128 * MIB, 192 * MIB)
    sizes = tuple(ContainerSize(name, Resources(), size, None, None, "") for name in ("app", "proxy"))
    return Resize(Resources(0.5, None, 256 * MIB, 384 * MIB), Reason.SIZED, "sized", sizes)


def whole(name: str) -> Document:
    """A Deployment of one pod with two containers, and resources of the pod alone."""
    manifest = deployment(name, 1)
    spec = manifest["spec"]["template"]["spec"]
    spec["containers"] = [{"name": each, "image": each} for each in ("app", "proxy")]
    spec["resources"] = {"requests": {"cpu": "200m", "memory": "128Mi"}, "limits": {"cpu": "400m", "memory": "256Mi"}}
    return manifest


def released(plane: ControlPlane, leader: ActingReplica, namespace: str) -> list[str]:
    """Lines of the command that gives owners their values back, in one namespace."""
    rights = client_config_source(plane.account("forecaster", NAMESPACE))
    terms = {"expired": False, "dry_run": False}
    with closing(ApiClient(rights)) as client:
        lines = released_objects(
            client, leader.settings, datetime.now(UTC), **terms, chosen=lambda where, _: where == namespace
        )
        return [line.line for line in lines]


def _second(leader: ActingReplica, began: datetime, web: str) -> bool:
    effect = leader.cycle(web, 2, at=began + timedelta(minutes=3), sizes=sized(0.3, 128))["resize"]
    return bool(effect.writes[("resize", "written")])


def resized_by_hand(api: Api, namespace: str, cpu: str, mebibytes: int) -> None:
    """Write a size over that of each pod that has another one, as a second client does."""
    size = {"requests": {"cpu": cpu, "memory": f"{mebibytes}Mi"}}
    body = {"spec": {"containers": [{"name": "app", "resources": size}]}}
    for pod in pods(api, namespace):
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/resize?fieldManager=owner"
        assert api.ask("PATCH", path, body, content_type="application/strategic-merge-patch+json").is_success


def test_a_size_that_another_client_writes_again_and_again_is_left_to_it(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    """Otherwise it and we would resize the pod in turn, for ever, each time with the Event that it is left alone."""
    began, changes = datetime.now(UTC), []
    for minute in range(5):
        effect = leader.cycle(web, 2, at=began + timedelta(minutes=minute), sizes=sized(0.3, 128))["resize"]
        changes.append({change for change, _ in effect.writes})
        resized_by_hand(plane.api, web, "100m", 64)
    assert changes == [{"resize"}, {"yield"}, set(), set(), set()]
    assert effect.states["second-writer"] == 1
    code, why = leader.actuators.refusal(WorkloadId(web, "Deployment", "web")) or ("", "")
    assert (code, "was resized by another client; its workload keeps its size until" in why) == ("second-writer", True)
    assert ("ResizeBackedOff", "owner resized it; its workload is left alone for 6h") in events(plane.api, web)
    later = leader.cycle(web, 2, at=began + timedelta(hours=7), sizes=sized(0.3, 128))["resize"]
    assert ("forget", "written") in later.writes


def test_a_pod_that_was_resized_by_hand_before_is_watched_and_has_that_size_again(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    resized_by_hand(plane.api, web, "150m", 256)
    began = datetime.now(UTC) + timedelta(seconds=1)
    wait_until(lambda: datetime.now(UTC) > began, goal="the next second of managedFields")
    for minute in range(2):
        leader.cycle(web, 2, at=began + timedelta(minutes=minute), sizes=sized(0.3, 128))
        assert requests(plane.api, web) == ["150m", "300m"]
        assert [reason for reason, _ in events(plane.api, web)] == ["Resized"]
    released(plane, leader, web)
    assert requests(plane.api, web) == ["150m", "150m"]


def test_a_pod_that_has_proven_its_size_gets_the_next_one(
    plane: ControlPlane, live: LiveCluster, leader: ActingReplica, namespace: str
) -> None:
    plane.api.create(deployment("web", 1), namespace)
    wait_until(lambda: len(live_pods(live, namespace)) == 1, goal="a pod that is watched")
    began = datetime.now(UTC)
    leader.cycle(namespace, 1, at=began, sizes=sized(0.3, 128))
    settled = leader.cycle(namespace, 1, at=began + timedelta(minutes=20), sizes=sized(0.3, 128))["resize"]
    assert settled.writes["settle", "written"] >= 1

    def next_one() -> bool:
        leader.cycle(namespace, 1, at=began + timedelta(minutes=30), sizes=sized(0.5, 128))
        return requests(plane.api, namespace) == ["500m"]

    wait_until(next_one, goal="the next size")
    released(plane, leader, namespace)
    assert requests(plane.api, namespace) == ["100m"]


def test_a_pod_that_its_finalizer_keeps_for_days_does_not_hold_the_others(
    plane: ControlPlane, live: LiveCluster, leader: ActingReplica, web: str
) -> None:
    """A pod on a lost node, for instance, is not ready, and nobody says when it goes."""
    began = datetime.now(UTC)
    leader.cycle(web, 2, at=began, sizes=sized(0.3, 128))
    name = resized(plane.api, web)["metadata"]["name"]
    plane.api.merge("Pod", name, {"metadata": {"finalizers": ["shop.example/volume"]}}, web)
    plane.api.delete("Pod", name, web)
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    path = f"/api/v1/namespaces/{web}/pods/{name}/status"
    answer = plane.api.ask("PATCH", path, {"status": unready}, content_type="application/merge-patch+json")
    assert answer.is_success, answer.text
    wait_until(lambda: len({*live_pods(live, web)} - {name}) == 2, goal="its successor")
    try:

        def next_one() -> bool:
            at = began + timedelta(minutes=5)
            return ("resize", "written") in leader.cycle(web, 2, at=at, sizes=sized(0.3, 128))["resize"].writes

        wait_until(next_one, goal="the size of another pod", timeout=20.0)
    finally:
        plane.api.merge("Pod", name, {"metadata": {"finalizers": None}}, web)


def test_another_mode_gives_them_their_own_size_again(plane: ControlPlane, leader: ActingReplica, web: str) -> None:
    leader.cycle(web, 2, sizes=sized(0.3, 128))
    (line,) = released(plane, leader, web)
    assert line.endswith("size app cpu 100m, memory 64Mi, was app cpu 300m, memory 128Mi: released by command"), line
    assert requests(plane.api, web) == ["100m", "100m"]
    assert [pod for pod in pods(plane.api, web) if BEFORE in pod["metadata"].get("annotations", {})] == []
    managers = {each["manager"] for pod in pods(plane.api, web) for each in pod["metadata"]["managedFields"]}
    assert "forecaster" not in managers


def test_settled_pods_have_their_own_size_again_when_the_mode_changes(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    began = datetime.now(UTC)
    leader.cycle(web, 2, at=began, sizes=sized(0.3, 128))
    wait_until(lambda: _second(leader, began, web), goal="the second pod", timeout=20.0)
    settled = leader.cycle(web, 2, at=began + timedelta(minutes=20), sizes=sized(0.3, 128))["resize"]
    assert settled.writes["settle", "written"] >= 2
    policies = leader.actuators.parts["resize"].policies  # type: ignore[attr-defined]
    before = policies.defaults, policies.overrides
    observed = [{"match": {"namespace": web}, "policy": {"vertical": {"mode": "observe"}}}]
    policies.restate(before[0], parse({"overrides": observed}, "test").policies.overrides)
    try:
        leader.cycle(web, 2, at=began + timedelta(minutes=21), sizes=sized(0.3, 128))
    finally:
        policies.restate(*before)
    assert requests(plane.api, web) == ["100m", "100m"]
    assert [pod for pod in pods(plane.api, web) if LABEL in pod["metadata"].get("labels", {})] == []


def test_sizes_wait_for_their_window(plane: ControlPlane, leader: ActingReplica, web: str) -> None:
    began = datetime.now(UTC)
    policies = leader.actuators.parts["resize"].policies  # type: ignore[attr-defined]
    before = policies.defaults, policies.overrides

    def cycle(opens: timedelta) -> Effected:
        window = {"name": "night", "sizes": True, "start": began + opens, "end": began + opens + timedelta(hours=1)}
        stated = [{"match": {"namespace": web}, "policy": {"horizontal": {"events": [window]}}}]
        policies.restate(before[0], parse({"overrides": stated}, "test").policies.overrides)
        return leader.cycle(web, 2, at=began, sizes=sized(0.3, 128))["resize"]

    try:
        waits = cycle(timedelta(hours=1))
        assert (waits.writes, waits.states["outside-window"]) == ({}, 1)
        assert requests(plane.api, web) == ["100m", "100m"]
        assert cycle(timedelta(minutes=-5)).writes == {("resize", "written"): 1}
    finally:
        policies.restate(*before)
    assert requests(plane.api, web) == ["100m", "300m"]


def test_errors_of_its_workload_after_a_size_take_it_back(
    plane: ControlPlane, leader: ActingReplica, errors: FakeSource, web: str
) -> None:
    """A leader that did not set the size does so, too: the errors before lie beside the size that the pod had."""
    began, id_ = datetime.now(UTC), WorkloadId(web, "Deployment", "web")

    def cycle(minutes: int, share: float) -> dict[tuple[str, str], int]:
        errors.loads = [Load(Workload(id_, 2, 2), {Signal(f"{ERROR_SIGNAL_PREFIX}http", unit=""): lambda _: share})]
        at = began + timedelta(minutes=minutes)
        return dict(leader.cycle(web, 2, at=at, sizes=sized(0.3, 128))["resize"].writes)

    try:
        assert cycle(0, 0.01) == {("resize", "written"): 1}
        assert '"errors":0.01' in resized(plane.api, web)["metadata"]["annotations"][BEFORE]
        assert cycle(1, 0.04) == {}
        assert cycle(2, 0.2) == {("roll-back", "written"): 1}
    finally:
        errors.loads = []
    assert requests(plane.api, web) == ["100m", "100m"]
    (text,) = [message for reason, message in events(plane.api, web) if reason == "SizeRolledBack"]
    assert "errors are 0.2, above the limit of 0.05, and were 0.01" in text


def test_while_the_node_defers_a_size_the_other_pods_wait(plane: ControlPlane, leader: ActingReplica, web: str) -> None:
    began = datetime.now(UTC)
    leader.cycle(web, 2, at=began, sizes=sized(0.3, 64))
    node_reports(plane.api, web, pending("Deferred"))
    effect = leader.cycle(web, 2, at=began + timedelta(minutes=4), sizes=sized(0.3, 64))["resize"]
    assert (effect.writes, effect.states["deferred"]) == ({}, 1)
    assert requests(plane.api, web) == ["100m", "300m"]


@pytest.mark.parametrize(
    ("conditions", "restarts", "why"),
    [
        ([pending("Infeasible")], 0, "its node can never grant the size. the node is full"),
        ([], 2, "2 restarts since its size was changed"),
    ],
    ids=["infeasible", "restarts"],
)
def test_a_pod_that_is_worse_off_gets_its_own_size_again(
    plane: ControlPlane, leader: ActingReplica, web: str, conditions: list[Document], restarts: int, why: str
) -> None:
    began = datetime.now(UTC)
    leader.cycle(web, 2, at=began, sizes=sized(0.3, 64))
    node_reports(plane.api, web, *conditions, restarts=restarts)
    effect = leader.cycle(web, 2, at=began + timedelta(minutes=1), sizes=sized(0.3, 64))["resize"]
    assert effect.writes == {("roll-back", "written"): 1}
    assert requests(plane.api, web) == ["100m", "100m"]
    assert any(reason == "SizeRolledBack" and why in message for reason, message in events(plane.api, web))
    later = leader.cycle(web, 2, at=began + timedelta(hours=1), sizes=sized(0.3, 64))["resize"]
    assert ("resize", "written") not in later.writes
    assert later.states["rolled-back"] > 0


def test_a_limit_range_that_comes_later_gives_no_running_pod_a_limit(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    """No resize takes a limit away again: a pod would be throttled, or killed, by one that its owner never stated."""
    limits = [{"type": "Container", "max": {"cpu": "200m"}, "default": {"cpu": "200m"}}]
    document = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}}
    plane.kubectl("apply", f"--namespace={web}", "-f-", given=str(document).replace("'", '"'))
    admission = leader.actuators.parts["resize"].pods.admission  # type: ignore[attr-defined]
    wait_until(lambda: admission()(web).limit_ranges, goal="the LimitRange")
    effect = leader.cycle(web, 2, sizes=sized(0.15, 128))["resize"]
    assert (effect.writes, effect.states["inadmissible"]) == ({}, 1)
    stated = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    assert [pod["spec"]["containers"][0]["resources"] for pod in pods(plane.api, web)] == [stated, stated]


def test_the_api_server_holds_our_account_to_sizes(plane: ControlPlane, web: str) -> None:
    name = pods(plane.api, web)[0]["metadata"]["name"]
    with closing(plane.client(token=plane.token("forecaster", NAMESPACE))) as account:
        with pytest.raises(RefusedError, match="nothing else of the specification"):
            account.merge("Pod", name, {"spec": {"activeDeadlineSeconds": 1}}, web)
        with pytest.raises(RefusedError, match="labels forecaster changes its own only"):
            account.merge("Pod", name, {"metadata": {"labels": {"app": "other"}}}, web)
        with pytest.raises(RefusedError, match="forbidden"):
            account.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}}, web)


def test_of_a_held_size_nothing_is_written(plane: ControlPlane, leader: ActingReplica, web: str) -> None:
    assert leader.cycle(web, 2)["resize"].writes == {}
    held = replace(sized(0.3, 128), containers=())
    assert leader.cycle(web, 2, sizes=held)["resize"].writes == {}
