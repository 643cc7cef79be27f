"""HorizontalPodAutoscalers through the API server: listed, applied to, given back. Wire types and requests, no rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from forecaster.actuators import marks
from forecaster.actuators.floor.values import LiveAutoscaler, Write, WrittenFloor
from forecaster.actuators.marks import EventKind, EventObject, InvolvedObject, MergePatch, RawObject
from forecaster.actuators.rollback import WATCH, watch_of, watch_text
from forecaster.actuators.writes import MANAGER, Change
from forecaster.domain.policy import Mode
from forecaster.domain.workload import WorkloadId, scaled_workload
from forecaster.hpa.limits import ReplicaBounds
from forecaster.kube.client import ApiClient, decoder_of
from forecaster.kube.collection import listed
from forecaster.kube.objects import MIN_REPLICAS_BEFORE as BEFORE
from forecaster.kube.objects import HorizontalPodAutoscaler, HorizontalPodAutoscalerMeta, Wire
from forecaster.resources.objects import TargetReference

LABEL = "forecaster.dev/floor"
"""`kubectl get hpa -A -l forecaster.dev/floor` lists our floors, and so does `forecaster release`."""
RAISED, BACKED_OFF, RESTORED = "raised", "backed-off", "restored"
EXPIRES, TARGET = "forecaster.dev/floor-expires", "forecaster.dev/floor-target"
BACK_OFF = "forecaster.dev/floor-backed-off-until"
MODE = "forecaster.dev/mode"
MODES: tuple[Mode, ...] = ("observe", "publish", "floor")
"""Modes that an HPA may be annotated with: in mode scale a workload has no HPA."""
PAGE = 500
"""HPAs in one answer: about 2 MB, of 8 that an answer may have."""
AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"


class HpaSpecFields(Wire, frozen=True):
    """The fields of an HPA's specification that floors need."""

    scale_target_ref: TargetReference = TargetReference()
    min_replicas: int = 1
    max_replicas: int = 1
    behavior: dict[str, Any] | None = None


class ApplyPatch(MergePatch, frozen=True):
    """Fields of an apply patch; `spec` has `minReplicas` alone, or is left out."""

    api_version: str = ""
    kind: str = ""


EVENTS = {
    Change.RAISE: EventKind("FloorRaised"),
    Change.LOWER: EventKind("FloorLowered"),
    Change.RESTORE: EventKind("FloorRestored"),
    Change.YIELD: EventKind("FloorBackedOff", warns=True),
    Change.ROLL_BACK: EventKind("FloorRolledBack", warns=True),
}
"""Events by change; renewals and removed marks change no number and have none."""


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
        """List all HPAs, or those with our annotation. Raises ApiError."""
        watched = self._watched()
        if watched is not None:
            return [hpa for hpa in watched if hpa.marked or not marked]
        label = LABEL if marked else ""
        objects = listed(self._reader, AUTOSCALERS, HorizontalPodAutoscaler, limit=PAGE, marked=label)
        return [listed_autoscaler(hpa) for hpa in objects]

    def again(self, hpa: LiveAutoscaler) -> LiveAutoscaler:
        """Read the HPA again from the API server. Raises ApiError."""
        return listed_autoscaler(self._client.get(path_of(hpa), HorizontalPodAutoscaler))

    def write(self, write: Write) -> None:
        """Carry out one change of the version that it was decided on. Raises ApiError, 409 for another version."""
        path = path_of(write.subject)
        if write.change == Change.FORGET:
            self._leave(write, self._client.get(path, RawObject), write.subject.version)
            return
        target = f"{path}?fieldManager={MANAGER}&force=true{self._dry_run}"
        made = iter([self._client.apply(target, applied(write), RawObject)])
        if write.change in {Change.RESTORE, Change.ROLL_BACK} and not self._dry_run:
            # The HPA controller answers a changed minReplicas with a new status, from Kubernetes 1.37 on at once: then
            # the version that our write made is no longer there, and the HPA is read again.
            marks.retry_conflicts(lambda: self._leave(write, next(made, None) or self._client.get(path, RawObject)))

    def record(self, write: Write, at: datetime) -> None:
        """The Event of a change, beside its HPA. Raises ApiError."""
        if write.change in EVENTS and not self._dry_run:
            marks.create_event(self._client, floor_event(write, at))

    def _leave(self, write: Write, raw: RawObject, version: str = "") -> None:
        """Leave the value to its owner; our marks stay after a roll back alone."""
        body = marks.unmarked(raw, (LABEL,), (BEFORE, EXPIRES, TARGET, BACK_OFF, WATCH), version=version)
        body = marks.disclaimed(raw) if write.change == Change.ROLL_BACK else body
        self._client.patch(f"{path_of(write.subject)}?fieldManager={MANAGER}{self._dry_run}", body, RawObject)


