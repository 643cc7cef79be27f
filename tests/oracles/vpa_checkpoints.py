"""Histograms and aggregates as the VPA writes them into a VerticalPodAutoscalerCheckpoint (spec/vertical.md §1.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.oracles.vpa_histograms import UNSET, of_datetime, to_datetime
from tests.oracles.vpa_samples import AggregateState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.oracles.vpa_histograms import DecayingHistogram, Histogram

_LARGEST_WEIGHT = 10_000
VERSION = "v3"
Json = dict[str, Any]


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
    """Add the contents of a checkpoint; raises CheckpointError and changes nothing for one that is broken."""
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
    """Save a decaying histogram, with its reference instant."""
    plain = save(histogram.histogram)
    return HistogramCheckpoint(plain.total, plain.weights, histogram.reference)


def load_decaying(histogram: DecayingHistogram, checkpoint: HistogramCheckpoint | None) -> None:
    """Load a decaying histogram, whose reference instant is the checkpoint's from then on."""
    load(histogram.histogram, checkpoint)
    if checkpoint is not None:
        histogram.reference = checkpoint.reference


def checkpoint_object(namespace: str, vpa: str, container: str, state: AggregateState, written: datetime) -> Json:
    """The whole object, named as the VPA names it."""
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"namespace": namespace, "name": f"{vpa}-{container}"},
        "spec": {"vpaObjectName": vpa, "containerName": container},
        "status": saved(state, written),
    }


def saved(state: AggregateState, written: datetime) -> Json:
    """The status of a checkpoint."""
    return {
        "lastUpdateTime": _text(of_datetime(written)),
        "version": VERSION,
        "cpuHistogram": _histogram(state.cpu),
        "memoryHistogram": _histogram(state.memory),
        "firstSampleStart": _text(state.first_sample),
        "lastSampleStart": _text(state.last_sample),
        "totalSamplesCount": state.samples,
    }


def loaded(status: Mapping[str, Any]) -> AggregateState:
    """A fresh aggregate from a checkpoint's status; raises CheckpointError for another version or broken weights."""
    if status.get("version") != VERSION:
        raise CheckpointError(f"checkpoint version {status.get('version')!r}: only {VERSION} is understood")
    state = AggregateState(
        first_sample=_instant(status.get("firstSampleStart")),
        last_sample=_instant(status.get("lastSampleStart")),
        samples=status.get("totalSamplesCount", 0),
    )
    load_decaying(state.cpu, _checkpoint(status.get("cpuHistogram") or {}))
    load_decaying(state.memory, _checkpoint(status.get("memoryHistogram") or {}))
    return state


def _histogram(histogram: DecayingHistogram) -> Json:
    checkpoint = save_decaying(histogram)
    weights = {str(bucket): weight for bucket, weight in checkpoint.weights.items()}
    return {
        "referenceTimestamp": _text(checkpoint.reference),
        "bucketWeights": weights,
        "totalWeight": checkpoint.total,
    }


def _checkpoint(raw: Mapping[str, Any]) -> HistogramCheckpoint:
    weights = {int(bucket): int(weight) for bucket, weight in (raw.get("bucketWeights") or {}).items()}
    return HistogramCheckpoint(raw.get("totalWeight", 0.0), weights, _instant(raw.get("referenceTimestamp")))


def _text(instant: int) -> str | None:
    return None if instant == UNSET else to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%SZ")


def _instant(text: str | None) -> int:
    return of_datetime(datetime.fromisoformat(text)) if text else UNSET
