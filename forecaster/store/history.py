"""History: fresh minutes and weeks of five-minute points for every signal, and what of them is still missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from forecaster.demand.fresh import point_means
from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.settings import Duration
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, MINUTES_A_POINT, Block, Gap, Window, last_multiple
from forecaster.domain.workload import WorkloadId
from forecaster.store.ring import HistoryRing, spans

REST_OF_POINT = FIVE_MINUTES - MINUTE


class HistorySettings(BaseModel):
    """Length of the history in memory, 4 bytes for each workload, signal and point."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    minutes_kept: Duration = Field(default=timedelta(hours=3), ge=timedelta(minutes=30), le=timedelta(days=4))
    """Span of one-minute points. Three hours hold what the models read at that resolution (30,000 series: 24 MB). What
    is kept beyond is for the gate, which judges shortage by the minute as far back: 3d are all of its days
    (30,000 series: 550 MB, and a first back-fill twice as long)."""
    weeks_kept: Duration = Field(default=timedelta(days=14), ge=timedelta(days=1), le=timedelta(days=60))
    """Span of five-minute points. Two weeks show a weekly pattern twice (30,000 series: 515 MB)."""
    forget_after: Duration = Field(default=timedelta(days=7), ge=timedelta(hours=1), le=timedelta(days=60))
    """A workload without any sample for this long gives its memory back; of a namespace with more than a thousand
    workloads that are gone the longest silent earlier."""


@dataclass(frozen=True, slots=True)
class Rings:
    """The two resolutions of one signal."""

    minutes: HistoryRing
    weeks: HistoryRing

    @classmethod
    def empty(cls, settings: HistorySettings, now: datetime) -> Rings:
        """Return empty rings that end at `now`."""
        return cls(
            HistoryRing(step=MINUTE, columns=settings.minutes_kept // MINUTE, latest=now),
            HistoryRing(step=FIVE_MINUTES, columns=settings.weeks_kept // FIVE_MINUTES, latest=now),
        )


class HistoryStore:
    """History of every workload, ending at the evaluation time of the current cycle.

    A cycle calls `gaps(now)`, has a source answer them and writes the blocks; then it reads windows. A five-minute
    point within the minute ring is the mean of its minutes, so in the steady state each instant is read once, as one
    minute; older ones are read as five-minute points.

    Values describe the time that ends at their instant, in both resolutions. Not safe for concurrent use.
    """

    def __init__(self, signals: Iterable[Signal], settings: HistorySettings, *, now: datetime) -> None:
        self.settings = settings
        self._measured = tuple(signals)
        self.signals = tuple(signal for signal in self._measured if signal != PODS)
        """Kinds of demand that are stored, without the number of pods."""
        self.rings: dict[str, Rings] = {signal: Rings.empty(settings, now) for signal in self._measured}

    def gaps(self, now: datetime) -> list[Gap]:
        """Move the windows up to `now` and return the unanswered gaps: the fresh minutes of all signals first."""
        for rings in self.rings.values():
            rings.minutes.advance(now)
            rings.weeks.advance(now)
        return self._missing(self._measured)

    def write(self, block: Block) -> None:
        """Keep a block in the ring of its step, and complete the five-minute points that its minutes belong to.

        Raises:
            ValueError: the block is on neither grid.
        """
        rings = self.rings[block.signal]
        if block.step == FIVE_MINUTES:
            rings.weeks.write(block)
            return
        rings.minutes.write(block)
        _thin(rings, block)

    def window(self, signal: str, step: timedelta) -> Window:
        """Return the history of a signal by `MINUTE` or by `FIVE_MINUTES`."""
        rings = self.rings[signal]
        return (rings.minutes if step == MINUTE else rings.weeks).window()

    def missing(self, signal: Signal) -> int:
        """Return the number of instants that the back-fill of a signal still has to read, as of the last `gaps`."""
        return sum(gap.columns for gap in self._missing([signal]))

    def ask_again(self, signal: str, without: Collection[WorkloadId]) -> None:
        """Mark a signal's history as unanswered, because more workloads have it now; drop the rows `without` it."""
        rings = self.rings[signal]
        rings.minutes.ask_again(without)
        rings.weeks.ask_again(without)

    def forget(self, present: Mapping[str, int]) -> int:
        """Drop the workloads without a sample for `forget_after`; return their number.

        `present` counts the workloads by namespace: each keeps twice as many rows, and a thousand, so that names that
        are always new do not fill the memory.
        """
        longest, dropped = self.settings.forget_after, 0
        for rings in self.rings.values():
            dropped += rings.minutes.forget(rings.minutes.oldest) + rings.weeks.forget(rings.weeks.latest - longest)
            dropped += sum(ring.forget_surplus(present, SPARE_ROWS) for ring in (rings.minutes, rings.weeks))
        return dropped

    def _missing(self, signals: Iterable[Signal]) -> list[Gap]:
        minutes, weeks = [], []
        for signal in signals:
            fresh, old = self.rings[signal].minutes, self.rings[signal].weeks
            minutes += [Gap(signal, *ends, MINUTE) for ends in fresh.missing(fresh.oldest, fresh.latest)]
            last = fresh.oldest + REST_OF_POINT - MINUTE  # of five minutes that are not all within the minute ring
            weeks += [Gap(signal, *ends, FIVE_MINUTES) for ends in old.missing(old.oldest, last)]
        return minutes + weeks


def _thin(rings: Rings, block: Block) -> None:
    """Write the five-minute points that a block of minutes completes."""
    ends = _ends_touched(block, rings.minutes)
    complete = np.array([not rings.minutes.missing(end - REST_OF_POINT, end) for end in ends], np.bool_)
    for first, stop in spans(complete):
        rings.weeks.write(_averaged(rings.minutes.window(), block.signal, ends[first], stop - first))


def _ends_touched(block: Block, minutes: HistoryRing) -> list[datetime]:
    """Five-minute instants with a minute in `block` and all their minutes within the ring."""
    first = last_multiple(max(block.start, minutes.oldest + REST_OF_POINT) + REST_OF_POINT, FIVE_MINUTES)
    last = last_multiple(min(block.end + REST_OF_POINT, minutes.latest), FIVE_MINUTES)
    return [first + i * FIVE_MINUTES for i in range((last - first) // FIVE_MINUTES + 1)]


def _averaged(minutes: Window, signal: str, end: datetime, points: int) -> Block:
    """`points` five-minute points, the first of them ending at `end`."""
    column = (end - REST_OF_POINT - minutes.start) // MINUTE
    bins = minutes.values[:, column : column + points * MINUTES_A_POINT].reshape(
        len(minutes.keys), points, MINUTES_A_POINT
    )
    return Block(signal, minutes.keys, end, FIVE_MINUTES, point_means(bins).astype(np.float64))
