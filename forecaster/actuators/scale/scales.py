"""Workloads with a scale subresource through the API server: read, scaled, given back. Wire types and requests only."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from itertools import zip_longest
from typing import Final

import msgspec

from forecaster.actuators import marks
from forecaster.actuators.marks import EventKind, InvolvedObject, MergePatch, RawObject
from forecaster.actuators.rollback import WATCH, Rollback, Watch, watch_of, watch_text
from forecaster.actuators.scale.plan import LiveScale, ScaleWrite
from forecaster.actuators.writes import MANAGER, OWNING, Change
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.collection import listed
from forecaster.kube.objects import REPLICAS_BEFORE as BEFORE
from forecaster.kube.objects import AnnotatedMeta, ManagedFields, Wire
from forecaster.sources.settings import ScalableKind

LABEL: Final = "forecaster.dev/scale"
"""`kubectl get deploy,sts -A -l forecaster.dev/scale` lists our counts, and so does `forecaster release`."""
SCALED, BACKED_OFF = "scaled", "backed-off"
BACK_OFF: Final = "forecaster.dev/scale-backed-off-until"
"""Labels, too: a Deployment's controller copies annotations to its ReplicaSets, where they would stay."""
WATCH_LABELS = tuple(f"{WATCH}-{number}" for number in range(12))
"""Labels of the watch, in pieces: the value of a label has at most 63 characters."""
PIECE = 61
WHY_MAX = 200
"""Letters of a reason, of which each may take two bytes: a hold always finds room."""
PAGE = 200
"""Workloads in one answer; each with its template, 5 to 20 kB."""
TRACKED: Mapping[str, str] = {
    "argocd.argoproj.io/instance": "Argo CD",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations by which GitOps tools mark their objects."""
EVENTS = {
    Change.RAISE: EventKind("ScaledUp"),
    Change.LOWER: EventKind("ScaledDown"),
    Change.RESTORE: EventKind("ScaleRestored"),
    Change.YIELD: EventKind("ScaleBackedOff", warns=True),
    Change.ROLL_BACK: EventKind("ScaleRolledBack", warns=True),
}
"""Events by change; marks that are removed change no number and have none."""


class Meta(AnnotatedMeta, frozen=True):
    """Metadata of a workload, and the fields that each manager owns."""

    managed_fields: tuple[ManagedFields, ...] = ()


class WorkloadSpecFields(Wire, frozen=True):
    """The fields of a workload's specification that scaling needs; 1 where it states no count."""

    replicas: int | None = 1
    """A custom resource may state null."""


class WorkloadStatusFields(Wire, frozen=True):
    """The fields of a workload's status that scaling needs."""

    replicas: int = 0


class Object(Wire, frozen=True):
    """A workload."""

    metadata: Meta = Meta()
    spec: WorkloadSpecFields = WorkloadSpecFields()
    status: WorkloadStatusFields = WorkloadStatusFields()


class Scales:
    """Workloads of the kinds that are given, with the rights of an account."""

    def __init__(
        self,
        client: ApiClient,
        kinds: Iterable[ScalableKind],
        *,
        dry_run: bool = False,
        reader: ApiClient | None = None,
    ) -> None:
        self._client, self._reader = client, reader or client
        self._kinds = {kind.kind: kind for kind in kinds}
        self._dry_run = "&dryRun=All" if dry_run else ""

    def marked(self) -> list[LiveScale]:
        """Return the scale targets that carry our annotation. Raises ApiError."""
        return [
            live_scale(workload, kind.kind)
            for kind in self._kinds.values()
            for workload in listed(self._reader, kind.path, Object, limit=PAGE, marked=LABEL)
        ]

    def of(self, id_: WorkloadId) -> LiveScale | None:
        """One workload as it is now; None where it is gone, or of a kind that is not scaled. Raises ApiError."""
        if id_.kind not in self._kinds:
            return None
        try:
            return live_scale(self._reader.get(self._path(id_), Object), id_.kind)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def again(self, scale: LiveScale) -> LiveScale:
        """Read the scale target again from the API server. Raises ApiError."""
        return live_scale(self._client.get(self._path(scale.id), Object), scale.id.kind)

    def write(self, write: ScaleWrite) -> None:
        """Carry out one change of the version that it was decided on. Raises ApiError, 409 for another version.

        The owner's count is written down before ours is, and removed after its own is back: whatever dies in between
        leaves an owner's count that is right.
        """
        scale, watch, version = write.subject, watch_labels(write.watch), write.subject.version
        until = f"{write.backed_off_until:%Y%m%dT%H%M%SZ}" if write.backed_off_until else None  # a label has no colons
        moves = write.change in {Change.RAISE, Change.LOWER}
        if moves and write.before is not None and (scale.before is None or scale.watch != write.watch):
            version = self._mark(scale, {LABEL: SCALED, BEFORE: str(write.before), BACK_OFF: until} | watch)
        if write.change in {Change.RAISE, Change.LOWER, Change.RESTORE, Change.ROLL_BACK}:
            body = MergePatch({"uid": scale.uid, "resourceVersion": version}, {"replicas": write.replicas})
            self._client.patch(f"{self._path(scale.id)}/scale?{self._query()}", body, RawObject)
        if write.change == Change.ROLL_BACK:
            before = None if scale.before is None else str(scale.before)
            self._mark(scale, {LABEL: SCALED, BEFORE: before} | watch, "")
        if write.change == Change.YIELD:
            self._mark(scale, {LABEL: BACKED_OFF, BEFORE: None, BACK_OFF: until} | watch, version)
        if write.change == Change.FORGET:
            self._give_back(scale, version)
        if write.change == Change.RESTORE:
            marks.retry_conflicts(lambda: self._give_back(scale))

    def record(self, write: ScaleWrite, at: datetime) -> None:
        """The Event of a change, beside its workload. Raises ApiError."""
        if write.change in EVENTS and not self._dry_run:
            scale, kind = write.subject, self._kinds[write.subject.id.kind]
            version = f"{kind.group}/{kind.version}"
            involved = InvolvedObject(scale.id.namespace, scale.id.name, scale.uid, version, kind.kind)
            moved = "" if write.change == Change.YIELD else f"replicas {scale.replicas} → {write.replicas}: "
            marks.create_event(self._client, marks.event_of(write, involved, EVENTS[write.change], moved, at))

    def _mark(self, scale: LiveScale, labels: Mapping[str, str | None], version: str | None = None) -> str:
        """The version after these marks were put on it, by default over the version that was decided on."""
        # Of a custom resource whose count nobody owns the API server does not note who writes it through its scale.
        spec = {"replicas": scale.replicas} if version is None and not scale.writers else None
        version = scale.version if version is None else version
        older = dict.fromkeys((BEFORE, BACK_OFF))
        metadata = {"labels": labels, "annotations": older} | ({"resourceVersion": version} if version else {})
        patched = self._client.patch(f"{self._path(scale.id)}?{self._query()}", MergePatch(metadata, spec), RawObject)
        return scale.version if self._dry_run else patched.metadata.resource_version

    def _give_back(self, scale: LiveScale, version: str = "") -> None:
        """Remove our marks and our claim on the count."""
        raw = self._client.get(self._path(scale.id), RawObject)
        body = marks.unmarked(raw, (LABEL, BEFORE, BACK_OFF, *WATCH_LABELS), (BEFORE, BACK_OFF), version=version)
        self._client.patch(f"{self._path(scale.id)}?{self._query()}", body, RawObject)

    def _path(self, id_: WorkloadId) -> str:
        kind = self._kinds[id_.kind]
        return f"/apis/{kind.group}/{kind.version}/namespaces/{id_.namespace}/{kind.plural}/{id_.name}"

    def _query(self) -> str:
        return f"fieldManager={MANAGER}{self._dry_run}"


def watch_labels(watch: Watch) -> dict[str, str | None]:
    """Encode the watch as labels, between letters because values must begin and end with one; None removes a label."""
    if isinstance(watch, Rollback):
        plain = (letter if letter.isascii() and letter.isprintable() else "?" for letter in watch.why[:WHY_MAX])
        watch = msgspec.structs.replace(watch, why="".join(plain))
    text = urlsafe_b64encode(watch_text(watch).encode()).decode().rstrip("=") if watch else ""
    pieces = [f"x{text[at : at + PIECE]}x" for at in range(0, len(text), PIECE)]
    return dict(zip_longest(WATCH_LABELS, pieces)) if len(pieces) <= len(WATCH_LABELS) else dict.fromkeys(WATCH_LABELS)


def watch_in(labels: Mapping[str, str]) -> Watch:
    """Decode the watch from labels; labels that cannot be read are ignored."""
    text = "".join(labels.get(name, "")[1:-1] for name in WATCH_LABELS)
    try:
        return watch_of({WATCH: urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()}) if text else None
    except ValueError:
        return None


def live_scale(workload: Object, kind: str) -> LiveScale:
    """Reduce a workload to the parts that scaling needs."""
    meta = workload.metadata
    texts = meta.annotations | meta.labels  # annotations: by an earlier release
    before, fault = marks.count_of(texts, BEFORE, "replicas", "label")
    writers = _writers(meta.managed_fields)
    return LiveScale(
        id=WorkloadId(meta.namespace, kind, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        replicas=1 if workload.spec.replicas is None else workload.spec.replicas,
        writers=writers,
        owner=_owner(meta, writers),
        deleted=meta.deletion_timestamp is not None,
        before=before,
        backed_off_until=marks.instant_of(texts, BACK_OFF),
        marked=LABEL in meta.labels,
        fault=fault,
        watch=watch_in(meta.labels),
        pods=workload.status.replicas,
    )


def _writers(managers: Sequence[ManagedFields]) -> frozenset[str]:
    """Field managers that own the count, without those that own it since before our marks: ours was not written yet."""
    own_marks = (entry.at for entry in managers if entry.manager == MANAGER and not entry.subresource)
    marked = max(filter(None, own_marks), default=marks.LONG_AGO)
    owning = [entry for entry in managers if entry.fields_v1.spec.replicas is not None]
    since = (entry for entry in owning if not entry.copied and (entry.at or marked) >= marked)
    return frozenset(entry.manager for entry in since) | {MANAGER for entry in owning if entry.manager == MANAGER}


def _owner(meta: Meta, writers: frozenset[str]) -> str:
    """Name what else sets the count: the object's owner, or a tool that writes it again."""
    if controller := meta.controller():
        return f"it is made from {controller.kind} {controller.name}"
    tools = [f"{OWNING[name]} writes its count (field manager {name})" for name in sorted(writers) if name in OWNING]
    stated = meta.labels.keys() | meta.annotations.keys()
    applied = [f"{tool} applies it ({name})" for name, tool in TRACKED.items() if name in stated]
    return next(iter((*tools, *applied)), "")
