"""Buckets found for many values at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.reference.vpa.buckets import CPU_BUCKETS, MEMORY_BUCKETS, ExponentialBuckets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BucketPanel:
    """An exponential scheme for arrays."""

    scheme: ExponentialBuckets

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return self.scheme.count

    @cached_property
    def ends(self) -> Floats:
        """[bucket] what a percentile in it answers: its end, the start of the last."""
        starts = [self.scheme.start(bucket) for bucket in range(self.count)]
        return np.array([*starts[1:], starts[-1]])

    def find(self, values: Floats) -> NDArray[np.intp]:
        """The bucket of each value; none is NaN."""
        scheme = self.scheme
        steps = np.log(values * (scheme.ratio - 1) / scheme.first + 1) / math.log(scheme.ratio)
        return np.where(values < scheme.first, 0, np.minimum(steps.astype(np.intp), self.count - 1))


CPU_PANEL = BucketPanel(CPU_BUCKETS)
MEMORY_PANEL = BucketPanel(MEMORY_BUCKETS)