def applied(write: Write) -> ApplyPatch:
    """Return our fields after a change: others of ours are removed, and no other field is touched.

    uid and resourceVersion are those of the decision; another object or version is a conflict.
    """
    hpa, annotations = write.subject, {}
    if write.floor:
        expires = marks.instant_text(write.floor.expires)
        annotations = {BEFORE: str(write.floor.before), EXPIRES: expires, TARGET: write.floor.target}
    elif write.backed_off_until:
        annotations = {BACK_OFF: marks.instant_text(write.backed_off_until)}
    if write.watch:
        annotations[WATCH] = watch_text(write.watch)
    label = RAISED if write.floor else BACKED_OFF if annotations else RESTORED
    metadata: dict[str, Any] = {
        "name": hpa.name,
        "namespace": hpa.namespace,
        "uid": hpa.uid,
        "resourceVersion": hpa.version,
        "labels": {LABEL: label},
        "annotations": annotations,
    }
    spec = None if write.change == Change.YIELD else {"minReplicas": write.min_replicas}
    return ApplyPatch(metadata, spec, "autoscaling/v2", "HorizontalPodAutoscaler")


def floor_event(write: Write, at: datetime) -> EventObject:
    """Return the Event that `kubectl describe hpa` shows for a change."""
    hpa = write.subject
    involved = InvolvedObject(hpa.namespace, hpa.name, hpa.uid, "autoscaling/v2", "HorizontalPodAutoscaler")
    moved = "" if write.change == Change.YIELD else f"minReplicas {hpa.min_replicas} → {write.min_replicas}: "
    return marks.event_of(write, involved, EVENTS[write.change], moved, at)


def path_of(hpa: LiveAutoscaler) -> str:
    """The path of one HPA."""
    return f"/apis/autoscaling/v2/namespaces/{hpa.namespace}/horizontalpodautoscalers/{hpa.name}"


def listed_autoscaler(hpa: HorizontalPodAutoscaler) -> LiveAutoscaler:
    """Reduce one HPA of a list."""
    meta, spec = hpa.metadata, decoder_of(HpaSpecFields).decode(hpa.spec)
    reference = spec.scale_target_ref
    target = scaled_workload(meta.namespace, reference.kind, reference.name, reference.api_version)
    bounds, scale_up = ReplicaBounds(spec.min_replicas, spec.max_replicas), (spec.behavior or {}).get("scaleUp") or {}
    return autoscaler_of(meta, target, bounds, hpa.status.current_replicas, scale_up.get("selectPolicy", ""))


def autoscaler_of(
    meta: HorizontalPodAutoscalerMeta, target: WorkloadId, bounds: ReplicaBounds, replicas: int, scale_up: str = ""
) -> LiveAutoscaler:
    """Reduce an HPA to the parts that floors need; `scale_up` is the select policy of its behavior."""
    (floor, fault), (mode, misread) = _floor(meta.annotations), _mode(meta.annotations)
    writers, controller = meta.writers(), meta.controller()
    if not fault and floor is None and writers == {MANAGER} and meta.labels.get(LABEL) not in {RESTORED, BACKED_OFF}:
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
        scale_up_disabled=scale_up == "Disabled",
        deleted=meta.deletion_timestamp is not None,
        mode=mode,
        misread=misread,
        floor=floor,
        backed_off_until=marks.instant_of(meta.annotations, BACK_OFF),
        marked=LABEL in meta.labels,
        fault=fault,
        watch=watch_of(meta.annotations),
    )


def _mode(annotations: Mapping[str, str]) -> tuple[Mode | None, str]:
    """Return the mode in an HPA's annotation. An unknown one counts as `observe`, and is reported."""
    mode = annotations.get(MODE)
    known: tuple[Mode | None, ...] = (None, *MODES)
    if mode in known:
        return known[known.index(mode)], ""
    return "observe", f"annotation {MODE} is {mode!r:.40}; use one of {', '.join(MODES)}"


def _floor(annotations: Mapping[str, str]) -> tuple[WrittenFloor | None, str]:
    """Read the floor from annotations, or say why it cannot be read; without a readable expiry it has expired."""
    before, fault = marks.count_of(annotations, BEFORE, "minReplicas")
    expires = marks.instant_of(annotations, EXPIRES) or marks.LONG_AGO
    return None if before is None else WrittenFloor(before, expires, annotations.get(TARGET, "")), fault
