"""HorizontalPodAutoscalers through the API server: listed, applied to, given back. Wire types and requests, no rule."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

from forecaster.actuators.values import MANAGER, FloorChange, LiveAutoscaler, Write, WrittenFloor
from forecaster.domain.policy import Mode
from forecaster.domain.workload import WorkloadId
from forecaster.hpa.limits import ReplicaBounds
from forecaster.kube.client import ApiError, decoder_of
from forecaster.kube.objects import HorizontalPodAutoscaler, ObjectMeta, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from forecaster.kube.client import ApiClient
    from forecaster.kube.objects import HorizontalPodAutoscalerMeta

LABEL = "forecaster.dev/floor"
"""`kubectl get hpa -A -l forecaster.dev/floor` lists what is ours, and so does `forecaster release`."""
RAISED, BACKED_OFF, RESTORED = "raised", "backed-off", "restored"
BEFORE = "forecaster.dev/min-replicas-before"
EXPIRES = "forecaster.dev/floor-expires"
BACK_OFF = "forecaster.dev/floor-backed-off-until"
MODE = "forecaster.dev/mode"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
COUNT_DIGITS = 10
"""Of the largest `minReplicas` that the API server takes. Longer texts are no count, and some no number for Python."""
PAGE = 500
"""HPAs in one answer: about 2 MB, of 8 that an answer may have."""
AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"


class TargetReference(Wire, frozen=True):
    """What an HPA scales."""

    kind: str = ""
    name: str = ""


class Spec(Wire, frozen=True):
    """What is needed of an HPA's specification."""

    scale_target_ref: TargetReference = TargetReference()
    min_replicas: int = 1
    max_replicas: int = 1


class PageMeta(Wire, frozen=True, rename={"remaining": "continue"}):
    """Of a page."""

    remaining: str = ""
    """The token of the next page; empty on the last one."""


class AutoscalerList(Wire, frozen=True):
    """One page."""

    metadata: PageMeta = PageMeta()
    items: tuple[HorizontalPodAutoscaler, ...] = ()


class Applied(Wire, frozen=True):
    """What is applied, or merged; `spec` has `minReplicas` alone, or is left out."""

    metadata: dict[str, Any]
    spec: dict[str, int] | None = None
    api_version: str = ""
    kind: str = ""


class RawMeta(Wire, frozen=True):
    """Metadata with the fields of every manager as they are."""

    resource_version: str = ""
    managed_fields: tuple[dict[str, Any], ...] = ()


class RawAutoscaler(Wire, frozen=True):
    """What an HPA's marks are removed from."""

    metadata: RawMeta = RawMeta()


class InvolvedObject(Wire, frozen=True):
    """The object of an Event."""

    namespace: str
    name: str
    uid: str
    api_version: str
    kind: str


class EventObject(Wire, frozen=True):
    """v1."""

    metadata: ObjectMeta
    involved_object: InvolvedObject
    reason: str
    message: str
    type: str
    first_timestamp: str
    last_timestamp: str
    count: int
    source: dict[str, str]


EVENTS = {
    FloorChange.RAISE: "FloorRaised",
    FloorChange.LOWER: "FloorLowered",
    FloorChange.RESTORE: "FloorRestored",
    FloorChange.YIELD: "FloorBackedOff",
}
"""Reasons of Events by change; renewals and removed marks change no number and have none."""
MESSAGE_MAX = 1000


