"""Usage and facts by container, read once an hour: what sizes are made of changes by the day and not by the minute."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.domain.amounts import memory
from forecaster.domain.signal import CPU, MEMORY, Signal
from forecaster.domain.window import DAY, FIVE_MINUTES, last_multiple
from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, WorkloadId
from forecaster.errors import SourceError
from forecaster.ports import ContainerSource, Source

Floats = NDArray[np.float32]

CONTAINER_HISTORY = timedelta(days=8)
"""Eight days include the same weekday; a container takes 18 kB for each resource."""
RENEWED = timedelta(hours=1)
CONTAINER_COLUMNS = CONTAINER_HISTORY // FIVE_MINUTES
USAGE = (CPU, MEMORY)
_ROWS_AT_A_TIME = 1024


class ContainerNews(NamedTuple):
    """A new image or an OOM kill, with the time at which it was noticed, at most an hour later."""

    at: datetime
    id: ContainerId
    text: str


MAX_NEWS = 2000
"""Latest losses kept over all workloads; they are shown in the dashboard and decide nothing."""


def container_news(before: ContainerFacts, after: ContainerFacts, at: datetime) -> Iterator[ContainerNews]:
    """Compare two readings of containers and yield new images and OOM kills; the first reading yields nothing."""
    for id_, image in after.images.items():
        known = before.images.get(id_)
        if known and known != image:
            yield ContainerNews(at, id_, f"deploy of {id_.name}: {known} → {image}")
    for id_, limit in after.oom_limits.items() if before.images else ():
        if before.oom_limits.get(id_, 0.0) < limit:
            yield ContainerNews(at, id_, f"OOM kill of {id_.name} at {memory(limit)}")


@dataclass(slots=True)
class Containers:
    """The latest eight days of every container, five minutes apart."""

    rows: dict[ContainerId, int] = field(default_factory=dict)
    values: dict[Signal, Floats] = field(default_factory=lambda: {signal: _empty(0) for signal in USAGE})
    facts: ContainerFacts = field(default_factory=ContainerFacts)
    of_workload: Mapping[WorkloadId, Sequence[ContainerId]] = field(default_factory=dict)
    end: datetime | None = None
    """Instant of the latest column."""
    read: datetime | None = None
    """Up to where everything was answered."""
    reached: dict[Signal, datetime] = field(default_factory=dict)
    """Up to where each signal was answered since then."""
    waits: bool = False
    """Whether a reading found no more time and goes on in the next cycle: of a large fleet it takes minutes."""
    news: deque[ContainerNews] = field(default_factory=lambda: deque(maxlen=MAX_NEWS))

    def catch_up(self, source: Source, now: datetime, has_time: Callable[[], bool] = lambda: True) -> list[str]:
        """Read containers once an hour from a source that reports them; return a sentence for each failure."""
        latest = last_multiple(now, FIVE_MINUTES)
        if self.end is not None and self.end > latest:  # the clock went back: what it was ahead is nothing to keep
            self.end, self.read, self.reached = None, None, {}
        if not isinstance(source, ContainerSource) or (self.read is not None and latest - self.read < RENEWED):
            return []
        try:
            self._read(source, now, latest, has_time)
        except SourceError as error:
            return [f"containers: {error}" if self.of_workload else f"containers: {error}; pods are sized as a whole"]
        return [f"containers: {why}; the earlier facts are used" for why in self.facts.unread]

    def _read(self, source: ContainerSource, now: datetime, latest: datetime, has_time: Callable[[], bool]) -> None:
        """Query all that was not answered yet, a day at a time; what arrives is stored at once."""
        begin = latest - CONTAINER_HISTORY + FIVE_MINUTES
        if not self.waits:
            before, self.facts = self.facts, source.containers(now)
            self.news.extend(container_news(before, self.facts, now))
        self.waits = False
        self._move_to(latest)
        for signal in USAGE:
            start = max((self.reached.get(signal) or self.read or begin - FIVE_MINUTES) + FIVE_MINUTES, begin)
            while start <= latest:
                end = min(start + DAY, latest)
                for block in source.container_usage(signal, start, end, FIVE_MINUTES):
                    self._write(signal, block, latest)
                self.reached[signal], start = end, end + FIVE_MINUTES
                self.waits = end < latest and not has_time()
                if self.waits:
                    return
        self.read, self.reached = latest, {}
        self._forget_silent()
        self._index()

    def usage(self, ids: Sequence[ContainerId], signal: Signal) -> Floats:
        """[container, time], gaps for those that nothing is known of; a copy."""
        at = rows_among(ids, self.rows)
        usage = np.full((len(ids), CONTAINER_COLUMNS), np.nan, np.float32)
        usage[at >= 0] = self.values[signal][at[at >= 0]]
        return usage

    def _move_to(self, latest: datetime) -> None:
        passed = CONTAINER_COLUMNS if self.end is None else min((latest - self.end) // FIVE_MINUTES, CONTAINER_COLUMNS)
        for values in self.values.values():
            for begin in range(0, len(values), _ROWS_AT_A_TIME):
                part = values[begin : begin + _ROWS_AT_A_TIME]
                part[:, : CONTAINER_COLUMNS - passed] = part[:, passed:].copy()
                part[:, CONTAINER_COLUMNS - passed :] = np.nan
        self.end = latest

    def _write(self, signal: Signal, block: ContainerBlock, latest: datetime) -> None:
        self._make_room(block.ids)
        first = CONTAINER_COLUMNS - 1 - (latest - block.start) // FIVE_MINUTES
        at = np.array([self.rows[id_] for id_ in block.ids], np.intp)
        self.values[signal][at, first : first + block.values.shape[1]] = block.values

    def _make_room(self, ids: Sequence[ContainerId]) -> None:
        for id_ in ids:
            self.rows.setdefault(id_, len(self.rows))
        missing = len(self.rows) - len(self.values[CPU])
        if missing > 0:
            self.values = {signal: np.vstack([values, _empty(missing)]) for signal, values in self.values.items()}

    def _forget_silent(self) -> None:
        """Containers without any sample give their rows back."""
        heard = np.zeros(len(self.rows), bool)
        for values in self.values.values():
            heard |= ~np.isnan(values[: len(self.rows)]).all(axis=1)
        if heard.all():
            return
        remaining = [id_ for id_, row in self.rows.items() if heard[row]]
        at = [self.rows[id_] for id_ in remaining]
        self.values = {signal: values[at] for signal, values in self.values.items()}
        self.rows = {id_: row for row, id_ in enumerate(remaining)}

    def _index(self) -> None:
        grouped: dict[WorkloadId, list[ContainerId]] = defaultdict(list)
        for id_ in sorted(self.rows.keys() | self.facts.images.keys()):
            grouped[id_.workload].append(id_)
        self.of_workload = grouped


def _empty(rows: int) -> Floats:
    return np.full((rows, CONTAINER_COLUMNS), np.nan, np.float32)
