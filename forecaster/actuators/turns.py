"""The order of writes in a cycle, and how many that failed before are tried again.

One object harms itself only: a webhook of its namespace may refuse its writes or answer late, each time. Namespaces
take turns, those with failing objects come last, and of the objects that failed before a few are tried in each cycle,
all of them as soon as one succeeds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.actuators.writes import ClusterWrite

    W = TypeVar("W", bound=ClusterWrite)

MAX_FAILED_AGAIN = 20
"""Writes that fail once more in a cycle after which the rest of those that failed before waits for the next one."""


@dataclass(slots=True)
class WriteTurns:
    """Failed writes of one actuator: the namespace of each object, in the order in which they were tried last."""

    failed: dict[tuple[str, ...], str] = field(default_factory=dict)

    def ordered(self, writes: Sequence[W]) -> list[W]:
        """One write of each namespace in turn, namespaces with failing objects last, what failed longest ago first."""
        wanted = {write.subject.key for write in writes}
        self.failed = {key: namespace for key, namespace in self.failed.items() if key in wanted}
        places = {key: place for place, key in enumerate(self.failed)}
        failing = set(self.failed.values())
        ranks: Counter[str] = Counter()
        turns: list[tuple[bool, bool, int, int, W]] = []
        for write in sorted(writes, key=lambda one: places.get(one.subject.key, -1)):
            namespace = namespace_of(write)
            turns.append((self.failed_before(write), namespace in failing, ranks[namespace], len(turns), write))
            ranks[namespace] += 1
        return [write for *_, write in sorted(turns, key=lambda turn: turn[:4])]

    def failed_before(self, write: ClusterWrite) -> bool:
        """Whether the last write of this object failed."""
        return write.subject.key in self.failed

    def note(self, write: ClusterWrite, *, failed: bool) -> None:
        """Remember what became of a write."""
        self.failed.pop(write.subject.key, None)
        if failed:
            self.failed[write.subject.key] = namespace_of(write)


def namespace_of(write: ClusterWrite) -> str:
    """Return the namespace of the object that is written."""
    return str(write.subject.workload.namespace)
