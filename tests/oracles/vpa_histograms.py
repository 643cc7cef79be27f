"""Plain and decaying histograms of the VPA, one container at a time (spec/vertical.md §1.3, §1.4).

Instants are nanoseconds since the first second of year 1, UTC, which is the VPA's unset instant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Protocol

from forecaster.vertical.recommenders.vpa import CPU_BUCKETS, MEMORY_BUCKETS

UNSET = 0
SECOND = 10**9
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
_LONGEST = 2**63 - 1
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_EPOCH = int((datetime(1970, 1, 1, tzinfo=UTC) - _FIRST).total_seconds()) * SECOND
_SAME_WEIGHT = 1e-15
_HALF_LIFE = DAY
_RENEWED_AFTER = 100
"""Half-lives after which all weights are divided down, long before doubles run out."""


def of_unix(seconds: float) -> int:
    """Instant of seconds since 1970, exact for whole ones."""
    return _EPOCH + round(seconds * SECOND)


def of_datetime(moment: datetime) -> int:
    """Instant of an aware datetime."""
    return of_duration(moment - _FIRST)


def of_duration(length: timedelta) -> int:
    """Nanoseconds of a length of time."""
    return length // timedelta(microseconds=1) * 1000


def to_datetime(instant: int) -> datetime:
    """The whole second it lies in, as checkpoints keep it."""
    return _FIRST + timedelta(seconds=instant // SECOND)


def between(earlier: int, later: int) -> int:
    """`later - earlier`, held at the 292 years that a duration can express."""
    return min(max(later - earlier, -_LONGEST), _LONGEST)


def to_nearest(instant: int, step: int) -> int:
    """The nearest multiple of `step` since the unset instant; the later one half-way."""
    return (instant + step // 2 + step % 2) // step * step


@dataclass(frozen=True)
class LinearBuckets:
    """Buckets of one size up to a largest value; `least` is the smallest weight that counts as present."""

    largest: float
    size: float
    least: float

    @cached_property
    def count(self) -> int:
        """One more than it takes to reach the largest value."""
        return math.ceil(self.largest / self.size) + 1

    def find(self, value: float) -> int:
        """Clamped to the first and the last."""
        return min(max(int(value / self.size), 0), self.count - 1)

    def start(self, bucket: int) -> float:
        """A multiple of the size."""
        return bucket * self.size


class Buckets(Protocol):
    """A bucket scheme. `least` is the smallest weight that counts as present."""

    @property
    def count(self) -> int:
        """Number of buckets."""

    @property
    def least(self) -> float:
        """The smallest weight that is not taken for nothing."""

    def find(self, value: float) -> int:
        """The bucket that a value falls into."""

    def start(self, bucket: int) -> float:
        """The smallest value of a bucket."""


class Histogram:
    """Weights by bucket. `lowest` and `highest` bound the buckets that hold more than the least weight."""

    __slots__ = ("buckets", "highest", "lowest", "total", "weights")

    def __init__(self, buckets: Buckets) -> None:
        """Start empty."""
        self.buckets = buckets
        self.weights = [0.0] * buckets.count
        self.total = 0.0
        self.lowest = buckets.count - 1
        self.highest = 0

    def add(self, value: float, weight: float) -> None:
        """Count a sample. A negative weight is a mistake of the caller: ValueError."""
        if weight < 0:
            raise ValueError(f"a sample of weight {weight}: weights are not negative")
        bucket = self.buckets.find(value)
        self.weights[bucket] += weight
        self.total += weight
        if self.weights[bucket] >= self.buckets.least:
            self._widen(bucket, bucket)

    def subtract(self, value: float, weight: float) -> None:
        """Take a sample back; what remains below the least weight is nothing."""
        bucket = self.buckets.find(value)
        self.total = self._present(self.total - weight)
        self.weights[bucket] = self._present(self.weights[bucket] - weight)
        self.tighten()

    def percentile(self, share: float) -> float:
        """The end of the bucket at which this share of all weight is reached; 0 when empty."""
        if self.empty:
            return 0.0
        threshold, reached, bucket = share * self.total, 0.0, self.lowest
        while bucket < self.highest:
            reached += self.weights[bucket]
            if reached >= threshold:
                break
            bucket += 1
        is_last = bucket == self.buckets.count - 1
        return self.buckets.start(bucket if is_last else bucket + 1)

    @property
    def empty(self) -> bool:
        """Whether no bucket holds the least weight."""
        return self.weights[self.lowest] < self.buckets.least

    def merge(self, other: Histogram) -> None:
        """Add all weights of another histogram of the same scheme; ValueError for another scheme."""
        if other.buckets != self.buckets:
            raise ValueError("histograms of different bucket schemes cannot be merged")
        for bucket in range(other.lowest, other.highest + 1):
            self.weights[bucket] += other.weights[bucket]
        self.total += other.total
        self._widen(other.lowest, other.highest)

    def scale(self, factor: float) -> None:
        """Multiply every weight."""
        for bucket in range(self.lowest, self.highest + 1):
            self.weights[bucket] *= factor
        self.total *= factor
        self.tighten()

    def restore(self, weights: dict[int, float], total: float) -> None:
        """Add weights that a checkpoint kept; rounding may have left one at the border below the least weight."""
        for bucket, weight in weights.items():
            self.weights[bucket] += weight
            self._widen(bucket, bucket)
        self.total += total
        self.tighten()

    def tighten(self) -> None:
        """Move the bounds inwards past buckets that hold nothing."""
        weights, least = self.weights, self.buckets.least
        while weights[self.lowest] < least and self.lowest < self.buckets.count - 1:
            self.lowest += 1
        while weights[self.highest] < least and self.highest > 0:
            self.highest -= 1

    def same_as(self, other: Histogram) -> bool:
        """Equal scheme, bounds and weights, these to 1e-15."""
        bounds = (self.buckets, self.lowest, self.highest) == (other.buckets, other.lowest, other.highest)
        return bounds and all(
            abs(weight - other_weight) <= _SAME_WEIGHT
            for weight, other_weight in zip(self.weights, other.weights, strict=True)
        )

    def _widen(self, lowest: int, highest: int) -> None:
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)

    def _present(self, weight: float) -> float:
        return 0.0 if weight < self.buckets.least else weight


class DecayingHistogram:
    """Nothing is aged in place: the weight of a sample is 2^((its instant - reference) / half-life)."""

    __slots__ = ("half_life", "histogram", "reference")

    def __init__(self, buckets: Buckets, half_life: int = _HALF_LIFE) -> None:
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
        """Percentile of the plain histogram."""
        return self.histogram.percentile(share)

    @property
    def empty(self) -> bool:
        """Whether the plain histogram is empty."""
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
    """Histogram of cores, as the recommender has it."""
    return DecayingHistogram(CPU_BUCKETS)


def memory_histogram() -> DecayingHistogram:
    """Histogram of daily peaks in bytes, as the recommender has it."""
    return DecayingHistogram(MEMORY_BUCKETS)
