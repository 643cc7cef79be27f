"""crane's percentile for many containers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.reference.crane.percentile import DEFAULTS, LEAST_SAMPLE_WEIGHT, CraneSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.vertical.reference.vpa.buckets import LinearBuckets

    Floats = NDArray[np.floating]


def estimates(samples: Floats, buckets: LinearBuckets, settings: CraneSettings = DEFAULTS) -> NDArray[np.float64]:
    """[row] of samples [row, time], NaN for gaps: what `estimate` says of each row; 0 for a row without samples."""
    rows, columns = np.nonzero(~np.isnan(samples))
    values = samples[rows, columns].astype(np.float64)
    place = np.clip((values / buckets.size).astype(np.intp), 0, buckets.count - 1)
    weights = np.bincount(
        rows * buckets.count + place, np.maximum(values, LEAST_SAMPLE_WEIGHT), len(samples) * buckets.count
    ).reshape(len(samples), -1)
    reached = np.cumsum(weights, axis=1)
    bucket = (reached < settings.percentile * reached[:, -1:]).sum(axis=1)
    ends = np.minimum(bucket + 1, buckets.count - 1) * buckets.size
    return np.where(reached[:, -1] > 0, ends * (1 + settings.margin) / settings.target_utilization, 0.0)
