"""Pacing of queries: long ranges are read in pieces, and a failed query is repeated after a pause.

A piece is as large as the server answers and memory holds. Decoding costs a quarter of a microsecond per sample, and
Prometheus needs more than that to compute and write it; where both have a core, the next piece is computed while one is
decoded, and only the slower of the two takes time. A slow server is slower with the same query each minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import NamedTuple

from forecaster.errors import SourceError, SourceRefused, SourceTimeout
from forecaster.sources.wire import QueryAnswer, TooMuch


class AnswerTime:
    """Time that questions of one evaluation time may take together; with it over, the others wait for the next."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._at: datetime | None = None
        self._begun = 0.0

    def is_over(self, at: datetime) -> bool:
        """Return whether questions of `at` have taken too long; the first one begins the time."""
        if at != self._at:
            self._at, self._begun = at, self._clock()
        return self._clock() - self._begun > self._seconds


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
        """Split off the first `points`; return both parts."""
        first = min(points, self.points)
        return Grid(self.start, self.step, first), Grid(self.at(first), self.step, self.points - first)


def grid_between(start: datetime, end: datetime, step: timedelta) -> Grid:
    """Return every multiple of `step` since the epoch from `start` to `end`, both included; may be empty."""
    seconds = step.total_seconds()
    if seconds <= 0:
        raise ValueError(f"step must be positive, not {step}")
    first = math.ceil(start.timestamp() / seconds)
    last = math.floor(end.timestamp() / seconds)
    return Grid(datetime.fromtimestamp(first * seconds, start.tzinfo), step, max(last - first + 1, 0))


class Slices:
    """Pieces of a grid, each as long as the server's earlier answers and the number of series allow."""

    def __init__(self, grid: Grid, *, first: int, max_points: int, samples: int) -> None:
        self._rest = grid
        self._size = self._first = first
        self._max_points = max_points
        self._samples = samples

    def next(self) -> Grid | None:
        """The piece to ask for now; None when nothing is left."""
        if not self._rest.points:
            return None
        piece, self._rest = self._rest.cut(min(self._size, self._max_points))
        return piece

    def put_back(self, piece: Grid, error: SourceError) -> None:
        """Put back the last piece, which had no answer; later ones are at most half as long, an eighth after a timeout.

        Limits have many names: what a server refuses of a longer piece than the first may be one. Else raises `error`.
        """
        if piece.points <= (1 if isinstance(error, TooMuch) else self._first):
            raise error
        self._rest = Grid(piece.start, piece.step, piece.points + self._rest.points)
        self._max_points = piece.points // (8 if isinstance(error, SourceTimeout) else 2)

    def answered(self, series: int) -> None:
        """Note the number of series in the last piece; the next has as many."""
        self._size = max(1, self._samples // max(series, 1))


def read_ahead(slices: Slices, ask: Callable[[Grid], QueryAnswer]) -> Iterator[tuple[Grid, QueryAnswer]]:
    """Every slice with its answer, in order; one that is too much comes as smaller ones. Raises what `ask` raises."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as ahead:
        coming = _ask_for_next(ahead, slices, ask)
        while coming:
            piece, future = coming
            answer = _unless_too_much(slices, piece, future)
            coming = _ask_for_next(ahead, slices, ask)
            if answer is not None:
                yield piece, answer


def _ask_for_next(
    ahead: Executor, slices: Slices, ask: Callable[[Grid], QueryAnswer]
) -> tuple[Grid, Future[QueryAnswer]] | None:
    piece = slices.next()
    return (piece, ahead.submit(ask, piece)) if piece else None


def _unless_too_much(slices: Slices, piece: Grid, future: Future[QueryAnswer]) -> QueryAnswer | None:
    """Return the answer, and adapt the size of slices to it."""
    try:
        answer = future.result()
    except (SourceRefused, SourceTimeout) as error:
        slices.put_back(piece, error)
        return None
    slices.answered(len(answer.series))
    return answer


FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(minutes=30)
"""Pause after the first failure, and the longest; each is twice the one before."""


class Failure(NamedTuple):
    """The last failure of a question: what went wrong, and from when on it may be asked again."""

    why: str
    pause: timedelta
    again_at: datetime


@dataclass(slots=True)
class BackOff:
    """The questions of a source that failed when they were asked last, by name."""

    longest: timedelta = LONGEST_PAUSE
    failures: dict[str, Failure] = field(default_factory=dict)

    def waits(self, name: str, at: datetime) -> bool:
        """Whether a question is not to be asked at this time; a clock that went back ends the pause."""
        failure = self.failures.get(name)
        return failure is not None and failure.again_at - failure.pause <= at < failure.again_at

    def failed(self, name: str, why: str, at: datetime) -> None:
        """A question that was asked has failed."""
        before = self.failures.get(name)
        pause = min(before.pause * 2, self.longest) if before else FIRST_PAUSE
        self.failures[name] = Failure(why, pause, at + pause)

    def answered(self, name: str) -> None:
        """A question that was asked has its answer."""
        self.failures.pop(name, None)

    def waiting(self, name: str, at: datetime) -> str:
        """Say why a query is paused at this time, and until when; empty where it may be sent."""
        if not self.waits(name, at):
            return ""
        failure = self.failures[name]
        return f"{failure.why}; queried again at {failure.again_at:%H:%M} UTC"

    def why(self, name: str) -> str:
        """Return the last failure; empty where there was none."""
        failure = self.failures.get(name)
        return failure.why if failure else ""
