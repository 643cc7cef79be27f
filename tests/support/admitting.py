"""New pods at admission: the sizes that the actuator of mode `initial` has written, and the answer of its webhook."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forecaster.actuators.resize.admitting import InitialActuator
from forecaster.actuators.resize.pods import NamespaceRules
from forecaster.actuators.settings import ActingSettings
from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import ContainerSize, Resources, WorkloadId
from forecaster.publish.new_pods import NewPodsFile, new_pods_path
from forecaster.publish.publisher import offered_cycle
from forecaster.resources.neighbours import Neighbours
from forecaster.serving.new_pods import NewPodAdmission
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.builders import NOON
from tests.support.decided_records import decided_fleet
from tests.support.fences import Fence
from tests.support.recommendations import recommendation

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.actuators.resize.sized_pod import ResizablePod

Document = dict[str, Any]
WEB = WorkloadId("shop", "Deployment", "web")
MIB = 2.0**20
MINUTE = timedelta(minutes=1)
FITS = Hold(Reason.FITS, "it fits")


@dataclass
class FakeRules:
    """A cluster whose namespaces admit everything that a test does not exclude."""

    limit_ranges: dict[str, list[Document]] = field(default_factory=dict)
    pods: list[ResizablePod] = field(default_factory=list)
    of_nodes: list[Document] = field(default_factory=list)

    def nodes(self) -> list[Document]:
        return self.of_nodes

    def marked(self, *, settled: bool = False) -> list[ResizablePod]:
        return self.pods

    def rules(self) -> NamespaceRules:
        return NamespaceRules(LATEST_SERVER, self.limit_ranges, {})


@dataclass
class Admitting:
    """An actuator and what its file is answered by."""

    actuator: InitialActuator
    path: Path

    def cycle(self, decided: Resize | Hold, *, minutes: float = 0, now: Resources | None = None) -> dict[str, int]:
        at = NOON + minutes * MINUTE
        row = replace(recommendation(WEB, at=at, now=2), resources=decided, resources_now=now or Resources(0.1))
        self.actuator.receive(offered_cycle(at, decided_fleet([row], at), [Policy()]))
        return dict(self.actuator.act(at).states)

    def made(self, pod: Document | None = None, *, minutes: float = 0, **request: object) -> Document:
        """A pod as it is after the answer."""
        pod = pod or web()
        body = {"request": {"uid": "u", "namespace": "shop", "operation": "CREATE", "object": pod, **request}}
        admission = NewPodAdmission(NewPodsFile(self.path), lambda: NOON + minutes * MINUTE)
        response = json.loads(admission.answer("POST", json.dumps(body).encode()).body)["response"]
        assert (response["uid"], response["allowed"]) == ("u", True)
        return patched(pod, json.loads(base64.b64decode(response["patch"]))) if response["patch"] else pod


def admitting_in(folder: Path) -> Admitting:
    path = new_pods_path(folder / "recommendations.table")
    policies = Policies(Policy.model_validate({"vertical": {"mode": "initial"}}))
    return Admitting(
        InitialActuator(FakeRules(), path, MINUTE, Fence(), ActingSettings(), policies, lambda _: Neighbours(), dict),
        path,
    )


def sized(cpu: float = 0.3, name: str = "app") -> Resize:
    new = Resources(cpu_request=cpu, memory_request=128 * MIB)
    return Resize(new, Reason.SIZED, "sized", (ContainerSize(name, Resources(), new, None, None, ""),))


def web(owner: str = "web-abc", kind: str = "ReplicaSet", hashed: str = "abc", **meta: object) -> Document:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi"}, "claims": [{"name": "one"}]}
    owners = [{"kind": kind, "name": owner, "controller": True}]
    metadata = {"generateName": "web-", "labels": {"pod-template-hash": hashed}, "ownerReferences": owners, **meta}
    return {"metadata": metadata, "spec": {"containers": [{"name": "app", "resources": resources}]}}


def patched(pod: Document, operations: list[Document]) -> Document:
    """Apply JSON Patch operations (RFC 6902) of kind `add` to a pod."""
    patched_pod = json.loads(json.dumps(pod))
    for operation in operations:
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"][1:].split("/")]
        at = patched_pod
        for part in above:
            at = at[int(part)] if isinstance(at, list) else at[part]
        assert operation["op"] == "add"
        at[last] = operation["value"]
    return dict(patched_pod)
