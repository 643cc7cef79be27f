"""Who goes first when a node runs short of memory (§6.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class MemoryUser(NamedTuple):
    """One pod on a node; None is usage that nobody measured."""

    name: str
    usage_bytes: int | None
    request_bytes: int
    priority: int = 0


def eviction_order(pods: Iterable[MemoryUser]) -> list[MemoryUser]:
    """Rules §6.5: first evicted first; the QoS class is no input."""
    return sorted(pods, key=_rank)


def _rank(pod: MemoryUser) -> tuple[bool, bool, int, int]:
    if pod.usage_bytes is None:
        return (False, False, pod.priority, 0)
    over = pod.usage_bytes - pod.request_bytes
    return (True, over <= 0, pod.priority, -over)
