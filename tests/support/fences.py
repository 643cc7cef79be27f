"""A fence that lets so many writes through, and a log that knows what had been sent when a line was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class WritesKept(Protocol):
    """A fake cluster."""

    @property
    def written(self) -> Sequence[object]:
        """Writes that were sent to the cluster."""


@dataclass
class Fence:
    """Writes are allowed `left` more times."""

    left: int = 1000
    fault: str = ""
    paused: bool = False
    resumed_at: datetime | None = None

    def valid(self) -> bool:
        self.left -= 1
        return self.left >= 0 and not self.paused

    def leading(self) -> bool:
        return self.left > 0


@dataclass
class Log:
    """Lines in their order, with how many writes had been sent by then."""

    cluster: WritesKept
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    def info(self, event: str, **facts: object) -> None:
        self.lines.append((event, facts))
        self.sent.append(len(self.cluster.written))

    warning = info

    def events(self) -> list[str]:
        return [event for event, _ in self.lines]
