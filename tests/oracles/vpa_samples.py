"""Add the samples of a container to the aggregate of its name: every CPU sample, one memory peak a day.

spec/vertical.md §1.6 to §1.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from forecaster.vertical.recommenders.vpa import BUMP_RATIO, MIN_BUMP
from tests.oracles.vpa_amounts import scaled, to_cores
from tests.oracles.vpa_histograms import (
    DAY,
    MINUTE,
    UNSET,
    DecayingHistogram,
    between,
    cpu_histogram,
    memory_histogram,
    of_duration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CPU_WEIGHT = 0.1
_MEMORY_WEIGHT = 1.0


@dataclass(slots=True)
class AggregateState:
    """Two histograms and how many CPU samples from when to when; these alone say how sure one can be."""

    cpu: DecayingHistogram = field(default_factory=cpu_histogram)
    memory: DecayingHistogram = field(default_factory=memory_histogram)
    first_sample: int = UNSET
    last_sample: int = UNSET
    samples: int = 0
    created: int = UNSET

    def add_cpu(self, millicores: int, at: int) -> None:
        """Count a CPU sample."""
        self.cpu.add(to_cores(millicores), _CPU_WEIGHT, at)
        self.first_sample = min(self.first_sample or at, at)
        self.last_sample = max(self.last_sample, at)
        self.samples += 1

    def add_memory(self, memory: int, at: int) -> None:
        """Count a peak of the window that ends at `at`."""
        self.memory.add(float(memory), _MEMORY_WEIGHT, at)

    def subtract_memory(self, memory: int, at: int) -> None:
        """Take a peak back that a higher one replaces."""
        self.memory.subtract(float(memory), _MEMORY_WEIGHT, at)

    def merge(self, other: AggregateState) -> None:
        """Add what another pod's containers of the same name showed."""
        self.cpu.merge(other.cpu)
        self.memory.merge(other.memory)
        known = [instant for instant in (self.first_sample, other.first_sample) if instant != UNSET]
        self.first_sample = min(known, default=UNSET)
        self.last_sample = max(self.last_sample, other.last_sample)
        self.samples += other.samples

    def expired(self, now: int, interval: int = DAY, count: int = 8) -> bool:
        """Whether it has been silent, or empty since its creation, for `count` memory intervals."""
        known_at = self.last_sample if self.samples else self.created
        return between(known_at, now) >= interval * count

    def confidence(self, interval: int = DAY) -> float:
        """Days of CPU samples, or their number by minutes if that is less; for memory too."""
        days = float(between(self.first_sample, self.last_sample)) / interval
        return min(days, self.samples / (interval / MINUTE))


def merged(states: Iterable[AggregateState]) -> AggregateState:
    """All of them as one; the arguments keep their samples."""
    whole = AggregateState()
    for state in states:
        whole.merge(state)
    return whole


class Aggregate(Protocol):
    """Aggregate that counts accepted samples."""

    def add_cpu(self, millicores: int, at: int) -> None:
        """A CPU sample."""

    def add_memory(self, memory: int, at: int) -> None:
        """A memory peak, stamped with the end of its window."""

    def subtract_memory(self, memory: int, at: int) -> None:
        """A memory peak that another replaces."""


@dataclass(frozen=True, slots=True)
class MemoryPeaks:
    """Length of a window of memory peaks, and how far an OOM kill raises the next recommendation, in bytes."""

    interval: timedelta = timedelta(days=1)
    bump_ratio: float = BUMP_RATIO
    least_bump: int = MIN_BUMP


@dataclass(slots=True)
class ContainerState:
    """The open window and what it holds. Every method says whether the sample was accepted."""

    aggregate: Aggregate
    rules: MemoryPeaks = MemoryPeaks()
    last_cpu: int = UNSET
    last_memory: int = UNSET
    window_end: int = UNSET
    memory_peak: int = 0
    oom_peak: int = 0

    def add_cpu(self, millicores: int, at: int) -> bool:
        """A CPU sample, which must be newer than the last."""
        if millicores < 0 or at <= self.last_cpu:
            return False
        self.aggregate.add_cpu(millicores, at)
        self.last_cpu = at
        return True

    def add_memory(self, memory: int, at: int) -> bool:
        """A memory sample, which must not be older than the last."""
        if memory < 0 or at < self.last_memory:
            return False
        if self._enter(memory, at):
            self.memory_peak = memory
        return True

    def record_oom(self, requested: int, at: int) -> bool:
        """An OOM kill, refused when it is an interval older than the newest memory sample.

        The peak of earlier OOMs in the window is left out of what it is raised from, so that they do not compound.
        """
        if self.last_memory != UNSET and at < self.last_memory - of_duration(self.rules.interval):
            return False
        used = max(requested, self.memory_peak)
        needed = max(used + self.rules.least_bump, scaled(used, self.rules.bump_ratio))
        if self._enter(needed, at):
            self.oom_peak = needed
        return True

    def _enter(self, memory: int, at: int) -> bool:
        """Put a value into its window; whether it is the window's new peak."""
        self.last_memory = at
        self.window_end = self.window_end or at
        if at >= self.window_end:
            interval = of_duration(self.rules.interval)
            self.window_end += (at - self.window_end) // interval * interval + interval
            self.memory_peak = self.oom_peak = 0
        else:
            before = max(self.memory_peak, self.oom_peak)
            if not 0 < before < memory:
                return False
            self.aggregate.subtract_memory(before, self.window_end)
        self.aggregate.add_memory(memory, self.window_end)
        return True


def without_open_peak(state: ContainerState, save: Callable[[], None]) -> None:
    """Save while the peak of the open window is taken out: after a restart it will be seen again."""
    peak = max(state.memory_peak, state.oom_peak)
    if peak:
        state.aggregate.subtract_memory(peak, state.window_end)
    save()
    if peak:
        state.aggregate.add_memory(peak, state.window_end)
