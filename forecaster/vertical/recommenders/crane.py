"""crane 0.11: requests from a percentile of the resource consumed, so that time is weighted by load, not counted.

spec/vertical.md §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.recommenders.histograms import LinearBuckets

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_WEIGHT_OF_BUCKET = 1e-10
CRANE_CPU = LinearBuckets(100.0, 0.1, _LEAST_WEIGHT_OF_BUCKET)
"""Cores."""
CRANE_MEMORY = LinearBuckets(104857600000.0, 104857600.0, _LEAST_WEIGHT_OF_BUCKET)
"""Bytes."""
_LEAST_SAMPLE_WEIGHT = 1e-5


@dataclass(frozen=True, slots=True)
class CraneSettings:
    """The recommender's settings, with their defaults; ratios."""

    percentile: float = 0.99
    margin: float = 0.15
    target_utilization: float = 1.0


CRANE_DEFAULTS = CraneSettings()


def crane_requests(
    samples: NDArray[np.floating], buckets: LinearBuckets, settings: CraneSettings = CRANE_DEFAULTS
) -> NDArray[np.float64]:
    """Requests [row] from samples [row, time], NaN for gaps; 0 for a row without samples."""
    rows, columns = np.nonzero(~np.isnan(samples))
    values = samples[rows, columns].astype(np.float64)
    place = np.clip((values / buckets.size).astype(np.intp), 0, buckets.count - 1)
    weights = np.bincount(
        rows * buckets.count + place, np.maximum(values, _LEAST_SAMPLE_WEIGHT), len(samples) * buckets.count
    ).reshape(len(samples), -1)
    reached = np.cumsum(weights, axis=1)
    bucket = (reached < settings.percentile * reached[:, -1:]).sum(axis=1)
    ends = np.minimum(bucket + 1, buckets.count - 1) * buckets.size
    return np.where(reached[:, -1] > 0, ends * (1 + settings.margin) / settings.target_utilization, 0.0)
