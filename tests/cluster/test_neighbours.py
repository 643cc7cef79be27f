"""ScaledObjects of KEDA and VPAs on a real API server: what they own is left to them, by the account of deploy/."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.app.live_facts import vpas_of
from forecaster.config.settings import parse
from forecaster.domain.workload import WorkloadId
from tests.support.control_plane.acting import ActingReplica, apply_components
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.sources.live import LiveCluster
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
KEDA = ("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
VPA = ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers")
SETTINGS = {
    "floor": {"enabled": True},
    "scale": {"enabled": True},
    "policy": {"mode": "scale", "horizontal": {"min_replicas": 1, "max_replicas": 20}},
    "overrides": [{"match": {"name": "floored"}, "policy": {"mode": "floor"}}],
}


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the components `floor` and `scale`."""
    apply_components(control_plane, tmp_path_factory.mktemp("neighbours"), "floor", "scale")
    for resource in ("deployments.apps", "horizontalpodautoscalers.autoscaling"):
        control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", resource)
    return control_plane


@pytest.fixture(scope="module")
def leader(plane: ControlPlane, live: LiveCluster) -> Iterator[ActingReplica]:
    """One replica for both modes; overrides say which workload has which."""
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, SETTINGS, live)
        replica.until_leading()
        yield replica


@pytest.fixture
def web(plane: ControlPlane, namespace: str) -> str:
    """A namespace with a Deployment of two pods."""
    plane.api.create(deployment("web", 2), namespace)
    return namespace


@contextmanager
def kind_of(plane: ControlPlane, group: str, version: str, kind: str, plural: str) -> Iterator[str]:
    """The path of a kind that the API server knows meanwhile, of any form."""
    free = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    protected = {"api-approved.kubernetes.io": "unapproved, a test"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": protected},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": free}],
        },
    }
    path = f"/apis/{group}/{version}"
    # A definition of this name may be left by another test, or still being deleted.
    plane.api.ask("DELETE", f"{DEFINITIONS}/{plural}.{group}")
    wait_until(lambda: plane.api.ask("POST", DEFINITIONS, definition).is_success, goal=f"definition of {kind}")
    wait_until(lambda: plane.api.ask("GET", f"{path}/{plural}").is_success, goal=f"kind {kind}")
    try:
        yield path
    finally:
        plane.api.ask("DELETE", f"{DEFINITIONS}/{plural}.{group}")
        wait_until(lambda: plane.api.ask("GET", f"{path}/{plural}").status_code == 404, goal=f"no kind {kind}")


def put(plane: ControlPlane, path: str, kind: tuple[str, ...], namespace: str, spec: Document) -> None:
    """A custom resource called `web`."""
    meta = {"name": "web", **spec.pop("metadata", {})}
    rest = {name: spec.pop(name) for name in ("status",) if name in spec}
    document = {"apiVersion": path.removeprefix("/apis/"), "kind": kind[2], "metadata": meta, "spec": spec, **rest}
    answer = plane.api.ask("POST", f"{path}/namespaces/{namespace}/{kind[3]}", document)
    assert answer.is_success, answer.text


def refusal(leader: ActingReplica, namespace: str, count: int = 6, **fields: Any) -> tuple[str, str] | None:
    """Why a workload was left alone in one more cycle; None where it was not."""
    leader.cycle(namespace, count, **fields)
    target = fields.get("name", "web")
    return next(
        (
            (str(held.code), held.message)
            for writer in (leader.actuators.parts["floor"].writer, leader.actuators.parts["scale"].writer)  # type: ignore[attr-defined]
            for id_, held in writer.lasting.items()
            if (id_.namespace, id_.name) == (namespace, target)
        ),
        None,
    )


def until_refused(leader: ActingReplica, namespace: str, why: str, count: int = 6, **fields: Any) -> None:
    """Run cycles until a workload is refused: a watch reports a new object a moment later."""

    def refused() -> bool:
        code, message = refusal(leader, namespace, count, **fields) or ("", "")
        return code == "owned" and why in message

    wait_until(refused, goal=why)


def until_floor(plane: ControlPlane, leader: ActingReplica, namespace: str, count: int) -> None:
    """Run cycles until the floor is raised: a watch reports an HPA a moment later."""

    def reached() -> bool:
        leader.cycle(namespace, 4, name="floored")
        minimum: int = plane.api.read("HorizontalPodAutoscaler", "floored", namespace)["spec"]["minReplicas"]
        return minimum == count

    wait_until(reached, goal=f"minReplicas {count}")


@contextmanager
def without_rights_on(plane: ControlPlane, group: str) -> Iterator[None]:
    """No role of ours gives rights on a group, be it of a component that another test applied before."""

    def set_rules(role: Document, rules: list[Document]) -> None:
        path = f"{ROLES}/{role['metadata']['name']}"
        plane.api.ask("PATCH", path, {"rules": rules}, content_type="application/merge-patch+json")

    roles = [role for role in plane.api.get(ROLES)["items"] if role["metadata"]["name"].startswith("forecaster")]
    given = [role for role in roles if any(group in rule.get("apiGroups", []) for rule in role["rules"])]
    for role in given:
        set_rules(role, [rule for rule in role["rules"] if group not in rule.get("apiGroups", [])])
    try:
        yield
    finally:
        for role in given:
            set_rules(role, role["rules"])


