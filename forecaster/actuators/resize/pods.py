"""Running pods through the API server: read, resized, given back. Wire types and requests, no rule but their form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from forecaster.actuators import marks
from forecaster.actuators.headroom import AdmissionAt, NamespaceAdmission
from forecaster.actuators.marks import EventKind, InvolvedObject, MergePatch, RawObject
from forecaster.actuators.resize.sized_pod import ResizablePod, Resized, ResizeWrite, sizes_text
from forecaster.actuators.writes import MANAGER, Change
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.collection import listed
from forecaster.kube.objects import AnnotatedMeta, Wire
from forecaster.kube.watch import Followed
from forecaster.vertical.admission.context import WHOLE_POD
from forecaster.vertical.cluster_rules.manifest import ManifestError, limit_range_of, pod_of, quota_of, requirements_of
from forecaster.vertical.cluster_rules.pod import Requirements
from forecaster.vertical.cluster_rules.resize import PodCondition, resize_status
from forecaster.vertical.cluster_rules.resource_list import texts
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

LABEL: Final = "forecaster.dev/resize"
"""`kubectl get pods -A -l forecaster.dev/resize` lists our resized pods, and so does `forecaster release`."""
WATCHED, SETTLED, BACKED_OFF = "watched", "settled", "backed-off"
BEFORE: Final = "forecaster.dev/size-before"
BACK_OFF: Final = "forecaster.dev/resize-backed-off-until"
SIZE: Final = "forecaster.dev/size"
"""Annotation of a new pod: its size, and why."""
VPA: Final = "vpaObservedContainers"
"""Annotation of pods that a Vertical Pod Autoscaler sized."""
BUDGET = "disruption budget"
"""Text in the API server's refusal of an eviction."""
RULES = ("/api/v1/limitranges", "/api/v1/resourcequotas")
"""Collections that say which sizes are admitted."""
NODES = "/api/v1/nodes"
STATUS = frozenset({"hard", "used", "allocatable"})
"""Fields of a status that decide which sizes are admitted."""
PAGE = 200
EVENTS = {
    Change.RESIZE: EventKind("Resized"),
    Change.EVICT: EventKind("EvictedForSize"),
    Change.RESTORE: EventKind("SizeRestored"),
    Change.ROLL_BACK: EventKind("SizeRolledBack", warns=True),
    Change.YIELD: EventKind("ResizeBackedOff", warns=True),
}
"""Events by change; marks that are removed or changed have none."""

Document = dict[str, Any]


class RuleObject(Wire, frozen=True):
    """A LimitRange, a ResourceQuota or a Node."""

    metadata: AnnotatedMeta
    spec: Document = msgspec.field(default_factory=dict)
    status: Document = msgspec.field(default_factory=dict)


class Eviction(msgspec.Struct, frozen=True, rename="camel"):
    """policy/v1."""

    metadata: Document
    delete_options: Document
    api_version: str = "policy/v1"
    kind: str = "Eviction"


