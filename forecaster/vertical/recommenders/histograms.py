"""Bucket schemes and weighted histograms of the VPA, one container or many."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.window import DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEAST_WEIGHT = 0.001 * 0.1
_HALF_LIFE = DAY // timedelta(seconds=1)
"""Seconds in which the weight of new samples doubles."""
_RENEWED_AFTER = 100
"""Half-lives after which all weights are divided down, long before doubles run out."""


@dataclass(frozen=True)
class ExponentialBuckets:
    """Each bucket is `ratio` times as wide as the one before it.

    The logarithm is the quotient of two rounded logarithms, on purpose: a value on a boundary may land one bucket low,
    and does so upstream too.
    """

    largest: float
    first: float
    ratio: float
    least: float

    @cached_property
    def count(self) -> int:
        """One more than it takes to reach the largest value."""
        return math.ceil(self._steps(self.largest)) + 1

    @cached_property
    def ends(self) -> Floats:
        """[bucket] what a percentile in it answers: its end, the start of the last."""
        starts = [self.start(bucket) for bucket in range(self.count)]
        return np.array([*starts[1:], starts[-1]])

    def find(self, value: float) -> int:
        """Clamped to the first and the last."""
        return 0 if value < self.first else min(int(self._steps(value)), self.count - 1)

    def find_all(self, values: Floats) -> NDArray[np.intp]:
        """The bucket of each value, none of which is NaN."""
        steps = np.log(values * (self.ratio - 1) / self.first + 1) / self._log_ratio
        return np.where(values < self.first, 0, np.minimum(steps.astype(np.intp), self.count - 1))

    def start(self, bucket: int) -> float:
        """The sum of the widths of the buckets before it."""
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1) if bucket else 0.0

    @cached_property
    def _log_ratio(self) -> float:
        return math.log(self.ratio)

    def _steps(self, value: float) -> float:
        return math.log(value * (self.ratio - 1) / self.first + 1) / self._log_ratio


CPU_BUCKETS = ExponentialBuckets(1000.0, 0.01, 1.05, LEAST_WEIGHT)
"""Cores: 176 buckets, the first a hundredth of a core."""
MEMORY_BUCKETS = ExponentialBuckets(1e12, 1e7, 1.05, LEAST_WEIGHT)
"""Bytes: 176 buckets, the first ten megabytes."""


@dataclass(slots=True)
class DecayingWeights:
    """Weights [container, bucket], in which newer samples weigh more: relative to the reference instant in seconds."""

    buckets: ExponentialBuckets
    weights: Floats
    reference: int = field(default=0)

    @classmethod
    def empty(cls, containers: int, buckets: ExponentialBuckets) -> DecayingWeights:
        """No weights yet."""
        return cls(buckets, np.zeros((containers, buckets.count)))

    def move_to(self, latest: int, earliest: int) -> None:
        """Keep weights of instants up to `latest` within what doubles can hold."""
        if not self.reference:
            self.reference = _to_nearest_half_life(earliest)
        if latest > self.reference + _RENEWED_AFTER * _HALF_LIFE:
            reference = _to_nearest_half_life(latest)
            self.weights *= 2.0 ** ((self.reference - reference) // _HALF_LIFE)
            self.reference = reference

    def growth(self, at: Ints) -> Floats:
        """How much more samples of these instants weigh."""
        return np.asarray(np.exp2((at - self.reference) / _HALF_LIFE))

    def add(self, rows: Ints, values: Floats, weights: Floats) -> None:
        """One value for each of some rows, each named once."""
        self.weights[rows, self.buckets.find_all(values)] += weights

    def add_all(self, part: slice, values: Floats, known: NDArray[np.bool_], weights: Floats) -> None:
        """[row, time] values of consecutive rows; weights by time."""
        rows, columns = np.nonzero(known)
        place = rows * self.buckets.count + self.buckets.find_all(values[known])
        size = len(values) * self.buckets.count
        self.weights[part] += np.bincount(place, weights[columns], size).reshape(len(values), -1)

    def percentile(self, share: float) -> Floats:
        """[container] the end of the bucket where this share is reached; 0 for a row without weight."""
        reached = np.cumsum(self.weights, axis=1)
        bucket = (reached < share * reached[:, -1:]).sum(axis=1)
        return np.where(reached[:, -1] > 0, self.buckets.ends[np.minimum(bucket, self.buckets.count - 1)], 0.0)


def _to_nearest_half_life(instant: int) -> int:
    """The nearest multiple of the half-life; the later one half-way."""
    return (instant + _HALF_LIFE // 2) // _HALF_LIFE * _HALF_LIFE
