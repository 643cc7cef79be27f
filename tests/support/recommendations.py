"""Recommendations with good defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from forecaster.domain.decision import Clamp, Hold, LeadTime, Reason, Recommendation, Resize, Scale, SignalView
from forecaster.domain.signal import BUILT_IN, PeakForecast, Unknown
from forecaster.domain.workload import Resources, Workload, WorkloadId
from forecaster.forecasting.peaks import HIGH, LEVELS, LOW, MEDIAN, NO_HISTORY_YET, PeakForecasts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 2.0**30
SAID = "the forecast asks for 5, the measured demand for 4"
RAISED = "the p90 of the coming peak raises what the measured demand asks for"


def workload_id(name: str = "web", namespace: str = "shop", kind: str = "Deployment") -> WorkloadId:
    return WorkloadId(namespace, kind, name)


def recommendation(
    id: WorkloadId | None = None,  # noqa: A002  the name of the field
    *,
    at: datetime = NOON,
    now: int = 3,
    replicas: int | None = 5,
    reason: Reason | None = None,
    cpu_request: float = 0.5,
) -> Recommendation:
    """Three signals, raised by the forecast; holds when `replicas` is None."""
    if replicas is None:
        decided: Scale | Hold = Hold(reason or Reason.NO_DATA, "no samples for 20 min")
    else:
        decided = Scale(replicas, reason or Reason.FORECAST, SAID)
    return Recommendation(
        id=id or workload_id(),
        at=at,
        replicas_now=now,
        replicas=decided,
        resources_now=Resources(0.25, None, GIB, GIB),
        resources=Resize(Resources(cpu_request, None, GIB, GIB), Reason.SIZED, "95 % of the coming day"),
        signals=tuple(signal_view(signal, at) for signal in ("cpu", "memory", "requests")),
        clamps=(Clamp("forecast", 4, replicas or 5, RAISED),),
        autoscaler="web-hpa",
        lead_time=LeadTime(timedelta(minutes=3), "assumed; 0 of 5 scale-ups seen"),
    )


def signal_view(signal: str, at: datetime = NOON) -> SignalView:
    return SignalView(
        signal=signal,
        target="70 % of 0.5 cores a pod",
        measured=1.234567,
        measured_at=at,
        reactive_replicas=4,
        forecast=ahead(at),
        forecast_replicas=5,
        unit=BUILT_IN.by_name[signal].unit,
    )


def ahead(at: datetime = NOON) -> PeakForecast:
    return PeakForecast("ridge", 0.9, 1.75, 1.1, 1.4, 1.9, at + timedelta(minutes=3), at + timedelta(minutes=8))


def ahead_of(peaks: PeakForecasts, id_: WorkloadId, quantile: float) -> PeakForecast | Unknown:
    """The forecast of one workload, or why there is none."""
    row = peaks.place.get(id_)
    if row is None:
        return Unknown(NO_HISTORY_YET)
    values, note = peaks.values[row], peaks.notes[peaks.note[row]]
    if np.isnan(values[0]):
        return Unknown(note)
    peak, low, median, high = (float(np.interp(level, LEVELS, values)) for level in (quantile, LOW, MEDIAN, HIGH))
    spoken = (peaks.begin, peaks.until, note, LEVELS, tuple(values.tolist()))
    return PeakForecast(peaks.models[peaks.model[row]], quantile, peak, low, median, high, *spoken)


def held(workload: Workload, reason: Reason, message: str, now: datetime) -> Recommendation:
    """The record of a workload about which nothing was decided: everything stays as it is."""
    hold, hpa = Hold(reason, message), workload.autoscaler
    return Recommendation(
        id=workload.id,
        at=now,
        replicas_now=workload.replicas,
        replicas=hold,
        resources_now=workload.resources,
        resources=hold,
        autoscaler=hpa.name if hpa else "",
        targets=hpa.targets if hpa else (),
    )