class Autoscalers:
    """The HPAs of a cluster with the rights of an account."""

    def __init__(
        self,
        client: ApiClient,
        *,
        dry_run: bool = False,
        reader: ApiClient | None = None,
        watched: Callable[[], list[LiveAutoscaler] | None] = lambda: None,
    ) -> None:
        """`watched` has them where they are watched anyway, and None while they must be listed, by the `reader`.

        A page may take longer than a client may wait that writes under a Lease.
        """
        self._client, self._reader = client, reader or client
        self._dry_run = "&dryRun=All" if dry_run else ""
        self._watched = watched

    def listed(self, *, marked: bool = False) -> list[LiveAutoscaler]:
        """All of them, or those with a mark of ours. Raises ApiError."""
        watched = self._watched()
        if watched is not None:
            return [one for one in watched if one.marked or not marked]
        selector = f"&labelSelector={quote(LABEL)}" if marked else ""
        found: list[LiveAutoscaler] = []
        after = ""
        while True:
            page = self._reader.get(f"{AUTOSCALERS}?limit={PAGE}{selector}{after}", AutoscalerList)
            found += map(listed_autoscaler, page.items)
            if not page.metadata.remaining:
                return found
            after = f"&continue={quote(page.metadata.remaining)}"

    def again(self, one: LiveAutoscaler) -> LiveAutoscaler:
        """The same one as it is now. Raises ApiError."""
        return listed_autoscaler(self._client.get(path_of(one), HorizontalPodAutoscaler))

    def write(self, write: Write) -> None:
        """Carry out one change of the version that it was decided on. Raises ApiError, 409 for another version."""
        if write.change == FloorChange.FORGET:
            self._forget(write.autoscaler)
            return
        target = f"{path_of(write.autoscaler)}?fieldManager={MANAGER}&force=true{self._dry_run}"
        raw = self._client.apply(target, applied(write), RawAutoscaler)
        if write.change == FloorChange.RESTORE and not self._dry_run:
            with suppress_conflict():  # the value is back; marks that are left are seen at the next look
                self._give_back(write.autoscaler, raw)

    def record(self, write: Write, at: datetime) -> None:
        """The Event of a change, beside its HPA. Raises ApiError."""
        if write.change not in EVENTS or self._dry_run:
            return
        namespace = write.autoscaler.namespace
        with suppress_conflict():  # it is there already
            self._client.create(f"/api/v1/namespaces/{namespace}/events", event_of(write, at), EventObject)

    def _forget(self, one: LiveAutoscaler) -> None:
        self._give_back(one, self._client.get(path_of(one), RawAutoscaler), version=one.version)

    def _give_back(self, one: LiveAutoscaler, raw: RawAutoscaler, *, version: str = "") -> None:
        """Remove our marks and our claim on fields: the next one who applies `minReplicas` meets no conflict."""
        others = [each for each in raw.metadata.managed_fields if each.get("manager") != MANAGER]
        metadata = {
            "resourceVersion": version or raw.metadata.resource_version,
            "labels": {LABEL: None},
            "annotations": dict.fromkeys((BEFORE, EXPIRES, BACK_OFF)),
            "managedFields": others or [{}],  # an empty list would leave them as they are
        }
        target = f"{path_of(one)}?fieldManager={MANAGER}{self._dry_run}"
        self._client.patch(target, Applied(metadata), RawAutoscaler)


@contextmanager
def suppress_conflict() -> Iterator[None]:
    """Another version by now is no fault."""
    try:
        yield
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


def applied(write: Write) -> Applied:
    """The fields that are ours after a change: others of ours go, and nothing else is touched.

    uid and resourceVersion are those that the decision was made on; another object or version is a conflict.
    """
    one, annotations = write.autoscaler, {}
    if write.floor:
        annotations = {BEFORE: str(write.floor.before), EXPIRES: _text(write.floor.expires)}
    elif write.backed_off_until:
        annotations = {BACK_OFF: _text(write.backed_off_until)}
    label = RAISED if write.floor else BACKED_OFF if write.backed_off_until else RESTORED
    metadata: dict[str, Any] = {
        "name": one.name,
        "namespace": one.namespace,
        "uid": one.uid,
        "resourceVersion": one.version,
        "labels": {LABEL: label},
        "annotations": annotations,
    }
    spec = None if write.change == FloorChange.YIELD else {"minReplicas": write.min_replicas}
    return Applied(metadata, spec, "autoscaling/v2", "HorizontalPodAutoscaler")


