"""Marks: the labels and annotations by which a changed object is known as ours, and how the last of them go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.actuators.writes import MANAGER
from forecaster.kube.client import suppress_conflict
from forecaster.kube.objects import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ATTEMPTS = 5
"""Attempts to remove our annotations, a few milliseconds apart."""


class RawMeta(Wire, frozen=True):
    """Metadata with the fields of every manager as they are."""

    resource_version: str = ""
    managed_fields: tuple[dict[str, Any], ...] = ()


class RawObject(Wire, frozen=True):
    """What marks are removed from."""

    metadata: RawMeta = RawMeta()


class Merged(Wire, frozen=True):
    """What is merged into an object, or into a subresource of it."""

    metadata: dict[str, Any]
    spec: dict[str, Any] | None = None


def unmarked(one: RawObject, labels: Iterable[str], annotations: Iterable[str], *, version: str = "") -> Merged:
    """Return the patch that removes our annotations and our field ownership, guarded by resourceVersion."""
    kept = disclaimed(one, version=version).metadata
    return Merged(kept | {"labels": dict.fromkeys(labels), "annotations": dict.fromkeys(annotations)})


def disclaimed(one: RawObject, *, version: str = "") -> Merged:
    """Return the patch that removes our ownership from managedFields, guarded by resourceVersion."""
    others = [each for each in one.metadata.managed_fields if each.get("manager") != MANAGER]
    return Merged(
        {
            "resourceVersion": version or one.metadata.resource_version,
            "managedFields": others or [{}],  # an empty list would leave them as they are
        }
    )


def patiently(remove: Callable[[], object]) -> None:
    """Remove marks after a write of ours, which the object's own controller answers with some of its own.

    The owner's value is back then: marks that are left are seen at the next look.
    """
    for _ in range(ATTEMPTS):
        with suppress_conflict():
            remove()
            return
