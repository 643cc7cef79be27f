"""Cutting a long range into pieces that the server answers and memory holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Grid:
    """`points` instants, `step` apart, beginning at `start`."""

    start: datetime
    step: timedelta
    points: int

    def at(self, index: int) -> datetime:
        """The instant of a point."""
        return self.start + index * self.step

    @property
    def end(self) -> datetime:
        """The last instant."""
        return self.at(self.points - 1)

    def cut(self, points: int) -> tuple[Grid, Grid]:
        """The first `points` of it, and the rest."""
        first = min(points, self.points)
        return Grid(self.start, self.step, first), Grid(self.at(first), self.step, self.points - first)


def grid_between(start: datetime, end: datetime, step: timedelta) -> Grid:
    """Every multiple of `step` since the epoch from `start` to `end`, both included; empty when there is none."""
    seconds = step.total_seconds()
    if seconds <= 0:
        raise ValueError(f"step must be positive, not {step}")
    first = math.ceil(start.timestamp() / seconds)
    last = math.floor(end.timestamp() / seconds)
    return Grid(datetime.fromtimestamp(first * seconds, start.tzinfo), step, max(last - first + 1, 0))


def points_for(series: int, *, samples: int, limit: int) -> int:
    """How many points of so many series make an answer of about `samples` samples, at most `limit`."""
    return max(1, min(limit, samples // max(series, 1)))