def event_of(write: Write, at: datetime) -> EventObject:
    """What `kubectl describe hpa` shows of a change. Its name is made of the change: sent twice it is one."""
    one, now = write.autoscaler, at.strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = hashlib.sha256(f"{one.uid} {one.version} {write.change}".encode()).hexdigest()[:16]
    warns = write.change == FloorChange.YIELD
    moved = f"minReplicas {one.min_replicas} → {write.min_replicas}: "
    return EventObject(
        ObjectMeta(name=f"{one.name}.{digest}", namespace=one.namespace),
        InvolvedObject(one.namespace, one.name, one.uid, "autoscaling/v2", "HorizontalPodAutoscaler"),
        reason=EVENTS[write.change],
        message=("" if warns else moved) + write.reason[:MESSAGE_MAX],
        type="Warning" if warns else "Normal",
        first_timestamp=now,
        last_timestamp=now,
        count=1,
        source={"component": MANAGER},
    )


def path_of(one: LiveAutoscaler) -> str:
    """The path of one HPA."""
    return f"/apis/autoscaling/v2/namespaces/{one.namespace}/horizontalpodautoscalers/{one.name}"


def listed_autoscaler(one: HorizontalPodAutoscaler) -> LiveAutoscaler:
    """An HPA of a list."""
    meta, spec = one.metadata, decoder_of(Spec).decode(one.spec)
    target = WorkloadId(meta.namespace, spec.scale_target_ref.kind, spec.scale_target_ref.name)
    return autoscaler_of(meta, target, ReplicaBounds(spec.min_replicas, spec.max_replicas), one.status.current_replicas)


def autoscaler_of(
    meta: HorizontalPodAutoscalerMeta, target: WorkloadId, bounds: ReplicaBounds, replicas: int
) -> LiveAutoscaler:
    """What is needed of an HPA."""
    (floor, fault), (mode, misread) = _floor(meta.annotations), _mode(meta.annotations)
    writers, controller = meta.writers(), meta.controller()
    if not fault and floor is None and writers == {MANAGER} and meta.labels.get(LABEL) != RESTORED:
        fault = f"minReplicas {bounds.min_replicas} is ours and annotation {BEFORE} is gone; apply your minReplicas"
    return LiveAutoscaler(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        target=target,
        min_replicas=bounds.min_replicas,
        max_replicas=bounds.max_replicas,
        replicas=replicas,
        writers=writers,
        controller=f"{controller.kind} {controller.name}" if controller else "",
        deleted=meta.deletion_timestamp is not None,
        mode=mode,
        misread=misread,
        floor=floor,
        backed_off_until=_instant(meta.annotations, BACK_OFF),
        marked=LABEL in meta.labels,
        fault=fault,
    )


def _mode(annotations: Mapping[str, str]) -> tuple[Mode | None, str]:
    """The mode that an HPA is annotated with. One that is none of ours is taken for `observe`, and said."""
    found = annotations.get(MODE)
    known: tuple[Mode | None, ...] = (None, *get_args(Mode))
    if found in known:
        return known[known.index(found)], ""
    return "observe", f"annotation {MODE} is {found!r:.40}; use one of {', '.join(get_args(Mode))}"


def _floor(annotations: Mapping[str, str]) -> tuple[WrittenFloor | None, str]:
    """The floor that annotations tell, or why they cannot be read; one without a readable expiry has expired."""
    before = annotations.get(BEFORE)
    if before is None:
        return None, ""
    if not before.isdecimal() or len(before) > COUNT_DIGITS:
        return None, f"annotation {BEFORE} is {before[:40]!r}, not a count; write the owner's minReplicas there"
    return WrittenFloor(int(before), _instant(annotations, EXPIRES) or LONG_AGO), ""


def _instant(annotations: Mapping[str, str], name: str) -> datetime | None:
    """An instant that cannot be read is past."""
    text = annotations.get(name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return LONG_AGO


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
