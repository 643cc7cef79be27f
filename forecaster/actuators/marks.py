"""Marks on objects: the labels and annotations that say an object was changed by us, and Events about changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from forecaster.actuators.writes import MANAGER, ClusterWrite
from forecaster.kube.client import ApiClient, suppress_conflict
from forecaster.kube.objects import COUNT_DIGITS, ObjectMeta, Wire

ATTEMPTS = 5
"""Attempts to remove our annotations, a few milliseconds apart."""


class RawMeta(Wire, frozen=True):
    """Metadata with the fields of every manager as they are."""

    resource_version: str = ""
    managed_fields: tuple[dict[str, Any], ...] = ()


class RawObject(Wire, frozen=True):
    """An object from which marks are removed."""

    metadata: RawMeta = RawMeta()


class MergePatch(Wire, frozen=True):
    """Fields of a merge patch for an object or its subresource."""

    metadata: dict[str, Any]
    spec: dict[str, Any] | None = None


def unmarked(raw: RawObject, labels: Iterable[str], annotations: Iterable[str], *, version: str = "") -> MergePatch:
    """Return the patch that removes our annotations and our field ownership, guarded by resourceVersion."""
    metadata = disclaimed(raw, version=version).metadata
    return MergePatch(metadata | {"labels": dict.fromkeys(labels), "annotations": dict.fromkeys(annotations)})


def disclaimed(raw: RawObject, *, version: str = "") -> MergePatch:
    """Return the patch that removes our ownership from managedFields, guarded by resourceVersion."""
    others = [entry for entry in raw.metadata.managed_fields if entry.get("manager") != MANAGER]
    return MergePatch(
        {
            "resourceVersion": version or raw.metadata.resource_version,
            "managedFields": others or [{}],  # an empty list would leave them as they are
        }
    )


def retry_conflicts(remove: Callable[[], object]) -> None:
    """Remove marks after a write of ours, which the object's own controller answers with some of its own.

    The owner's value is back then: marks that are left are seen at the next look.
    """
    for _ in range(ATTEMPTS):
        with suppress_conflict():
            remove()
            return


MESSAGE_MAX = 1000
EVENT_NAME_MAX = 200
"""Characters of the object's name in that of its Event, which has 253 at most."""
CLUSTER_EVENTS_NAMESPACE = "default"
"""The namespace of Events about objects that have none."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


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


class EventKind(NamedTuple):
    """The reason of an Event, and whether a person should see it."""

    reason: str
    warns: bool = False


def event(involved: InvolvedObject, about: str, kind: EventKind, message: str, at: datetime) -> EventObject:
    """Return the Event that `kubectl describe` shows. Its name is made of its subject: sent twice it is one Event."""
    digest, now = hashlib.sha256(about.encode()).hexdigest()[:16], instant_text(at)
    return EventObject(
        ObjectMeta(
            name=f"{involved.name[:EVENT_NAME_MAX].rstrip('-.')}.{digest}",
            namespace=involved.namespace or CLUSTER_EVENTS_NAMESPACE,
        ),
        involved,
        reason=kind.reason,
        message=message,
        type="Warning" if kind.warns else "Normal",
        first_timestamp=now,
        last_timestamp=now,
        count=1,
        source={"component": MANAGER},
    )


def event_of(write: ClusterWrite, involved: InvolvedObject, kind: EventKind, moved: str, at: datetime) -> EventObject:
    """Return the Kubernetes Event of a change."""
    about = f"{involved.uid} {write.subject.version} {write.change}"
    return event(involved, about, kind, moved + write.reason[:MESSAGE_MAX], at)


def create_event(client: ApiClient, event: EventObject) -> None:
    """Put it beside its object. Raises ApiError."""
    with suppress_conflict():  # it is there already
        client.create(f"/api/v1/namespaces/{event.metadata.namespace}/events", event, EventObject)


def instant_text(at: datetime) -> str:
    """An instant as annotations and Events have it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def instant_of(annotations: Mapping[str, str], name: str) -> datetime | None:
    """An instant that cannot be read is past."""
    text = annotations.get(name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return LONG_AGO


def count_of(marks: Mapping[str, str], name: str, meaning: str, kind: str = "annotation") -> tuple[int | None, str]:
    """A count that is written down, or why it cannot be read."""
    text = marks.get(name)
    if text is None:
        return None, ""
    if not (text.isascii() and text.isdecimal()) or len(text) > COUNT_DIGITS:
        return None, f"{kind} {name} is {text[:40]!r}, not a count; write the owner's {meaning} there"
    return int(text), ""
