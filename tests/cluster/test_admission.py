"""The real API server agrees with our rules: LimitRanges, quotas, QoS, defaults and resizes, by `--dry-run=server`."""

from __future__ import annotations

import random
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.domain.decision import Hold, Reason, Recommendation, Resize
from forecaster.domain.workload import ContainerSize, Resources, Workload, WorkloadId
from forecaster.sources.cluster_objects import cluster_of
from forecaster.vertical.admission.advice import advise, patch
from forecaster.vertical.admission.context import AdmissionContext, Rollout
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules import limit_range
from forecaster.vertical.cluster_rules.manifest import limit_range_of, pod_of, quota_of
from forecaster.vertical.cluster_rules.node import Node
from forecaster.vertical.cluster_rules.placement import Taint
from forecaster.vertical.cluster_rules.pod import Requirements
from forecaster.vertical.cluster_rules.qos import computed_qos
from forecaster.vertical.cluster_rules.quota import charge
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.resource_list import parsed, texts
from forecaster.vertical.cluster_rules.server import Server
from forecaster.vertical.cluster_rules.validation import faults, with_early_defaults, with_late_defaults
from forecaster.vertical.nodes.headroom import Headroom, manifests
from forecaster.vertical.nodes.pools import pools_of
from tests.support import objects as given
from tests.support.builders import NOON
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    import httpx

    from forecaster.vertical.cluster_rules.limit_range import LimitRange
    from forecaster.vertical.cluster_rules.pod import Pod
    from tests.support.control_plane.api import Api
    from tests.support.control_plane.plane import ControlPlane

Wire = dict[str, Any]

