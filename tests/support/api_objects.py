"""Objects as an API server lists and streams them, and an API server that answers from a script."""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecaster.kube.connections import RawAnswer, RawRequest
from forecaster.resources.objects import camel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Document = dict[str, Any]


def in_objects(value: Any) -> Any:
    """A value of the settings in the names of objects, at every depth."""
    if isinstance(value, dict):
        return {camel(key): in_objects(each) for key, each in value.items()}
    return [in_objects(each) for each in value] if isinstance(value, list | tuple) else value


def metadata(name: str, namespace: str = "shop", version: int = 1, owner: tuple[str, str] | None = None) -> Document:
    fields: Document = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    if owner:
        fields["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return fields


def own_marks(*documents: Document) -> set[str]:
    """Keys of labels and annotations of ours on these objects."""
    parts = [document["metadata"].get(part) or {} for document in documents for part in ("labels", "annotations")]
    return {key for part in parts for key in part if key.startswith("forecaster.dev/")}


def container(name: str = "app", cpu: str = "500m", memory: str = "1Gi", **more: object) -> Document:
    return {"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def deployment(
    name: str = "web", replicas: int | None = 3, *containers: Document, version: int = 1, **spec: object
) -> Document:
    template = {"spec": {"containers": list(containers) or [container()], **spec}}
    selector = {"matchLabels": {"app": name}}
    stated = {} if replicas is None else {"replicas": replicas}
    return {
        "metadata": metadata(name, version=version),
        "spec": {**stated, "selector": selector, "template": template},
        "status": {"replicas": replicas or 0, "readyReplicas": replicas or 0},
    }


def hpa(*metrics: Document, name: str = "web", workload: str = "web", version: int = 1, **spec: object) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}
    stated = {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 9, "metrics": list(metrics), **spec}
    return {"metadata": metadata(name, version=version), "spec": stated}


def external(metric: str, average: str, **labels: str) -> Document:
    selector = {"selector": {"matchLabels": labels}} if labels else {}
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "External", "external": {"metric": {"name": metric, **selector}, "target": target}}


def pod(name: str, owner: tuple[str, str], *containers: Document, phase: str = "Running", **meta: object) -> Document:
    return {
        "metadata": metadata(name, owner=owner) | meta,
        "spec": {"containers": list(containers) or [container()], "nodeName": "node-1"},
        "status": {"phase": phase, "conditions": []},
    }


def event(kind: str, document: Document) -> bytes:
    return json.dumps({"type": kind, "object": document}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def page(*items: Document, version: int = 1, more: str = "") -> RawAnswer:
    meta = {"resourceVersion": str(version), "continue": more}
    return RawAnswer(200, json.dumps({"metadata": meta, "items": items}).encode(), "application/json")


def refusal(status: int, message: str = "no") -> RawAnswer:
    return RawAnswer(status, json.dumps({"kind": "Status", "message": message}).encode(), "application/json")


Answer = RawAnswer | list[bytes] | Exception


@dataclass
class ScriptedServer:
    """Gives its answers one after the other, whatever the request; a list of pieces is a stream."""

    answers: deque[Answer] = field(default_factory=deque)
    requests: list[RawRequest] = field(default_factory=list)
    """The requests so far."""
    during: Callable[[], None] = lambda: None
    """Called while a stream is open, before its first piece."""

    @classmethod
    def of(cls, *answers: Answer) -> ScriptedServer:
        return cls(deque(answers))

    def exchange(self, request: RawRequest) -> RawAnswer:
        answer = self._next(request)
        assert isinstance(answer, RawAnswer), f"{request} got a stream"
        return answer

    @contextmanager
    def stream(self, request: RawRequest, silence: float) -> Iterator[RawAnswer | Iterator[bytes]]:
        assert silence > 0
        answer = self._next(request)
        yield answer if isinstance(answer, RawAnswer) else self._pieces(answer)

    def _pieces(self, pieces: Sequence[bytes]) -> Iterator[bytes]:
        self.during()
        yield from pieces

    def _next(self, request: RawRequest) -> RawAnswer | list[bytes]:
        self.requests.append(request)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer


def played(watch: Any, *answers: Answer) -> ScriptedServer:
    """Let a watch ask until it has had each answer in its turn."""
    server = ScriptedServer.of(*answers)
    while server.answers:
        watch.step(server, threading.Event())
    return server


def lists(cluster: Any, objects: Mapping[str, Sequence[Document]]) -> None:
    """Let the watches of a cluster know these objects, by the end of their path; the other collections are empty."""
    for watch in cluster.watches:
        played(watch, page(*objects.get(watch.path.rpartition("/")[2], ())))
