"""OOM kills as the VPA learns of them: from updates of a pod's status and from eviction events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.vertical.reference.vpa.lists import whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

OOM_KILLED = "OOMKilled"
_MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Termination:
    """How a container ended."""

    reason: str
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """One container's status at one time. `memory_request` in bytes: the reported one, else the specified, else 0."""

    name: str
    memory_request: int = 0
    restarts: int = 0
    running: bool = False
    terminated: Termination | None = None
    last_terminated: Termination | None = None


@dataclass(frozen=True, slots=True)
class OomKill:
    """A container that was killed, and the memory that did not suffice, in bytes."""

    container: str
    memory: int
    at: datetime | None


def oom_of_update(old: ContainerStatus, new: ContainerStatus) -> OomKill | None:
    """The OOM kill that an update shows for the first time, if it shows one."""
    restarted = new.restarts > old.restarts
    ended, before = new.terminated, new.last_terminated
    if ended and ended.reason == OOM_KILLED and (restarted or old.terminated is None):
        return OomKill(new.name, new.memory_request, ended.finished_at)
    if before and before.reason == OOM_KILLED and restarted and old.running and new.running:
        return OomKill(new.name, old.memory_request, before.finished_at)
    return None


def ooms_of_eviction(annotations: Mapping[str, str], created: datetime) -> list[OomKill]:
    """Containers that an eviction event names as offending for want of memory; unreadable entries are left out."""
    keys = ("offending_containers", "offending_containers_usage", "starved_resource")
    if any(key not in annotations for key in keys):
        return []
    containers, usages, resources = (annotations[key].split(",") for key in keys)
    if not len(containers) == len(usages) == len(resources):
        return []
    starved = [
        (container, _bytes(usage))
        for container, usage, resource in zip(containers, usages, resources, strict=True)
        if resource == _MEMORY
    ]
    return [OomKill(container, memory, created) for container, memory in starved if memory is not None]


def _bytes(text: str) -> int | None:
    try:
        return whole(parse_quantity(text))
    except QuantityError:
        return None
