"""New pods get their size by the webhook of deploy/components/initial, on a real API server with its controllers.

It is a control plane of its own: the webhook would be asked about the pods of every other test.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from forecaster.actuators.resize.pods import BEFORE, LABEL, SIZE
from forecaster.app.effects import released_objects
from forecaster.app.outlets import table_path
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.kube.lease import PAUSE_ANNOTATION
from tests.cluster.test_resize import node_reports, pending, pods, requests, sized, two_sized, whole
from tests.support.control_plane.acting import ActingReplica, watched
from tests.support.control_plane.authority import Authority
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.deployed import EXTERNAL, NAMESPACE, ROOT, Deployed
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.tables import publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.report import Effected
    from tests.support.control_plane.api import Api, Document

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
WEBHOOK = f"{CONFIGURATIONS}/forecaster-initial"


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if absent := why_not(*CORE):
        pytest.skip(absent)
    with ControlPlane(tmp_path_factory.mktemp("initial"), services="127.137") as running:
        yield running


@pytest.fixture(scope="module")
def deployed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """The base with both components of sizes, its certificate, and whom the webhook trusts."""
    folder = tmp_path_factory.mktemp("deployed")
    parts = {"resources": ["base"], "components": ["components/vertical", "components/initial"]}
    paths = {key: [os.path.relpath(ROOT / "deploy" / part, folder) for part in value] for key, value in parts.items()}
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(head | paths))
    table = publish(table_path(folder), at=datetime.now(UTC), mode="publish")
    made = Deployed(control_plane, folder, table=table, kustomization=folder)
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "pods")
    assert "MutatingWebhookConfiguration forecaster-initial: trusts our authority" in made.run_certificates()
    control_plane.api.delete("APIService", EXTERNAL)
    return made


BOOST = {"startup_boost": 3, "startup_for": "1s"}
"""The startup boost of docs/vertical.md, for a shorter time."""


@pytest.fixture(scope="module")
def leader(deployed: Deployed) -> Iterator[ActingReplica]:
    plane = deployed.cluster
    with ExitStack() as parts:
        live = parts.enter_context(watched(plane.account("forecaster", NAMESPACE)))
        secure = {"enabled": True, "certificate_file": "tls.crt", "key_file": "tls.key"}
        settings = {
            "resize": {"enabled": True, "initial": True},
            "serving": {"secure": secure},
            "policy": {"vertical": {"mode": "initial"}},
            "overrides": [
                {"match": {"name": "slow"}, "policy": {"vertical": {"mode": "in-place", **BOOST}}},
                {"match": {"name": "stuck"}, "policy": {"vertical": {"mode": "in-place", "evict": True}}},
            ],
        }
        replica = ActingReplica(plane, parts, settings, live, table=deployed.table)
        replica.until_leading()
        yield replica


@pytest.fixture(scope="module")
def answering(deployed: Deployed, leader: ActingReplica) -> Iterator[None]:
    """The real serving process, of which the API server knows."""
    with contextmanager(deployed.serve)():

        def answered() -> bool:
            leader.cycle("default", 1, sizes=sized(0.3, 128))
            return tried(deployed.cluster.api, "default") == "300m"

        wait_until(answered, goal="an answer of the webhook")
        yield


def made(api: Api, name: str, namespace: str, count: int = 2, **changes: Document) -> list[Document]:
    """The pods that the real controller makes of a Deployment."""
    document = deployment(name, count)
    document["spec"]["template"]["spec"] |= changes
    api.create(document, namespace)
    wait_until(lambda: len(pods(api, namespace)) == count, goal="the pods")
    return pods(api, namespace)


def test_where_nothing_answers_yet_pods_are_made_as_they_are(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    """This test comes first: the service does not run before a test asks for it."""
    leader.cycle(namespace, 2, sizes=sized(0.3, 128))
    made(deployed.cluster.api, "web", namespace)
    assert requests(deployed.cluster.api, namespace) == ["100m", "100m"]


@pytest.mark.usefixtures("answering")
def test_new_pods_of_a_deployment_have_the_size_and_say_why(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    leader.cycle(namespace, 2, sizes=sized(0.3, 128))
    for pod in made(deployed.cluster.api, "web", namespace):
        assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "300m", "memory": "128Mi"}}
        assert pod["metadata"]["labels"][LABEL] == "watched"
        annotations = pod["metadata"]["annotations"]
        assert annotations[SIZE].startswith("app cpu 100m, memory 64Mi → app cpu 300m, memory 128Mi: sized for ")
        assert '"cpu":"100m"' in annotations[BEFORE]
    template = deployed.cluster.api.read("Deployment", "web", namespace)["spec"]["template"]
    assert template["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "64Mi"}


@pytest.mark.usefixtures("answering")
def test_new_pods_that_state_their_resources_as_a_whole_have_the_sum_of_their_containers(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    api = deployed.cluster.api
    leader.cycle(namespace, 1, sizes=two_sized())
    api.create(whole("web"), namespace)
    wait_until(lambda: len(pods(api, namespace)) == 1, goal="the pod")
    (pod,) = pods(api, namespace)
    assert pod["spec"]["resources"] == {
        "requests": {"cpu": "500m", "memory": "256Mi"},
        "limits": {"cpu": "1", "memory": "384Mi"},
    }
    assert pod["metadata"]["annotations"][SIZE].startswith("the pod cpu 200m/400m, memory 128Mi/256Mi → the pod cpu ")
    assert [container["resources"] for container in pod["spec"]["containers"]] == [{}, {}]


@pytest.mark.usefixtures("answering")
def test_a_release_gives_running_pods_what_their_template_says(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    leader.cycle(namespace, 2, sizes=sized(0.3, 128))
    made(deployed.cluster.api, "web", namespace)
    wait_until(lambda: replicas(deployed.cluster.api, "web", namespace).ready == 2, goal="two pods")
    with closing(ApiClient(client_config_source(deployed.account("forecaster")))) as client:
        terms = {"expired": False, "dry_run": False}
        lines = released_objects(
            client, leader.settings, datetime.now(UTC), **terms, chosen=lambda space, _: space == namespace
        )
        assert len([line for line in lines if line.done]) == 2
    assert requests(deployed.cluster.api, namespace) == ["100m", "100m"]
    assert not [pod for pod in pods(deployed.cluster.api, namespace) if LABEL in pod["metadata"]["labels"]]


@pytest.mark.usefixtures("answering")
def test_a_pod_that_restarts_with_its_size_gets_its_own_and_new_ones_keep_theirs(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    api, began = deployed.cluster.api, datetime.now(UTC)
    leader.cycle(namespace, 1, at=began, sizes=sized(0.3, 32))
    (pod,) = made(api, "web", namespace, 1)
    wait_until(lambda: replicas(api, "web", namespace).ready == 1, goal="the pod")
    (pod,) = pods(api, namespace)
    statuses = [{**status, "restartCount": 2} for status in pod["status"]["containerStatuses"]]
    path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status"
    body = {"status": {"containerStatuses": statuses}}
    assert api.ask("PATCH", path, body, content_type="application/merge-patch+json").is_success
    effects = leader.cycle(namespace, 1, at=datetime.now(UTC), sizes=sized(0.3, 32))
    assert effects["resize"].writes == {("roll-back", "written"): 1}
    assert requests(api, namespace) == ["100m"]
    assert leader.cycle(namespace, 1, sizes=sized(0.3, 32))["initial"].states["rolled-back"] == 1
    api.merge("Deployment", "web", {"spec": {"replicas": 2}}, namespace)
    wait_until(lambda: len(pods(api, namespace)) == 2, goal="another pod")
    assert requests(api, namespace) == ["100m", "100m"]


@pytest.mark.usefixtures("answering")
def test_a_size_beyond_a_quota_or_a_limit_range_keeps_no_pod_from_being_made(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    api = deployed.cluster.api
    objects: list[tuple[str, Document]] = [
        ("limitranges", {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"cpu": "250m"}}]}}),
        ("resourcequotas", {"kind": "ResourceQuota", "spec": {"hard": {"requests.memory": "200Mi"}}}),
    ]
    for resource, rule in objects:
        body = {"apiVersion": "v1", "metadata": {"name": "small"}, **rule}
        assert api.ask("POST", f"/api/v1/namespaces/{namespace}/{resource}", body).is_success
    pods = leader.actuators.parts["resize"].pods  # type: ignore[attr-defined]

    def known() -> bool:
        rules = pods.admission()(namespace)
        return bool(rules.limit_ranges and rules.quotas and "requests.memory" in rules.quotas[0].used)

    wait_until(known, goal="the quota and the LimitRange")
    leader.cycle(namespace, 2, sizes=sized(0.3, 128))
    created = made(api, "web", namespace, 2)
    sizes = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in created]
    assert [size["cpu"] for size in sizes] == ["250m", "250m"]
    assert all(64 <= int(size["memory"].removesuffix("Mi")) < 128 for size in sizes), sizes


@pytest.mark.usefixtures("answering")
def test_a_dry_run_has_the_same_answer_and_no_side_effect(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    leader.cycle(namespace, 1, sizes=sized(0.3, 128))
    assert tried(deployed.cluster.api, namespace) == "300m"
    assert pods(deployed.cluster.api, namespace) == []


@pytest.mark.usefixtures("answering")
def test_pods_of_other_workloads_and_while_nothing_is_decided_are_made_as_they_are(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    leader.cycle(namespace, 2, name="other", sizes=sized(0.3, 128))
    assert [LABEL in pod["metadata"]["labels"] for pod in made(deployed.cluster.api, "web", namespace)] == [
        False,
        False,
    ]
    leader.cycle(namespace, 2)
    deployed.cluster.api.merge("Deployment", "web", {"spec": {"replicas": 3}}, namespace)
    wait_until(lambda: len(pods(deployed.cluster.api, namespace)) == 3, goal="another pod")
    assert requests(deployed.cluster.api, namespace) == ["100m"] * 3


@pytest.mark.usefixtures("answering")
def test_a_size_that_no_node_has_room_for_is_not_given(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    leader.cycle(namespace, 1, sizes=sized(1000.0, 128))
    assert tried(deployed.cluster.api, namespace) == "64", "what each node has"


@pytest.mark.usefixtures("answering")
def test_a_pause_reaches_new_pods_before_the_next_cycle(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    api, lease = deployed.cluster.api, ("annotate", "lease", "forecaster", f"--namespace={NAMESPACE}")
    leader.cycle(namespace, 1, sizes=sized(0.3, 128))
    assert tried(api, namespace) == "300m"
    deployed.cluster.kubectl(*lease, f"{PAUSE_ANNOTATION}=true")
    try:
        wait_until(lambda: tried(api, namespace) == "100m", goal="the pause")
    finally:
        deployed.cluster.kubectl(*lease, f"{PAUSE_ANNOTATION}-")
    wait_until(lambda: tried(api, namespace) == "300m", goal="its end")


@pytest.mark.usefixtures("answering")
def test_with_an_authority_that_is_not_ours_pods_are_made_as_they_are(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    api = deployed.cluster.api
    before = api.get(WEBHOOK)["webhooks"][0]["clientConfig"]["caBundle"]
    leader.cycle(namespace, 1, sizes=sized(0.3, 128))
    try:
        trust(api, Authority(deployed.folder / "other", "other").bundle)
        wait_until(lambda: tried(api, namespace) == "100m", goal="the other authority")
        made(api, "web", namespace, 1)
        assert requests(api, namespace) == ["100m"]
    finally:
        trust(api, before)
        wait_until(lambda: tried(api, namespace) == "300m", goal="our authority")


@pytest.mark.usefixtures("answering")
def test_a_pod_whose_node_does_not_grant_its_size_goes_when_its_budget_lets_it(
    deployed: Deployed, leader: ActingReplica, namespace: str
) -> None:
    api, now = deployed.cluster.api, datetime.now(UTC)
    made(api, "stuck", namespace)
    wait_until(lambda: replicas(api, "stuck", namespace).ready == 2, goal="two pods")

    def cycle(minutes: int) -> Effected:
        at = now + timedelta(minutes=minutes)
        return leader.cycle(namespace, 2, at=at, name="stuck", sizes=sized(0.3, 64))["resize"]

    wait_until(lambda: ("resize", "written") in cycle(-45).writes, goal="a resize")
    node_reports(api, namespace, pending("Infeasible"))
    budget = {"selector": {"matchLabels": {"app": "stuck"}}, "minAvailable": 2}
    document = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"}, "spec": budget}
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    assert api.ask("POST", budgets, document).is_success
    refused = cycle(-8)
    assert refused.writes == {("evict", "failed"): 1}
    assert "disruption budget" in refused.failures[0]
    soon = cycle(-1)
    assert (soon.writes, soon.states["deferred"]) == ({}, 1)
    assert api.ask("DELETE", f"{budgets}/all").is_success
    leader.actuators.parts["resize"].tried.clear()  # type: ignore[attr-defined]  # ten minutes later
    wait_until(lambda: ("evict", "written") in cycle(0).writes, goal="an eviction")
    wait_until(
        lambda: requests(api, namespace) == ["100m", "300m"] and not resized_only(api, namespace), goal="the next"
    )


def resized_only(api: Api, namespace: str) -> list[Document]:
    """Pods that were not made with their size."""
    changed = (pod for pod in pods(api, namespace) if BEFORE in pod["metadata"].get("annotations", {}))
    return [pod for pod in changed if SIZE not in pod["metadata"]["annotations"]]


def tried(api: Api, namespace: str) -> str:
    """The CPU request of a pod as the controller of a Deployment `web` would make it, by a dry run."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "u", "controller": True}
    meta = {"name": "tried", "labels": {"pod-template-hash": "abc"}, "ownerReferences": [owner]}
    spec = deployment("web", 1)["spec"]["template"]["spec"]
    admitted = api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, namespace, dry_run=True)
    return str(admitted["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def trust(api: Api, bundle: str) -> None:
    change = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
    assert api.ask("PATCH", WEBHOOK, change, content_type="application/json-patch+json").is_success


@pytest.mark.usefixtures("answering")
def test_a_pod_has_more_cpu_until_it_has_started(deployed: Deployed, leader: ActingReplica, namespace: str) -> None:
    """The nodes are pretended: a pod is ready a moment after it was made."""
    api, began = deployed.cluster.api, datetime.now(UTC)

    def limits() -> list[str]:
        return [pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] for pod in pods(api, namespace)]

    leader.cycle(namespace, 2, name="slow")
    document = deployment("slow", 2)
    document["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "200m"}
    api.create(document, namespace)
    wait_until(lambda: replicas(api, "slow", namespace).ready == 2, goal="two pods that are ready")
    assert limits() == ["600m", "600m"]
    assert requests(api, namespace) == ["100m", "100m"]
    uids = [pod["metadata"]["uid"] for pod in pods(api, namespace)]
    leader.cycle(namespace, 2, at=began + timedelta(minutes=1), name="slow")
    assert limits() == ["200m", "200m"]
    assert [pod["metadata"]["uid"] for pod in pods(api, namespace)] == uids
    left = leader.cycle(namespace, 2, at=began + timedelta(minutes=2), name="slow")["resize"]
    assert left.writes["forget", "written"] >= 2
    for minute in (3, 15):
        leader.cycle(namespace, 2, at=began + timedelta(minutes=minute), name="slow", sizes=sized(0.15, 64))
    assert requests(api, namespace) == ["150m", "150m"], "one after the other"
    assert limits() == ["200m", "200m"]
    assert [pod["metadata"]["uid"] for pod in pods(api, namespace)] == uids
