"""A recommendation in sentences: measurements, forecasts, every clamp in order, the number and the reason."""

from __future__ import annotations

from collections.abc import Iterator

from forecaster.domain.amounts import alike, amount, counted, duration_text, pods_change
from forecaster.domain.decision import Clamp, Hold, Reason, Recommendation, Resize, Scale, SignalView, forecast_state
from forecaster.domain.forecast import PeakForecast


def explanation(recommendation: Recommendation) -> list[str]:
    """Lines to read from top to bottom."""
    return [
        f"{recommendation.id.kind} {recommendation.id} at {recommendation.at:%Y-%m-%d %H:%M:%S} UTC",
        f"  replicas: {recommendation.replicas_now} now, {_owner(recommendation)}",
        *(line for view in recommendation.signals for line in _signal(view)),
        *_forecast(recommendation),
        *_lead_time(recommendation),
        *(_clamp(i, clamp) for i, clamp in enumerate(recommendation.clamps, 1)),
        f"  => {_count(recommendation)}",
        f"  one pod (request/limit): {pods_change(recommendation.resources_now, recommendation.resources_now)}",
        f"  => {_size(recommendation)}",
        *_containers(recommendation),
    ]


def _containers(recommendation: Recommendation) -> Iterator[str]:
    """Yield a line for each of several containers, with its changes."""
    if not isinstance(recommendation.resources, Resize):
        return
    sizes = recommendation.resources.containers
    for size in sizes if len(sizes) > 1 else ():
        yield f"     {size.name}: {pods_change(size.now, size.recommended)}"
    for target in recommendation.resources.targets:
        yield f"     with it, the HPA's target for {target.metric}: {target.value * 100:.0f} %"


def _owner(recommendation: Recommendation) -> str:
    return f"owned by HPA {recommendation.autoscaler}" if recommendation.autoscaler else "no HPA"


def _signal(view: SignalView) -> Iterator[str]:
    yield f"  {view.signal}: target {view.target}" if view.target else f"  {view.signal}: not usable"
    if view.measured is not None and view.measured_at is not None:
        asks = f", asks for {view.reactive_replicas}" if view.reactive_replicas is not None else ""
        yield f"    measured {amount(view.measured, view.unit)} at {view.measured_at:%H:%M}{asks}"
    if view.forecast is not None:
        asks = f", asks for {view.forecast_replicas}" if view.forecast_replicas is not None else ""
        yield f"    forecast {_peak(view.forecast, view.unit)}{asks}"
    if view.note:
        yield f"    note: {view.note}"


def _forecast(recommendation: Recommendation) -> Iterator[str]:
    """State of the forecast, unless the sentence of the count says it; nothing where the count is held."""
    if isinstance(recommendation.replicas, Scale) and recommendation.replicas.reason is not Reason.GATED:
        state, why = forecast_state(
            recommendation.gate_reason, foreseen=any(view.forecast for view in recommendation.signals)
        )
        yield f"  forecast {state}{f': {why}' if why else ''}"


def _lead_time(recommendation: Recommendation) -> Iterator[str]:
    """Say from when on the peak was looked for; nothing where no peak was."""
    if recommendation.lead_time and any(view.forecast for view in recommendation.signals):
        yield f"  lead time {duration_text(recommendation.lead_time.value)}: {recommendation.lead_time.origin}"


def _peak(forecast: PeakForecast, unit: str) -> str:
    between = f"{forecast.begin:%H:%M} and {forecast.until:%H:%M}"
    peak, low, high, median = alike((forecast.peak, forecast.low, forecast.high, forecast.median), unit)
    quantile = f"p{forecast.quantile * 100:g} of the peak between {between} is {peak}"
    return f"{quantile} ({low} to {high}, median {median}; {forecast.model})"


def _clamp(i: int, clamp: Clamp) -> str:
    return f"  {i}. {clamp.rule}: {clamp.before} → {clamp.after} ({clamp.why})"


def _count(recommendation: Recommendation) -> str:
    count = recommendation.replicas
    if isinstance(count, Hold):
        return f"hold at {recommendation.replicas_now} ({count.reason}): {count.message}"
    return f"{counted(count.replicas, 'replica')} ({count.reason}): {count.message}"


def _size(recommendation: Recommendation) -> str:
    size = recommendation.resources
    if isinstance(size, Resize):
        return f"{pods_change(recommendation.resources_now, size.resources)}: {size.message}"
    return f"unchanged ({size.reason}): {size.message}"