CPU, MEMORY = ("0", "50m", "100m", "0.5", "1", "1500m", "2"), ("0", "64Mi", "100M", "0.5Gi", "1Gi", "2G")
MERGE = "application/strategic-merge-patch+json"
PODS = 60
RANGES: dict[str, Wire] = {
    "a minimum and a maximum": {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1500m", "memory": "1Gi"}},
    "a maximum of the pod": {"type": "Pod", "max": {"cpu": "2", "memory": "2Gi"}},
    "a ratio": {
        "type": "Container",
        "maxLimitRequestRatio": {"cpu": "2"},
        "default": {"cpu": "1"},
        "max": {"cpu": "2"},
    },
    "defaults only": {"type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}, "max": {"cpu": "9"}},
}
"""Each of these rules refuses a limit of ten cores, which shows that the API server has learned of it."""


@pytest.fixture
def api(control_plane: ControlPlane) -> Api:
    return control_plane.api


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Server:
    return Server.parse(control_plane.api.get("/version")["gitVersion"])


def chances(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  which pods are tried is no secret


def amounts(chance: random.Random) -> Wire:
    chosen = {}
    if chance.random() < 0.7:
        chosen["cpu"] = chance.choice(CPU)
    if chance.random() < 0.7:
        chosen["memory"] = chance.choice(MEMORY)
    return chosen


def container(name: str, chance: random.Random, **more: Any) -> Wire:
    return {"name": name, "image": "app", "resources": {"requests": amounts(chance), "limits": amounts(chance)}, **more}


def any_pod(chance: random.Random) -> Wire:
    """One or two containers, perhaps an init container or a sidecar before them; often enough not even valid."""
    spec: Wire = {"containers": [container(name, chance) for name in ("a", "b")[: chance.randint(1, 2)]]}
    if chance.random() < 0.4:
        always = {"restartPolicy": "Always"} if chance.random() < 0.5 else {}
        spec["initContainers"] = [container("i", chance, **always)]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "probe"}, "spec": spec}


def one_container(**resources: Wire) -> Wire:
    spec = {"containers": [{"name": "a", "image": "app", "resources": resources}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "probe"}, "spec": spec}


def dry_run(api: Api, namespace: str, pod: Wire) -> httpx.Response:
    return api.ask("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


def until_refused(api: Api, namespace: str, pod: Wire) -> None:
    """The API server reads these objects from a cache that follows a moment later."""
    wait_until(
        lambda: dry_run(api, namespace, pod).status_code == HTTPStatus.FORBIDDEN,
        goal="the API server to know the rule",
    )


def create(api: Api, namespace: str, plural: str, kind: str, spec: Wire) -> Wire:
    body = {"kind": kind, "apiVersion": "v1", "metadata": {"name": "rule"}, "spec": spec}
    answer = api.ask("POST", f"/api/v1/namespaces/{namespace}/{plural}", body)
    assert answer.status_code == HTTPStatus.CREATED, answer.text
    stored: Wire = answer.json()
    return stored


def completed(wire: Wire, ranges: list[LimitRange], server: Server) -> Pod:
    pod = with_early_defaults(pod_of(wire), server)
    return with_late_defaults(limit_range.with_defaults(pod, ranges), server)


def blocks(pod: Pod) -> dict[str, Requirements]:
    return {container.name: container.resources for container in pod.every_container()}


@pytest.mark.parametrize("item", RANGES.values(), ids=RANGES)
def test_limit_ranges_defaults_and_classes(api: Api, namespace: str, server: Server, item: Wire) -> None:
    stored = create(api, namespace, "limitranges", "LimitRange", {"limits": [item]})
    ranges = [limit_range_of(stored)]
    huge = one_container(requests={"cpu": "1"}, limits={"cpu": "10", "memory": "64Mi"})
    until_refused(api, namespace, huge)
    chance = chances(1)
    for _ in range(PODS):
        wire = any_pod(chance)
        pod = completed(wire, ranges, server)
        answer = dry_run(api, namespace, wire)
        refused = [*faults(pod, server), *limit_range.refusals(pod, ranges, server)]
        assert answer.is_success == (not refused), (wire, refused, answer.text)
        if answer.is_success:
            admitted = answer.json()
            assert blocks(pod_of({**admitted, "status": {}})) == blocks(pod), wire
            assert admitted["status"]["qosClass"] == computed_qos(pod, server), wire


@pytest.mark.parametrize(
    "hard",
    [
        {"requests.cpu": "1500m", "limits.memory": "1Gi"},
        {"cpu": "1", "requests.memory": "600Mi", "pods": "3"},
        {"limits.cpu": "2", "pods": "0"},
    ],
    ids=["requests and limits", "short names", "no pods at all"],
)
def test_quotas(api: Api, namespace: str, server: Server, hard: Wire) -> None:
    create(api, namespace, "resourcequotas", "ResourceQuota", {"hard": hard})
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/rule"
    wait_until(
        lambda: set(api.get(path).get("status", {}).get("used", {})) == set(hard),
        goal="a counted quota",
    )
    quota = quota_of(api.get(path))
    none = one_container()
    until_refused(api, namespace, none)
    chance = chances(2)
    for _ in range(PODS):
        wire = any_pod(chance)
        pod = completed(wire, [], server)
        answer = dry_run(api, namespace, wire)
        refused = [*faults(pod, server), *charge(quota, pod, server=server).refusals]
        assert answer.is_success == (not refused), (wire, refused, answer.text)


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}},
        {"requests": {"cpu": "100m"}},
        {},
    ],
    ids=["burstable", "guaranteed", "a request only", "best effort"],
)
def test_resizes(api: Api, namespace: str, server: Server, resources: Wire) -> None:
    wire = one_container(**resources)
    wire["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    api.create(wire, namespace)
    wait_until(
        lambda: api.read("Pod", "probe", namespace).get("status", {}).get("phase") == "Running",
        goal="a running pod",
    )
    live = api.read("Pod", "probe", namespace)
    chance = chances(3)
    for _ in range(PODS):
        after = {
            "name": "a",
            "resources": {"$patch": "replace", "requests": amounts(chance), "limits": amounts(chance)},
        }
        answer = api.ask(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/pods/probe/resize?dryRun=All",
            {"spec": {"containers": [after]}},
            content_type=MERGE,
        )
        new = {**live, "spec": {**live["spec"], "containers": [{**live["spec"]["containers"][0], **after}]}}
        predicted = resize(pod_of(live), pod_of(new), server)
        assert answer.is_success == predicted.allowed, (after, predicted, answer.text)


def test_the_patch_of_a_cron_job_changes_the_next_run_and_leaves_the_one_that_runs(api: Api, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}"
    today = given.container("app", {"cpu": "1", "memory": "1Gi"}, {"memory": "1Gi"}) | {"image": "app"}
    cron_job = given.cron_job(namespace, "backup", today)
    assert api.ask("POST", f"{jobs}/cronjobs", cron_job).status_code == HTTPStatus.CREATED
    running = {"metadata": {"name": "backup-1"}, "spec": cron_job["spec"]["jobTemplate"]["spec"]}
    assert api.ask("POST", f"{jobs}/jobs", running).status_code == HTTPStatus.CREATED
    id_, now = WorkloadId(namespace, "CronJob", "backup"), Resources(1.0, None, 2.0**30, 2.0**30)
    size = Resources(0.5, None, 2.0**31, 2.0**31)
    decided = Resize(size, Reason.SIZED, "", (ContainerSize("app", now, size, None, None, ""),))
    recommendation = Recommendation(id_, NOON, 0, Hold(Reason.NO_TARGET, ""), now, decided)
    advice = advise(Workload(id_, 0, 0, now), recommendation, cluster_of({"CronJob": [cron_job]}))
    answer = api.ask("PATCH", f"{jobs}/cronjobs/backup", patch(advice), content_type=MERGE)
    assert answer.status_code == HTTPStatus.OK, answer.text
    sized = answer.json()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    assert sized["resources"] == {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    assert sized["image"] == "app"
    unchanged = api.get(f"{jobs}/jobs/backup-1")["spec"]["template"]["spec"]["containers"][0]
    assert unchanged["resources"]["limits"] == {"memory": "1Gi"}


def test_the_nearest_values_of_a_refused_recommendation_are_admitted(api: Api, namespace: str, server: Server) -> None:
    """The whole proof, end to end: refused as it stands, admitted as it is corrected."""
    item = {"type": "Container", "min": {"cpu": "200m"}, "max": {"cpu": "1", "memory": "1Gi"}}
    stored = create(api, namespace, "limitranges", "LimitRange", {"limits": [item]})
    today = one_container(requests={"cpu": "500m", "memory": "512Mi"}, limits={"cpu": "1", "memory": "1Gi"})
    context = AdmissionContext(
        pod_of(today), Rollout(1), limit_ranges=(limit_range_of(stored),), server=server, accepts_qos_change=True
    )
    proposed = {"a": Requirements(parsed({"cpu": "1500m", "memory": "2Gi"}), parsed({"cpu": "3", "memory": "2Gi"}))}
    proof = prove(proposed, context)
    assert not proof.accepted
    assert proof.nearest is not None
    huge = one_container(requests={"cpu": "1500m", "memory": "2Gi"}, limits={"cpu": "3", "memory": "2Gi"})
    until_refused(api, namespace, huge)
    values = {"requests": texts(proof.nearest["a"].requests), "limits": texts(proof.nearest["a"].limits)}
    assert dry_run(api, namespace, one_container(**values)).is_success


def test_headroom_pods_are_what_an_api_server_takes(api: Api, namespace: str) -> None:
    tainted = Node("n1", parsed({"cpu": "4", "memory": "16Gi"}), {"karpenter.sh/nodepool": "Spot"}, (Taint("spot"),))
    (pool,) = pools_of([tainted])
    headroom = Headroom(pool.name, 3, 0.5, 2.0**30, None, "")
    priority, deployment = manifests(headroom, pool, "pause", namespace)
    at = {
        "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
        "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    }
    for document in (priority, deployment):
        answer = api.ask("POST", at[document["kind"]].format(namespace) + "?dryRun=All", document)
        assert answer.is_success, answer.text
