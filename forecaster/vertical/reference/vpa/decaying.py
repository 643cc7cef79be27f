"""A histogram in which newer samples weigh more: the weight doubles with every half-life."""

from __future__ import annotations

import math

from forecaster.vertical.reference.vpa.buckets import CPU_BUCKETS, MEMORY_BUCKETS, Buckets
from forecaster.vertical.reference.vpa.histogram import Histogram
from forecaster.vertical.reference.vpa.instants import DAY, UNSET, between, to_nearest

HALF_LIFE = DAY
_RENEWED_AFTER = 100
"""Half-lives after which all weights are divided down, long before doubles run out."""


class DecayingHistogram:
    """Nothing is aged in place: the weight of a sample is 2^((its instant - reference) / half-life)."""

    __slots__ = ("half_life", "histogram", "reference")

    def __init__(self, buckets: Buckets, half_life: int = HALF_LIFE) -> None:
        """Start empty, with the unset instant as reference. `half_life` in nanoseconds."""
        self.histogram = Histogram(buckets)
        self.half_life = half_life
        self.reference = UNSET

    def add(self, value: float, weight: float, at: int) -> None:
        """Count a sample of an instant."""
        self.histogram.add(value, weight * self._growth(at))

    def subtract(self, value: float, weight: float, at: int) -> None:
        """Take it back; exact with the same instant."""
        self.histogram.subtract(value, weight * self._growth(at))

    def percentile(self, share: float) -> float:
        """As of the plain histogram."""
        return self.histogram.percentile(share)

    @property
    def empty(self) -> bool:
        """As of the plain histogram."""
        return self.histogram.empty

    def merge(self, other: DecayingHistogram) -> None:
        """Add another; whichever has the older reference is moved to the newer first, the argument too."""
        if other.half_life != self.half_life:
            raise ValueError("histograms of different half-lives cannot be merged")
        if self.reference < other.reference:
            self._move_to(other.reference)
        elif other.reference < self.reference:
            other._move_to(self.reference)
        self.histogram.merge(other.histogram)

    def same_as(self, other: DecayingHistogram) -> bool:
        """Equal half-life, reference and weights."""
        return (self.half_life, self.reference) == (other.half_life, other.reference) and self.histogram.same_as(
            other.histogram
        )

    def _growth(self, at: int) -> float:
        if at > self.reference + _RENEWED_AFTER * self.half_life:
            self._move_to(at)
        return float(2.0 ** (float(between(self.reference, at)) / self.half_life))

    def _move_to(self, reference: int) -> None:
        rounded = to_nearest(reference, self.half_life)
        exponent = math.floor(float(between(rounded, self.reference)) / self.half_life + 0.5)
        self.histogram.scale(math.ldexp(1.0, exponent))
        self.reference = rounded


def cpu_histogram() -> DecayingHistogram:
    """Of cores, as the recommender keeps it."""
    return DecayingHistogram(CPU_BUCKETS)


def memory_histogram() -> DecayingHistogram:
    """Of daily peaks in bytes, as the recommender keeps it."""
    return DecayingHistogram(MEMORY_BUCKETS)
