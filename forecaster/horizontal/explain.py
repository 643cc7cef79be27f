"""A recommendation in sentences: what was seen, what was forecast, every clamp in order, the number and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.amounts import alike, amount, duration_text, pods_change
from forecaster.domain.decision import Clamp, Hold, Reason, Recommendation, Resize, Scale, SignalView, forecast_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.outlook import PeakForecast


def explanation(one: Recommendation) -> list[str]:
    """Lines to read from top to bottom."""
    return [
        f"{one.id.kind} {one.id} at {one.at:%Y-%m-%d %H:%M:%S} UTC",
        f"  replicas: {one.replicas_now} now, {_owner(one)}",
        *(line for view in one.signals for line in _signal(view)),
        *_forecast(one),
        *_lead_time(one),
        *(_clamp(i, clamp) for i, clamp in enumerate(one.clamps, 1)),
        f"  => {_count(one)}",
        f"  one pod (request/limit): {pods_change(one.resources_now, one.resources_now)}",
        f"  => {_size(one)}",
        *_containers(one),
    ]


def _containers(one: Recommendation) -> Iterator[str]:
    """Each of several containers, and what has to change with them."""
    if not isinstance(one.resources, Resize):
        return
    sizes = one.resources.containers
    for size in sizes if len(sizes) > 1 else ():
        yield f"     {size.name}: {pods_change(size.now, size.recommended)}"
    for target in one.resources.targets:
        yield f"     with it, the HPA's target for {target.metric}: {target.value * 100:.0f} %"


def _owner(one: Recommendation) -> str:
    return f"owned by HPA {one.autoscaler}" if one.autoscaler else "no HPA"


def _signal(view: SignalView) -> Iterator[str]:
    yield f"  {view.signal}: target {view.target}" if view.target else f"  {view.signal}: not usable"
    if view.measured is not None and view.measured_at is not None:
        asks = f", asks for {view.reactive_replicas}" if view.reactive_replicas is not None else ""
        yield f"    measured {amount(view.measured, view.unit)} at {view.measured_at:%H:%M}{asks}"
    if view.forecast is not None:
        asks = f", asks for {view.forecast_replicas}" if view.forecast_replicas is not None else ""
        yield f"    forecast {_ahead(view.forecast, view.unit)}{asks}"
    if view.note:
        yield f"    note: {view.note}"


def _forecast(one: Recommendation) -> Iterator[str]:
    """State of the forecast, unless the sentence of the count says it; nothing where the count is held."""
    if isinstance(one.replicas, Scale) and one.replicas.reason is not Reason.GATED:
        state, why = forecast_state(one.shut, foreseen=any(view.forecast for view in one.signals))
        yield f"  forecast {state}{f': {why}' if why else ''}"


def _lead_time(one: Recommendation) -> Iterator[str]:
    """Say from when on the peak was looked for; nothing where no peak was."""
    if one.lead_time and any(view.forecast for view in one.signals):
        yield f"  lead time {duration_text(one.lead_time.value)}: {one.lead_time.origin}"


def _ahead(ahead: PeakForecast, unit: str) -> str:
    between = f"{ahead.begin:%H:%M} and {ahead.until:%H:%M}"
    peak, low, high, median = alike((ahead.peak, ahead.low, ahead.high, ahead.median), unit)
    quantile = f"p{ahead.quantile * 100:g} of the peak between {between} is {peak}"
    return f"{quantile} ({low} to {high}, median {median}; {ahead.model})"


def _clamp(i: int, clamp: Clamp) -> str:
    return f"  {i}. {clamp.rule}: {clamp.before} → {clamp.after} ({clamp.why})"


def _count(one: Recommendation) -> str:
    if isinstance(one.replicas, Hold):
        return f"hold at {one.replicas_now} ({one.replicas.reason}): {one.replicas.message}"
    return f"{one.replicas.replicas} replicas ({one.replicas.reason}): {one.replicas.message}"


def _size(one: Recommendation) -> str:
    if isinstance(one.resources, Resize):
        return f"{pods_change(one.resources_now, one.resources.resources)}: {one.resources.message}"
    return f"unchanged ({one.resources.reason}): {one.resources.message}"
