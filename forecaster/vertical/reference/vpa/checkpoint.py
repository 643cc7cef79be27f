"""Histograms as the VPA writes them into a VerticalPodAutoscalerCheckpoint: integers of which the largest is 10000."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.vertical.reference.vpa.decaying import DecayingHistogram
    from forecaster.vertical.reference.vpa.histogram import Histogram

_LARGEST_WEIGHT = 10_000


class CheckpointError(ValueError):
    """The checkpoint cannot be loaded; the message says which part is wrong."""


@dataclass(frozen=True, slots=True)
class HistogramCheckpoint:
    """Weights by bucket, their total, and the reference instant of a decaying histogram."""

    total: float
    weights: Mapping[int, int] = field(default_factory=dict)
    reference: int = 0


def save(histogram: Histogram) -> HistogramCheckpoint:
    """Weights relative to the largest; buckets that round to nothing are left out."""
    used = range(histogram.lowest, histogram.highest + 1)
    largest = max((histogram.weights[bucket] for bucket in used), default=0.0)
    if not largest:
        return HistogramCheckpoint(histogram.total)
    share = _LARGEST_WEIGHT / largest
    rounded = {bucket: math.floor(histogram.weights[bucket] * share + 0.5) for bucket in used}
    return HistogramCheckpoint(histogram.total, {bucket: weight for bucket, weight in rounded.items() if weight})


def load(histogram: Histogram, checkpoint: HistogramCheckpoint | None) -> None:
    """Add what a checkpoint holds; raises CheckpointError and changes nothing for one that is broken."""
    if checkpoint is None:
        raise CheckpointError("there is no checkpoint to load")
    if checkpoint.total < 0:
        raise CheckpointError(f"a total weight of {checkpoint.total}: it must not be negative")
    for bucket in checkpoint.weights:
        if not 0 <= bucket < histogram.buckets.count:
            raise CheckpointError(f"bucket {bucket}: the scheme has 0 to {histogram.buckets.count - 1}")
    whole = sum(checkpoint.weights.values())
    if whole:
        share = checkpoint.total / whole
        histogram.restore({bucket: weight * share for bucket, weight in checkpoint.weights.items()}, checkpoint.total)


def save_decaying(histogram: DecayingHistogram) -> HistogramCheckpoint:
    """The same with the reference instant."""
    plain = save(histogram.histogram)
    return HistogramCheckpoint(plain.total, plain.weights, histogram.reference)


def load_decaying(histogram: DecayingHistogram, checkpoint: HistogramCheckpoint | None) -> None:
    """The same; the reference instant is the checkpoint's from then on."""
    load(histogram.histogram, checkpoint)
    if checkpoint is not None:
        histogram.reference = checkpoint.reference
