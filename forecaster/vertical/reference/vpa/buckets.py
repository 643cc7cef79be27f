"""How values are sorted into buckets of a histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol


class Buckets(Protocol):
    """A bucket scheme. `least` is the smallest weight that counts as present."""

    @property
    def count(self) -> int:
        """How many buckets there are."""

    @property
    def least(self) -> float:
        """The smallest weight that is not taken for nothing."""

    def find(self, value: float) -> int:
        """The bucket that a value falls into."""

    def start(self, bucket: int) -> float:
        """The smallest value of a bucket."""


@dataclass(frozen=True)
class LinearBuckets:
    """Buckets of one size up to a largest value."""

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

    def find(self, value: float) -> int:
        """Clamped to the first and the last."""
        return 0 if value < self.first else min(int(self._steps(value)), self.count - 1)

    def start(self, bucket: int) -> float:
        """The sum of the widths of the buckets before it."""
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1) if bucket else 0.0

    @cached_property
    def _log_ratio(self) -> float:
        return math.log(self.ratio)

    def _steps(self, value: float) -> float:
        return math.log(value * (self.ratio - 1) / self.first + 1) / self._log_ratio


LEAST_WEIGHT = 0.001 * 0.1
CPU_BUCKETS = ExponentialBuckets(1000.0, 0.01, 1.05, LEAST_WEIGHT)
"""Cores: 176 buckets, the first a hundredth of a core."""
MEMORY_BUCKETS = ExponentialBuckets(1e12, 1e7, 1.05, LEAST_WEIGHT)
"""Bytes: 176 buckets, the first ten megabytes."""