class Meanwhile:
    """The log of a writer, by which something happens between the look of a cycle and its first write."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens: Callable[[], None] | None = happens
        self.failed: list[object] = []

    def info(self, event: str, **_facts: object) -> None:
        if event == "cluster_write" and self.happens:
            happens, self.happens = self.happens, None
            happens()

    def warning(self, event: str, **facts: object) -> None:
        if event == "cluster_write_failed":
            self.failed.append(facts["error"])


@contextmanager
def meanwhile(leader: ActingReplica, mode: str, id_: WorkloadId, makes: Callable[[], None]) -> Iterator[Meanwhile]:
    """Before the first write of a mode something is made beside a workload, and known by its watch."""
    writer = leader.actuators.parts[mode].writer  # type: ignore[attr-defined]

    def made() -> None:
        makes()
        wait_until(lambda: writer.conflict(id_), goal="the neighbour that is watched")

    before, writer.log = writer.log, Meanwhile(made)
    try:
        yield writer.log
    finally:
        writer.log = before


def until_free(leader: ActingReplica, namespace: str) -> None:
    wait_until(lambda: refusal(leader, namespace) is None, goal="no refusal")


@pytest.mark.parametrize("kind", [VPA, KEDA, None], ids=["VPA", "ScaledObject", "HPA"])
def test_what_is_made_after_the_look_of_a_cycle_stops_its_write(
    plane: ControlPlane, leader: ActingReplica, web: str, kind: tuple[str, ...] | None
) -> None:
    id_ = WorkloadId(web, "Deployment", "web")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    with ExitStack() as kinds:
        path = kinds.enter_context(kind_of(plane, *kind)) if kind else ""

        def makes() -> None:
            if kind:
                put(plane, path, kind, web, {"targetRef" if kind is VPA else "scaleTargetRef": reference})
            else:
                plane.api.create(external_hpa("web", target="1"), web)

        with meanwhile(leader, "scale", id_, makes) as log:
            done = leader.cycle(web, 6)["scale"]
        assert (done.writes["raise", "conflict"], log.happens) == (1, None)
        assert "since this cycle began" in str(log.failed)
        assert replicas(plane.api, "web", web).desired == 2
        until_refused(leader, web, "VPA web" if kind is VPA else "ScaledObject web" if kind else "HPA web")
        assert replicas(plane.api, "web", web).desired == 2


def test_a_paused_scaled_object_keeps_its_count_and_its_hpa(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    paused = {"annotations": {"autoscaling.keda.sh/paused": "true"}}
    with kind_of(plane, *KEDA) as path:
        put(plane, path, KEDA, web, {"metadata": paused, "scaleTargetRef": {"name": "web"}})
        until_refused(leader, web, "ScaledObject web (paused by autoscaling.keda.sh/paused) scales it")
        assert replicas(plane.api, "web", web).desired == 2

        plane.api.create(deployment("floored", 1), web)
        plane.api.create(external_hpa("floored", target="1"), web)
        until_floor(plane, leader, web, 4)
        put(plane, path, KEDA, web, {"metadata": {**paused, "name": "other"}, "scaleTargetRef": {"name": "floored"}})
        until_refused(leader, web, "ScaledObject other (paused by", 4, name="floored")
        until_floor(plane, leader, web, 1)
    until_free(leader, web)
    assert replicas(plane.api, "web", web).desired == 6


def test_a_vpa_that_writes_requests_holds_the_count_and_one_that_is_off_does_not(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    with kind_of(plane, *VPA) as path:
        put(plane, path, VPA, web, {"targetRef": target, "updatePolicy": {"updateMode": "InPlaceOrRecreate"}})
        until_refused(leader, web, "VPA web writes its requests, its updateMode is InPlaceOrRecreate")
        off = {"spec": {"updatePolicy": {"updateMode": "Off"}}}
        merge = "application/merge-patch+json"
        plane.api.ask("PATCH", f"{path}/namespaces/{web}/{VPA[3]}/web", off, content_type=merge)
        until_free(leader, web)
    assert replicas(plane.api, "web", web).desired == 6


def test_what_a_vpa_that_is_off_recommends_is_read_and_is_unknown_without_the_right(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    at, id_ = datetime.now(UTC), WorkloadId(web, "Deployment", "web")
    spec = {"targetRef": {"kind": "Deployment", "name": "web"}, "updatePolicy": {"updateMode": "Off"}}
    recommended = {"containerName": "app", "target": {"cpu": "587m", "memory": "262144k"}}
    with kind_of(plane, *VPA) as path:
        status = {"recommendation": {"containerRecommendations": [recommended]}}
        put(plane, path, VPA, web, {**spec, "status": status})
        put(plane, path, VPA, web, {**spec, "metadata": {"name": "empty"}})
        by_workload, why = vpas_of(leader.settings, at)
        assert not why
        assert {str(vpa) for vpa in by_workload[id_]} == {
            "VPA web (updateMode Off) recommends app cpu 587m (– to –), memory 250Mi (– to –)",
            "VPA empty (updateMode Off) recommends nothing yet",
        }
        assert vpas_of(leader.settings, at - timedelta(hours=1)) == ({}, "")
        other = str(plane.account("default", web))
        nothing, why = vpas_of(parse({"kubernetes": {"kubeconfig": other}}, "test"), at)
        assert not nothing
        assert "verticalpodautoscalers is not known" in why
    assert vpas_of(leader.settings, at) == ({}, "")


def test_a_right_that_is_missing_holds_counts_where_the_kind_is_there_and_only_there(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    with without_rights_on(plane, VPA[0]):
        with kind_of(plane, *VPA), ExitStack() as parts:
            plane.until_allowed(f"{NAMESPACE}/forecaster", "list", f"{VPA[3]}.{VPA[0]}", expected=False)
            fresh = ActingReplica(plane, parts, SETTINGS)  # the leader's watch of the kind before may not have ended
            until_refused(fresh, web, "verticalpodautoscalers is not known")
        until_free(leader, web)
    assert replicas(plane.api, "web", web).desired == 6
