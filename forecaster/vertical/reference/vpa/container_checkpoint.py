"""A container's aggregate as the status of a VerticalPodAutoscalerCheckpoint, which the real VPA reads and writes.

Weights are rounded to ten thousandths and instants cut to seconds: what is loaded is not bit by bit what was saved.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from forecaster.vertical.reference.vpa.aggregate import AggregateState
from forecaster.vertical.reference.vpa.checkpoint import (
    CheckpointError,
    HistogramCheckpoint,
    load_decaying,
    save_decaying,
)
from forecaster.vertical.reference.vpa.instants import UNSET, of_datetime, to_datetime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.vertical.reference.vpa.decaying import DecayingHistogram

VERSION = "v3"
Json = dict[str, Any]


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
    kept = save_decaying(histogram)
    weights = {str(bucket): weight for bucket, weight in kept.weights.items()}
    return {"referenceTimestamp": _text(kept.reference), "bucketWeights": weights, "totalWeight": kept.total}


def _checkpoint(raw: Mapping[str, Any]) -> HistogramCheckpoint:
    weights = {int(bucket): int(weight) for bucket, weight in (raw.get("bucketWeights") or {}).items()}
    return HistogramCheckpoint(raw.get("totalWeight", 0.0), weights, _instant(raw.get("referenceTimestamp")))


def _text(instant: int) -> str | None:
    return None if instant == UNSET else to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%SZ")


def _instant(text: str | None) -> int:
    return of_datetime(datetime.fromisoformat(text)) if text else UNSET
