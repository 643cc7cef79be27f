"""All actuators that write, over a fake API server: modes floor, scale and in-place, their undo and release."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forecaster.actuators.floor.actuator import FloorActuator
from forecaster.actuators.floor.autoscalers import Autoscalers
from forecaster.actuators.floor.plan import released
from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.release import ReleaseLine, release
from forecaster.actuators.resize.actuator import ResizeActuator
from forecaster.actuators.resize.plan import undone as size_undone
from forecaster.actuators.resize.pods import Resizes
from forecaster.actuators.scale.actuator import ScaleActuator
from forecaster.actuators.scale.plan import released as count_released
from forecaster.actuators.scale.scales import Scales
from forecaster.actuators.settings import ActingSettings, FloorSettings, ResizeSettings, ScaleSettings
from forecaster.app.effects import watched_autoscalers
from forecaster.domain.decision import Reason, Resize
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import ContainerSize, Resources, WorkloadId
from forecaster.resources.neighbours import Neighbours
from forecaster.sources.live_objects import BUILT_IN_KINDS
from tests.support.decided_records import RecordPublisher
from tests.support.fake_api_server import OURS, OWNER, FakeApiServer
from tests.support.fences import Fence, Log
from tests.support.recommendations import NOON, recommendation, signal_view

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from datetime import datetime

    from forecaster.domain.report import Effected
    from forecaster.sources.live import LiveCluster
    from tests.support.fake_api_server import Document

MIB = 2**20
SMALL, LARGE = (Resources(cpu_request=cpu, memory_request=memory * MIB) for cpu, memory in ((0.1, 64.0), (0.3, 128.0)))
MODES = ("floor", "scale", "resize")
POLICIES: dict[str, Document] = {
    "floor": {"mode": "floor"},
    "scale": {"mode": "scale", "horizontal": {"min_replicas": 1, "max_replicas": 20}},
    "resize": {"vertical": {"mode": "in-place"}},
    "observe": {},
}
KIND = {"floor": "Deployment", "scale": "Deployment", "resize": "StatefulSet"}


def path_of(mode: str, namespace: str, name: str = "web") -> str:
    """Path of the object that a mode writes."""
    if mode == "floor":
        return f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}"
    if mode == "scale":
        return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def object_of(mode: str, name: str = "web") -> Document:
    """An object as its owner applied it: a floor of 2, three replicas, or a small pod."""
    claim = {"manager": OWNER, "operation": "Update", "time": (NOON - timedelta(days=1)).isoformat()}
    if mode == "floor":
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        claim["fieldsV1"] = {"f:spec": {"f:minReplicas": {}}}  # type: ignore[assignment]
        spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 20}
        return {"metadata": {"managedFields": [claim]}, "spec": spec, "status": {"currentReplicas": 4}}
    if mode == "scale":
        claim["fieldsV1"] = {"f:spec": {"f:replicas": {}}}  # type: ignore[assignment]
        return {"metadata": {"managedFields": [claim]}, "spec": {"replicas": 3}, "status": {"replicas": 3}}
    owner = {"kind": "StatefulSet", "name": name, "controller": True}
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "app", "resources": {"requests": requests, "limits": {}}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-02-28T12:00:00Z"}
    status = {"conditions": [ready], "phase": "Running"}
    meta = {"ownerReferences": [owner], "labels": {}, "annotations": {}}
    return {"metadata": meta, "spec": {"containers": [container], "nodeName": "n1"}, "status": status}


def value_of(document: Document) -> Any:
    """The field that is written."""
    spec = document["spec"]
    return spec.get("minReplicas", spec.get("replicas")) or spec["containers"][0]["resources"]["requests"]["cpu"]


WISHED = {"floor": 7, "scale": 6, "resize": "300m"}
STATED = {"floor": 2, "scale": 3, "resize": "100m"}


@dataclass
class Hands:
    """One process over the workloads of some namespaces, which remembers no earlier process's writes."""

    server: FakeApiServer
    mode: str
    now: datetime = NOON
    acts: bool = True
    """Whether policies act; False: they only observe, so that earlier writes are undone."""
    reactive: int = 3
    """Replicas that the measured demand of each workload needs."""
    wished: int | None = 0
    """Recommended replicas; None: not known, 0: the count that this mode is for."""
    paused: bool = False
    written: list[Document] = field(default_factory=list)
    seconds: Callable[[], float] = lambda: 0.0
    """Clock for durations."""
    live: LiveCluster | None = None
    """Watched objects; None: everything is as it is now."""

    def __post_init__(self) -> None:
        none = Neighbours()
        self.policies = Policies(Policy.model_validate(POLICIES[self.mode if self.acts else "observe"]))
        queue = WriteQueue(self.mode, Fence(paused=self.paused), ActingSettings(), Log(self), seconds=self.seconds)
        client = self.server.client()
        hpas = Autoscalers(client, watched=lambda: watched_autoscalers(self.live))
        if self.mode == "floor":
            rules = FloorSettings(enabled=True, lower_after=timedelta(minutes=1))
            self.actuator: Any = FloorActuator(hpas, queue, self.policies, rules, lambda _: none)
        elif self.mode == "scale":
            scales, counts = Scales(client, BUILT_IN_KINDS), ScaleSettings(enabled=True)
            self.actuator = ScaleActuator(scales, hpas.listed, queue, self.policies, counts, lambda _: none)
        else:
            sizes = ResizeSettings(enabled=True)
            pods, running = Resizes(client, lambda id_: id_), self.live.running if self.live else self._running
            self.actuator = ResizeActuator(pods, running, queue, self.policies, sizes, lambda _: none)
        self.publisher = RecordPublisher(self.policies, {self.mode: self.actuator})

    def cycle(self) -> Effected:
        """Run one cycle, in which more is needed while the mode is on."""
        self.publisher.publish(self.now, [self._recommended(id_) for id_ in self._workloads()])
        done: Effected = self.actuator.act(self.now)
        self.now += timedelta(minutes=1)
        return done

    def cycles(self, count: int) -> None:
        """Some cycles."""
        for _ in range(count):
            self.cycle()

    def _workloads(self) -> list[WorkloadId]:
        paths = (path.split("/") for path in self.server.objects if path == path_of(self.mode, *path.split("/")[-3::2]))
        return sorted({WorkloadId(parts[-3], KIND[self.mode], parts[-1]) for parts in paths})

    def _recommended(self, id_: WorkloadId) -> Any:
        wished = self.wished
        if wished == 0:
            wished = {"floor": 7, "scale": 6}.get(self.mode, 2) if self.acts else self.reactive
        reason = Reason.NO_DATA if wished is None else Reason.FORECAST
        current = self._current(id_) if self.mode == "scale" else 3
        row = recommendation(id_, at=self.now, now=current, replicas=wished, reason=reason)
        view = replace(signal_view("cpu", self.now), forecast_replicas=wished, reactive_replicas=self.reactive)
        size = ContainerSize("app", SMALL, LARGE, None, None, "")
        return replace(row, signals=(view,), clamps=(), resources=Resize(LARGE, Reason.SIZED, "sized", (size,)))

    def _current(self, id_: WorkloadId) -> int:
        """Replicas of a Deployment as they are observed."""
        present = self.live.present(id_) if self.live else None
        return (
            present.replicas
            if present
            else int(value_of(self.server.objects[path_of("scale", id_.namespace, id_.name)]))
        )

    def _running(self, ids: Container[WorkloadId]) -> Iterator[tuple[WorkloadId, str, str, Resources]]:
        for path, document in list(self.server.objects.items()):
            namespace, name = path.split("/")[-3], path.split("/")[-1]
            if (id_ := WorkloadId(namespace, "StatefulSet", name)) in ids:
                yield id_, namespace, name, SMALL if _is_small(document) else LARGE


