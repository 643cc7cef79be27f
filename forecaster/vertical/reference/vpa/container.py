"""From samples of one running container to what its aggregate counts: every CPU sample, one memory peak a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from forecaster.vertical.reference.vpa.amounts import scaled
from forecaster.vertical.reference.vpa.instants import DAY, UNSET

if TYPE_CHECKING:
    from collections.abc import Callable


class Aggregate(Protocol):
    """Where accepted samples are counted."""

    def add_cpu(self, millicores: int, at: int) -> None:
        """A CPU sample."""

    def add_memory(self, memory: int, at: int) -> None:
        """A memory peak, stamped with the end of its window."""

    def subtract_memory(self, memory: int, at: int) -> None:
        """A memory peak that another replaces."""


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """Length of a window of memory peaks, and how far an OOM raises the next recommendation."""

    interval: int = DAY
    bump_ratio: float = 1.2
    least_bump: int = 100 * 2**20


@dataclass(slots=True)
class ContainerState:
    """The open window and what it holds. Every method says whether the sample was accepted."""

    aggregate: Aggregate
    rules: MemoryRules = MemoryRules()
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
        if self.last_memory != UNSET and at < self.last_memory - self.rules.interval:
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
            interval = self.rules.interval
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
