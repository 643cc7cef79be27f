"""Requests from a percentile of the resource consumed: time is weighted by load, not counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.reference.vpa.buckets import LinearBuckets
from forecaster.vertical.reference.vpa.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEAST = 1e-10
CPU_BUCKETS = LinearBuckets(100.0, 0.1, _LEAST)
MEMORY_BUCKETS = LinearBuckets(104857600000.0, 104857600.0, _LEAST)
LEAST_SAMPLE_WEIGHT = 1e-5


@dataclass(frozen=True, slots=True)
class CraneSettings:
    """The recommender's settings, with their defaults; ratios."""

    percentile: float = 0.99
    margin: float = 0.15
    target_utilization: float = 1.0


DEFAULTS = CraneSettings()


def estimate(samples: Iterable[float], buckets: LinearBuckets, settings: CraneSettings = DEFAULTS) -> float:
    """Cores or bytes, by the buckets given; 0 without samples."""
    histogram = Histogram(buckets)
    for value in samples:
        histogram.add(value, max(LEAST_SAMPLE_WEIGHT, value))
    return histogram.percentile(settings.percentile) * (1 + settings.margin) / settings.target_utilization


def replicas(total: Iterable[float], request: float, buckets: LinearBuckets, settings: CraneSettings = DEFAULTS) -> int:
    """Pods that carry the percentile of the total usage at the target utilization."""
    histogram = Histogram(buckets)
    for value in total:
        histogram.add(value, max(LEAST_SAMPLE_WEIGHT, value))
    return math.ceil(histogram.percentile(settings.percentile) / (settings.target_utilization * request))
