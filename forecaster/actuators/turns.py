"""The order of writes in a cycle, and how long an object waits after a failed write.

One object harms itself only: a webhook of its namespace may refuse its writes or answer late, each time. Namespaces
take turns, those with failing objects come last, and an object that failed waits for twice as long each time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.actuators.writes import ClusterWrite

    W = TypeVar("W", bound=ClusterWrite)

FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(minutes=15)
MAX_DOUBLINGS = 4
"""Doublings of the first wait after which it is the longest."""


class FailedWrite(NamedTuple):
    """Failures of one object's writes, one after the other."""

    namespace: str
    times: int
    until: datetime
    """Instant before which it is not tried again."""


@dataclass(slots=True)
class WriteTurns:
    """Failed writes of one actuator, by object."""

    failed: dict[tuple[str, ...], FailedWrite] = field(default_factory=dict)

    def ordered(self, writes: Sequence[W], now: datetime) -> list[W]:
        """Return the writes that are due: one of each namespace in turn, namespaces with failing objects last."""
        self.failed = {key: one for key, one in self.failed.items() if now - one.until < LONGEST_WAIT}
        failing = {one.namespace for one in self.failed.values()}
        ranks: Counter[str] = Counter()
        turns = []
        for place, write in enumerate(one for one in writes if self.due(one, now)):
            namespace = namespace_of(write)
            turns.append((namespace in failing, ranks[namespace], place, write))
            ranks[namespace] += 1
        return [write for *_, write in sorted(turns, key=lambda turn: turn[:3])]

    def due(self, write: ClusterWrite, now: datetime) -> bool:
        """Whether the object of a write may be tried."""
        failed = self.failed.get(write.subject.key)
        return failed is None or failed.until <= now

    def note(self, write: ClusterWrite, now: datetime, *, failed: bool) -> None:
        """Remember a failure, or forget earlier ones after a success."""
        key = write.subject.key
        before = self.failed.pop(key, None)
        if failed:
            times = before.times if before else 0
            wait = min(FIRST_WAIT * 2 ** min(times, MAX_DOUBLINGS), LONGEST_WAIT)
            self.failed[key] = FailedWrite(namespace_of(write), times + 1, now + wait)


def namespace_of(write: ClusterWrite) -> str:
    """Return the namespace of the object that is written."""
    return str(write.subject.workload.namespace)
