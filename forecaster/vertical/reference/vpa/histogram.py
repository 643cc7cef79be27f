"""A histogram of weighted samples whose percentiles are the ends of buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.vertical.reference.vpa.buckets import Buckets

_SAME_WEIGHT = 1e-15


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
            abs(mine - theirs) <= _SAME_WEIGHT for mine, theirs in zip(self.weights, other.weights, strict=True)
        )

    def _widen(self, lowest: int, highest: int) -> None:
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)

    def _present(self, weight: float) -> float:
        return 0.0 if weight < self.buckets.least else weight