class PersistedSize(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation with a pod's former sizes."""

    at: datetime
    restarts: int
    before: dict[str, dict[str, dict[str, str]]] = msgspec.field(name="containers")
    new: bool = False
    errors: float | None = None
    started: dict[str, dict[str, dict[str, str]]] = {}
    boosted_until: datetime | None = None


class NamespaceRules(NamedTuple):
    """Admission rules of pods by namespace, as the API server has them."""

    server: Server
    limit_ranges: Mapping[str, list[Document]]
    quotas: Mapping[str, list[Document]]


class Resizes:
    """Running pods with the rights of an account; `owner_of` finds the workload above a ReplicaSet."""

    def __init__(
        self,
        client: ApiClient,
        owner_of: Callable[[WorkloadId], WorkloadId],
        *,
        dry_run: bool = False,
        reader: ApiClient | None = None,
        followed: Followed | None = None,
    ) -> None:
        """Collections in `followed` are watched and not listed again."""
        self._client, self._reader, self._owner_of = client, reader or client, owner_of
        self._followed = followed
        self._dry_run = "&dryRun=All" if dry_run else ""
        self._server: Server | None = None

    def marked(self, *, settled: bool = False) -> list[ResizablePod]:
        """Return the watched pods with our annotation; with `settled` also settled ones. Raises ApiError."""
        label = LABEL if settled else f"{LABEL} in ({WATCHED},{BACKED_OFF})"
        return [*map(self._read, listed(self._reader, "/api/v1/pods", Document, limit=PAGE, marked=label))]

    def of(self, namespace: str, name: str) -> ResizablePod | None:
        """Return one pod as it is now; None where it is gone. Raises ApiError."""
        try:
            return self._read(self._reader.get(_path(namespace, name), dict))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def again(self, pod: ResizablePod) -> ResizablePod:
        """Read the pod again from the API server. Raises ApiError."""
        return self._read(self._client.get(_path(pod.namespace, pod.name), dict))

    def admission(self) -> AdmissionAt:
        """Return the admission rules by namespace; the first call reads the rules of all namespaces."""
        rules = cache(self.rules)

        def admission(namespace: str) -> NamespaceAdmission:
            server, *known = rules()
            ranges, quotas = (grouped.get(namespace, ()) for grouped in known)
            return NamespaceAdmission(server, tuple(map(limit_range_of, ranges)), tuple(map(quota_of, quotas)))

        return cache(admission)

    def rules(self) -> NamespaceRules:
        """Read the admission rules of every namespace. Raises ApiError."""
        return NamespaceRules(self._version(), *(by_namespace(self._rules(kind)) for kind in RULES))

    def nodes(self) -> list[Document]:
        """All nodes. Raises ApiError."""
        return self._rules(NODES)

    def write(self, write: ResizeWrite) -> None:
        """Carry out one change of the version that it was decided on. Raises ApiError, 409 for another version.

        What the pod had is written down before its size is changed, and removed after it is back.
        """
        pod, version = write.subject, write.subject.version
        if write.change == Change.RESIZE and write.resized is not None:
            version = self._mark(pod, WATCHED, {BEFORE: resized_text(write.resized), BACK_OFF: None}, version)
        if write.sizes:
            blocks = {name: resources_block(size) for name, size in write.sizes.items()}
            whole = {"resources": blocks.pop(WHOLE_POD)} if WHOLE_POD in blocks else {}
            spec, sidecars = dict[str, Any](whole), {container.name for container in pod.pod.init_containers}
            for name, block in blocks.items():
                kind = "initContainers" if name in sidecars else "containers"
                spec.setdefault(kind, []).append({"name": name, "resources": block})
            path = f"{_path(pod.namespace, pod.name)}/resize?{self._query()}"
            self._client.merge_strategically(path, MergePatch({"uid": pod.uid, "resourceVersion": version}, spec), dict)
        match write.change:
            case Change.EVICT:
                self._evict(pod)
            case Change.SETTLE:
                self._mark(pod, SETTLED, {}, version)
            case Change.ROLL_BACK if write.backed_off_until:
                until = marks.instant_text(write.backed_off_until)
                self._mark(pod, BACKED_OFF, {BEFORE: None, SIZE: None, BACK_OFF: until})
            case Change.RESTORE | Change.FORGET | Change.YIELD:
                marks.retry_conflicts(lambda: self._give_back(pod, write.backed_off_until))
            case _:
                pass

    def record(self, write: ResizeWrite, at: datetime) -> None:
        """The Event of a change, beside its pod. Raises ApiError."""
        if write.change in EVENTS and not self._dry_run:
            pod = write.subject
            was = sizes_text({name: pod.sizes[name] for name in write.sizes})
            moved = f"{was} → {sizes_text(write.sizes)}: " if write.sizes else ""
            involved = InvolvedObject(pod.namespace, pod.name, pod.uid, "v1", "Pod")
            marks.create_event(self._client, marks.event_of(write, involved, EVENTS[write.change], moved, at))

    def _evict(self, pod: ResizablePod) -> None:
        """Evict a pod through its PodDisruptionBudgets; a budget that keeps the pod is no sign of a busy API server."""
        body = Eviction({"name": pod.name, "namespace": pod.namespace}, {"preconditions": {"uid": pod.uid}})
        try:
            self._client.create(f"{_path(pod.namespace, pod.name)}/eviction?{self._query()}", body, dict)
        except ApiError as error:
            if error.status == HTTPStatus.TOO_MANY_REQUESTS and BUDGET in str(error):
                raise ApiError(str(error), HTTPStatus.LOCKED) from error
            raise

    def _rules(self, path: str) -> list[Document]:
        known = self._followed.objects(path) if self._followed else None
        if known is None:
            known = [*map(_rule, listed(self._reader, path, RuleObject, limit=PAGE))]
            if self._followed:
                self._followed.begin(path, RuleObject, _rule)
        return known

    def _version(self) -> Server:
        if self._server is None:
            try:
                self._server = Server.parse(str(self._reader.get("/version", dict).get("gitVersion")))
            except ValueError:
                self._server = LATEST_SERVER
        return self._server

    def _mark(
        self, pod: ResizablePod, label: str | None, annotations: Mapping[str, str | None], version: str = ""
    ) -> str:
        """The version after these marks were put on it, where one is named over that one."""
        metadata: Document = {"labels": {LABEL: label}, "annotations": annotations}
        body = MergePatch(metadata | ({"resourceVersion": version} if version else {}))
        patched = self._client.patch(f"{_path(pod.namespace, pod.name)}?{self._query()}", body, dict)
        return version if self._dry_run else str(patched["metadata"]["resourceVersion"])

    def _give_back(self, pod: ResizablePod, backed_off_until: datetime | None = None) -> None:
        """Remove our claim on sizes and our marks, except that of a back-off."""
        path = _path(pod.namespace, pod.name)
        body = marks.unmarked(self._client.get(path, RawObject), (LABEL,), (BEFORE, BACK_OFF, SIZE))
        if backed_off_until:
            body.metadata["labels"][LABEL] = BACKED_OFF
            body.metadata["annotations"][BACK_OFF] = marks.instant_text(backed_off_until)
        self._client.patch(f"{path}?{self._query()}", body, RawObject)

    def _query(self) -> str:
        return f"fieldManager={MANAGER}{self._dry_run}"

    def _read(self, document: Document) -> ResizablePod:
        return resizable_pod(document, self._owner_of)


def _rule(rule: RuleObject) -> Document:
    """Return the fields of an object that sizing needs: most of a node, for example, is its list of images."""
    meta = rule.metadata
    status = {name: amounts for name, amounts in rule.status.items() if name in STATUS}
    named = {"name": meta.name, "namespace": meta.namespace, "labels": meta.labels}
    return {"metadata": named, "spec": rule.spec, "status": status}


def by_namespace(rules: Iterable[Document]) -> dict[str, list[Document]]:
    """LimitRanges or ResourceQuotas."""
    grouped: dict[str, list[Document]] = {}
    for rule in rules:
        grouped.setdefault(rule["metadata"]["namespace"], []).append(rule)
    return grouped


def resizable_pod(document: Document, owner_of: Callable[[WorkloadId], WorkloadId]) -> ResizablePod:
    """Reduce a pod to the parts that resizing needs."""
    meta, status = document["metadata"], document.get("status") or {}
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    namespace = meta.get("namespace", "")
    owners = meta.get("ownerReferences") or ()
    controller: Document = next((owner for owner in owners if owner.get("controller")), {})
    workload = owner_of(WorkloadId(namespace, controller.get("kind", "Pod"), controller.get("name", meta["name"])))
    conditions = [
        PodCondition(condition["type"], condition["status"], condition.get("reason", ""), condition.get("message", ""))
        for condition in status.get("conditions") or ()
    ]
    resized, fault = _resized_of(annotations.get(BEFORE))
    message = next((condition.message for condition in conditions if condition.type.startswith("PodResize")), "")
    return ResizablePod(
        namespace=namespace,
        name=meta["name"],
        uid=meta.get("uid", ""),
        version=meta.get("resourceVersion", ""),
        workload=workload,
        pod=pod_of(document),
        node=(document.get("spec") or {}).get("nodeName", ""),
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in conditions),
        restarts=sum(container.get("restartCount", 0) for container in status.get("containerStatuses") or ()),
        status=resize_status(conditions),
        node_message=message,
        writers=_writers(meta.get("managedFields") or ()),
        resized=resized,
        settled=labels.get(LABEL) == SETTLED,
        backed_off_until=marks.instant_of(annotations, BACK_OFF),
        marked=LABEL in labels,
        deleted=meta.get("deletionTimestamp") is not None,
        owner="a VerticalPodAutoscaler sized it" if VPA in annotations else "",
        fault=fault,
    )


