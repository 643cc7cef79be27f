"""Groups of pods that scale as one, on the real HPA controller: the count is that of the leaders of a LeaderWorkerSet.

Its own controller is not here: the test makes what it would, the StatefulSet of the leaders and the status of the group
(kubernetes-sigs/lws, `pkg/controllers/leaderworkerset_controller.go`).
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.workload import WorkloadId
from tests.support.control_plane.acting import ActingReplica, apply_components, watched
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane

GROUP, PLURAL = "leaderworkerset.x-k8s.io", "leaderworkersets"
LWS, HPA = "LeaderWorkerSet", "HorizontalPodAutoscaler"
LEADERS = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/worker-index": "0"}


def definition() -> Document:
    """The kind as far as a scale subresource needs it: its selector finds leaders alone."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    scale = paths | {"labelSelectorPath": ".status.hpaPodSelector"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": LWS, "plural": PLURAL},
            "versions": [version | {"subresources": {"status": {}, "scale": scale}}],
        },
    }


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    folder = tmp_path_factory.mktemp("groups")
    (folder / "crd.json").write_text(json.dumps(definition()))
    control_plane.install(folder)
    apply_components(control_plane, tmp_path_factory.mktemp("hands"), "floor", "scale")
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
    return control_plane


@pytest.fixture
def groups(plane: ControlPlane, namespace: str) -> str:
    """A namespace with two groups of pods, their leaders, and an HPA of the groups."""
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/{PLURAL}"
    body = {"apiVersion": f"{GROUP}/v1", "kind": LWS, "metadata": {"name": "llm"}, "spec": {"replicas": 2}}
    plane.kubectl("create", "-f", "-", f"--namespace={namespace}", given=json.dumps(body))
    selector = ",".join(f"{name}={value}" for name, value in LEADERS.items())
    status = {"status": {"replicas": 2, "hpaPodSelector": selector}}
    subresource = ("--subresource=status", "--type=merge", "-p", json.dumps(status))
    plane.kubectl("patch", f"{PLURAL}.{GROUP}/llm", f"--namespace={namespace}", *subresource)
    plane.api.create(leaders(plane.api.get(f"{path}/llm")["metadata"]["uid"]), namespace)
    plane.api.create(autoscaler(), namespace)
    return namespace


def leaders(uid: str) -> Document:
    """The StatefulSet that the controller of the group makes of its leaders."""
    owner = {"apiVersion": f"{GROUP}/v1", "kind": LWS, "name": "llm", "uid": uid, "controller": True}
    manifest = deployment("llm", 2)
    manifest["kind"], manifest["metadata"]["ownerReferences"] = "StatefulSet", [owner]
    spec = manifest["spec"]
    spec["serviceName"], spec["selector"]["matchLabels"] = "llm", LEADERS
    spec["template"]["metadata"]["labels"] = LEADERS
    return manifest


def autoscaler() -> Document:
    manifest = external_hpa("llm", target="1", most=10)
    manifest["spec"]["scaleTargetRef"] = {"apiVersion": f"{GROUP}/v1", "kind": LWS, "name": "llm"}
    metric = manifest["spec"]["metrics"][0]["external"]["metric"]
    metric["selector"]["matchLabels"]["kind"] = "StatefulSet"
    return manifest


def desired(plane: ControlPlane, namespace: str) -> int:
    """Number of groups that the object asks for."""
    document = plane.api.get(f"/apis/{GROUP}/v1/namespaces/{namespace}/{PLURAL}/llm")
    return int(document["spec"]["replicas"])


@pytest.fixture
def replica(plane: ControlPlane) -> Iterator[ActingReplica]:
    """One forecaster with every live fact, that may floor and scale."""
    with ExitStack() as parts:
        live = parts.enter_context(watched(plane.account("forecaster", NAMESPACE)))
        given = {"floor": {"enabled": True}, "scale": {"enabled": True}, "policy": {"mode": "floor"}}
        built = ActingReplica(plane, parts, given, live)
        built.until_leading()
        yield built


def test_the_hpa_of_a_group_is_that_of_its_leaders(plane: ControlPlane, groups: str) -> None:
    with watched(plane.account("forecaster", NAMESPACE)) as live:
        inventory = live.inventory(datetime.now(UTC), ["StatefulSet"], re.compile(groups))
    (llm,) = inventory.workloads
    assert llm.id == WorkloadId(groups, "StatefulSet", "llm")
    assert llm.autoscaler is not None
    assert (llm.autoscaler.name, llm.autoscaler.max_replicas) == ("llm", 10)
    assert [(target.metric, target.signal) for target in llm.autoscaler.targets] == [("forecaster_demand", "cpu")]
    assert (llm.replicas, llm.resources.cpu_request) == (2, 0.1)
    assert inventory.faults == ()


def test_a_floor_raises_the_groups_ahead_of_the_load(plane: ControlPlane, groups: str, replica: ActingReplica) -> None:
    wait_until(lambda: plane.api.condition(HPA, "llm", "AbleToScale", groups) != {}, goal="the HPA")
    replica.cycle(groups, 5, name="llm", kind="StatefulSet")
    assert plane.api.read(HPA, "llm", groups)["spec"]["minReplicas"] == 5
    wait_until(lambda: desired(plane, groups) == 5, goal="five groups")


def test_the_leaders_are_never_scaled_beside_the_controller_of_their_group(plane: ControlPlane, groups: str) -> None:
    plane.api.delete(HPA, "llm", groups)
    with ExitStack() as parts:
        live = parts.enter_context(watched(plane.account("forecaster", NAMESPACE)))
        policy = {"mode": "scale", "horizontal": {"min_replicas": 1, "max_replicas": 10}}
        scaling = ActingReplica(plane, parts, {"scale": {"enabled": True}, "policy": policy}, live)
        scaling.until_leading()
        done = scaling.cycle(groups, 5, name="llm", kind="StatefulSet")["scale"]
    assert done.writes == {}
    assert done.reasons == {("refused", "owned"): 1}
    assert plane.api.read("StatefulSet", "llm", groups)["spec"]["replicas"] == 2
