"""What the VPA knows of all containers of one name under one controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.vertical.reference.vpa.amounts import to_cores
from forecaster.vertical.reference.vpa.decaying import DecayingHistogram, cpu_histogram, memory_histogram
from forecaster.vertical.reference.vpa.instants import DAY, MINUTE, UNSET, between

if TYPE_CHECKING:
    from collections.abc import Iterable

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