def _writers(managers: Sequence[Document]) -> frozenset[str]:
    """Field managers that resized the pod, without those that did before our marks: its own size has theirs."""
    own_marks = (entry for entry in managers if entry.get("manager") == MANAGER and not entry.get("subresource"))
    marked = max((entry.get("time", "") for entry in own_marks), default="")
    resized = [
        (entry.get("manager", ""), entry.get("time", marked))
        for entry in managers
        if entry.get("subresource") == "resize"
    ]
    return frozenset(manager for manager, at in resized if manager == MANAGER or at >= marked)


def resized_text(resized: Resized) -> str:
    """Encode the former sizes of a pod for its annotation."""
    before, started = (
        {name: resources_block(size) for name, size in sizes.items()} for sizes in (resized.before, resized.started)
    )
    return msgspec.json.encode(PersistedSize(**{**resized._asdict(), "before": before, "started": started})).decode()


def _resized_of(text: str | None) -> tuple[Resized | None, str]:
    if text is None:
        return None, ""
    try:
        persisted = msgspec.json.decode(text, type=PersistedSize)
        before, started = (
            {name: requirements_of(block) for name, block in sizes.items()}
            for sizes in (persisted.before, persisted.started)
        )
    except (msgspec.MsgspecError, ManifestError, ValueError, RecursionError) as error:
        return None, f"annotation {BEFORE} cannot be read ({error}); delete the pod, its template has its size"
    at = max(_aware(persisted.at), marks.LONG_AGO)
    until = persisted.boosted_until and _aware(persisted.boosted_until)
    return Resized(before, at, persisted.restarts, persisted.new, persisted.errors, started, until), ""


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def resources_block(size: Requirements) -> dict[str, dict[str, str]]:
    """`resources` as a manifest has them."""
    return {"requests": texts(size.requests), "limits": texts(size.limits)}


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
