"""Events of Kubernetes beside the objects that are written, and annotations that hold instants and counts."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from forecaster.actuators.writes import MANAGER
from forecaster.kube.client import suppress_conflict
from forecaster.kube.objects import ObjectMeta, Wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.actuators.writes import ClusterWrite
    from forecaster.kube.client import ApiClient

MESSAGE_MAX = 1000
NAME_MAX = 200
"""Characters of the object's name in that of its Event, which has 253 at most."""
OF_THE_CLUSTER = "default"
"""The namespace of Events about objects that have none."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
COUNT_DIGITS = 10
"""Digits of the largest count that the API server accepts. A longer text may not even be a number for Python."""


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
    """What `kubectl describe` shows. Its name is made of what it is about: sent twice it is one."""
    digest, now = hashlib.sha256(about.encode()).hexdigest()[:16], instant_text(at)
    return EventObject(
        ObjectMeta(name=f"{involved.name[:NAME_MAX]}.{digest}", namespace=involved.namespace or OF_THE_CLUSTER),
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