def _is_small(document: Document) -> bool:
    return bool(document["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m")


def released_objects_of(server: FakeApiServer, mode: str, now: datetime, *, expired: bool = False) -> list[ReleaseLine]:
    """`forecaster release`, or the expiry, over the objects of one mode."""
    client, undo = server.client(), UNDO[mode]
    cluster: Any = {"floor": Autoscalers, "scale": Scales, "resize": Resizes}[mode](client, *_MORE[mode])
    marked = cluster.listed(marked=True) if mode == "floor" else cluster.marked(**_ALL[mode])
    return list(release(cluster, marked, lambda subject: undo(subject, now, expired), now))


UNDO: dict[str, Callable[[Any, datetime, bool], Any]] = {
    "floor": lambda hpa, now, expired: released(hpa, now, expired=expired),
    "scale": lambda scale, _, __: count_released(scale, at_once=True),
    "resize": lambda pod, _, __: size_undone(pod, "released by command"),
}
_MORE: dict[str, tuple[Any, ...]] = {"floor": (), "scale": (BUILT_IN_KINDS,), "resize": (lambda id_: id_,)}
_ALL: dict[str, dict[str, bool]] = {"scale": {}, "resize": {"settled": True}}


NAMESPACES = ("shop", "team")
WRITTEN_AT = ("floor-expires", "watched", "size-before", "backed-off-until")
"""Marks that tell when they were written."""


def server_of(mode: str) -> FakeApiServer:
    server = FakeApiServer()
    for namespace in NAMESPACES:
        server.add(path_of(mode, namespace), object_of(mode))
    return server


def end_of(server: FakeApiServer) -> dict[str, Document]:
    """Values, marks and owners of fields; not when they were written."""
    states = {}
    for path, document in server.objects.items():
        meta = document["metadata"]
        marks = {**meta.get("labels", {}), **meta.get("annotations", {})}
        marks = {name: "" if name.endswith(WRITTEN_AT) else text for name, text in marks.items()}
        owners = {each["manager"] for each in meta.get("managedFields", ()) if "f:spec" in each["fieldsV1"]}
        states[path] = {"value": value_of(document), "marks": marks, "ours": OURS in owners}
    return states


def raised(mode: str) -> tuple[FakeApiServer, datetime]:
    server = server_of(mode)
    hands = Hands(server, mode)
    hands.cycles(3)
    return server, hands.now


def owner_sets(server: FakeApiServer, mode: str, namespace: str, count: int) -> None:
    """The owner applies a count, and the pods follow; one that is there already claims nothing."""
    document = deepcopy(server.objects[path_of(mode, namespace)])
    field_name = "minReplicas" if mode == "floor" else "replicas"
    if document["spec"][field_name] == count:
        return
    at = NOON + timedelta(seconds=len(server.requests))
    claim = {"manager": OWNER, "operation": "Update", "time": at.isoformat()}
    document["spec"][field_name] = count
    if mode == "scale":
        document["status"]["replicas"] = count
    document["metadata"]["managedFields"] = [claim | {"fieldsV1": {"f:spec": {f"f:{field_name}": {}}}}]
    server.put(path_of(mode, namespace), document)
