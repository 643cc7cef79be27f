"""An API server in memory, as far as actuators use one: versions, field managers, scale, resize, Events; and faults.

What it treats otherwise than a real one does: server-side apply knows labels and annotations of ours and `minReplicas`
alone, nothing is validated, and no controller runs.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from forecaster.kube.client import APPLY_PATCH, ApiClient, UnreachableError
from forecaster.kube.connections import RawAnswer, RawRequest
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]
OURS = "forecaster"
OWNER = "kubectl-client-side-apply"


class KilledError(BaseException):
    """The process has died: no boundary of its code catches that."""


@dataclass
class FakeApiServer:
    """Objects by path. `kill_at` numbers the request with which the process dies, by `answered` after its effect."""

    objects: dict[str, Document] = field(default_factory=dict)
    fault: Callable[[RawRequest], int | Exception | None] = lambda _: None
    """The status or error with which a request is answered; None: as usual."""
    requests: list[str] = field(default_factory=list)
    kill_at: int | None = None
    answered: bool = False
    events: int = 0
    changes: list[tuple[str, Document | None]] = field(default_factory=list)
    """Every state that an object had, by its path and in order; None: it is gone."""

    def client(self) -> ApiClient:
        """A client of a process that is alive."""
        return _Client(self)

    def add(self, path: str, document: Document) -> Document:
        """Put an object there, as its owner made it."""
        namespace, name = path.split("/namespaces/")[1].split("/", maxsplit=1)[0], path.rpartition("/")[2]
        meta = document.setdefault("metadata", {})
        meta.update({"namespace": namespace, "name": name, "uid": f"uid-{path}", "resourceVersion": "1"})
        self.objects[path] = document
        self.changes.append((path, deepcopy(document)))
        return document

    def exchange(self, request: RawRequest) -> RawAnswer:
        number = len(self.requests)
        self.requests.append(str(request))
        if number == self.kill_at and not self.answered:
            raise KilledError
        fault = self.fault(request)
        if isinstance(fault, Exception):
            raise fault
        answer = _answer(fault, {"message": "a test"}) if fault else self._answered(request)
        if number == self.kill_at:
            raise KilledError
        return answer

    def _answered(self, request: RawRequest) -> RawAnswer:
        url = urlsplit(request.target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if request.method == "GET":
            return self._read(url.path, query)
        body = json.loads(request.body or b"{}")
        if request.method == "POST":
            return self._create(url.path)
        path, _, subresource = url.path.partition("/scale")
        if path.endswith("/resize"):
            path, subresource = path.removesuffix("/resize"), "resize"
        document = self.objects.get(path)
        if document is None:
            return _answer(404, {"message": "not found"})
        meta, stated = document["metadata"], body.get("metadata", {})
        if any(stated.get(name, meta[name]) != meta[name] for name in ("uid", "resourceVersion")):
            return _answer(409, {"message": "the object has been modified"})
        changed = deepcopy(document)
        if request.content_type == APPLY_PATCH:
            self._apply(changed, body)
        elif url.path.endswith(("/scale", "/resize")):
            self._sub(changed, body, "resize" if subresource == "resize" else "scale")
        else:
            self._merge(changed, stated)
        if "data" in body:
            changed["data"] = changed.get("data", {}) | body["data"]
        self.put(path, changed)
        return _answer(200, changed)

    def put(self, path: str, changed: Document) -> None:
        """Replace an object by its next version."""
        changed["metadata"]["resourceVersion"] = str(int(changed["metadata"]["resourceVersion"]) + 1)
        self.objects[path] = changed
        self.changes.append((path, changed))

    def _read(self, path: str, query: dict[str, str]) -> RawAnswer:
        if path == "/version":
            return _answer(200, {"gitVersion": "v1.36.0"})
        if path in self.objects:
            return _answer(200, self.objects[path])
        collection = path.rpartition("/")[2]
        named = "/namespaces/" in path and f"/{collection}" in path
        if (
            named
            and path.count("/") > path.index("/namespaces/")
            and path.rpartition("/namespaces/")[2].count("/") == 2
        ):
            return _answer(404, {"message": "not found"})
        label, _, values = query.get("labelSelector", "").partition(" in ")
        items = []
        for key, document in self.objects.items():
            labels = document["metadata"].get("labels", {})
            inside = key.split("/")[-2] == collection
            if inside and (not label or (label in labels and (not values or labels[label] in values))):
                items.append(document)
        return _answer(200, {"metadata": {}, "items": items})

    def _create(self, path: str) -> RawAnswer:
        if path.endswith("/eviction"):
            del self.objects[path.removesuffix("/eviction")]
            self.changes.append((path.removesuffix("/eviction"), None))
        self.events += path.endswith("/events")
        return _answer(201, {"metadata": {}, "involvedObject": {}} | _EVENT)

    def _apply(self, document: Document, body: Document) -> None:
        meta, applied = document["metadata"], body["metadata"]
        for kind in ("labels", "annotations"):
            others = {name: text for name, text in meta.get(kind, {}).items() if not _is_ours(name)}
            meta[kind] = others | applied.get(kind, {})
        managers = [each for each in meta.get("managedFields", ()) if each["manager"] != OURS]
        spec = body.get("spec") or {}
        if "minReplicas" in spec:
            changed = spec["minReplicas"] != document["spec"]["minReplicas"]
            document["spec"]["minReplicas"] = spec["minReplicas"]
            managers = [] if changed else managers
        fields = {"f:spec": {"f:minReplicas": {}}} if spec else {"f:metadata": {}}
        meta["managedFields"] = [*managers, self._claim(fields)]

    def _sub(self, document: Document, body: Document, subresource: str) -> None:
        managers = [
            each for each in document["metadata"].get("managedFields", ()) if each.get("subresource") != subresource
        ]
        if subresource == "scale":
            if body["spec"]["replicas"] != document["spec"]["replicas"]:
                managers = [each for each in managers if "f:replicas" not in str(each)]
            document["spec"]["replicas"] = document["status"]["replicas"] = body["spec"]["replicas"]
        else:
            sizes = {each["name"]: each["resources"] for each in body["spec"].get("containers", ())}
            for container in document["spec"]["containers"]:
                container["resources"] = sizes.get(container["name"], container["resources"])
        claim = self._claim({"f:spec": {"f:replicas": {}}}) | {"subresource": subresource}
        document["metadata"]["managedFields"] = [*managers, claim]

    def _merge(self, document: Document, stated: Document) -> None:
        meta = document["metadata"]
        for kind in ("labels", "annotations"):
            merged = meta.get(kind, {}) | (stated.get(kind) or {})
            meta[kind] = {name: text for name, text in merged.items() if text is not None}
        if "managedFields" in stated:
            meta["managedFields"] = [each for each in stated["managedFields"] if each]
        else:
            own = [each for each in meta.get("managedFields", ()) if each["manager"] == OURS and "subresource" in each]
            others = [each for each in meta.get("managedFields", ()) if each["manager"] != OURS]
            meta["managedFields"] = [*others, *own, self._claim({"f:metadata": {}})]

    def _claim(self, fields: Document) -> Document:
        """Fields that our manager owns, noted a second after every claim before."""
        at = NOON + timedelta(seconds=len(self.requests))
        return {"manager": OURS, "operation": "Update", "time": at.isoformat(), "fieldsV1": fields}


class _Client(ApiClient):
    def __init__(self, server: FakeApiServer) -> None:
        super().__init__(lambda: (_ for _ in ()).throw(UnreachableError("no configuration is needed")))
        self._server = server

    def exchange(self, request: RawRequest) -> RawAnswer:
        return self._server.exchange(request)


_EVENT = {"reason": "", "message": "", "type": "", "firstTimestamp": "", "lastTimestamp": "", "count": 1, "source": {}}
_EVENT |= {"involvedObject": {"namespace": "", "name": "", "uid": "", "apiVersion": "", "kind": ""}}


def _is_ours(name: str) -> bool:
    return name.startswith("forecaster.dev/")


def _answer(status: int, document: Document) -> RawAnswer:
    return RawAnswer(status, json.dumps(document).encode(), "application/json")
