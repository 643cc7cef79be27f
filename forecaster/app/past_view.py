"""Picture of the last half day of one workload for the dashboard, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import numpy as np

from forecaster.cycle.workload_facts import ContainerRecord, WorkloadFacts
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES, HOUR, MINUTE
from forecaster.horizontal.numbers import Floats
from forecaster.replay.account import RunResult
from forecaster.replay.look_back import (
    LOOK_BACK_LENGTH,
    MINUTES_A_POINT,
    HourOfForecasts,
    PastForecast,
    Span,
    by_hour,
    event_spans,
    masked_spans,
    past_forecast,
    unknown_spans,
)
from forecaster.replay.what_if import WhatIf, WhatIfFacts
from models import Calendar

PAST_DIGITS = 4
NO_HOLIDAYS = Calendar()
Numbers = list[float | None]


class PastForecastView(msgspec.Struct, frozen=True):
    """Forecasts of the peaks with windows that begin at `begin` + i × `step_seconds`."""

    begin: datetime
    step_seconds: float
    lead_seconds: float
    window_seconds: float
    quantile: float
    low: Numbers
    median: Numbers
    high: Numbers
    peak: Numbers
    actual: Numbers


class NewsView(msgspec.Struct, frozen=True):
    """A deploy or an OOM kill, at the instant at which it was noticed."""

    at: datetime
    said: str


class PastContainerView(msgspec.Struct, frozen=True):
    """A container: usage of its hottest pod by five minutes until `until`, beside its requests and limits."""

    name: str
    resource: str
    unit: str
    until: datetime
    usage: Numbers
    request: float | None
    limit: float | None


class PlainView(msgspec.Struct, frozen=True):
    """Replicas of the HPA alone, in steps of five minutes from `begin` on: replayed, without floors."""

    begin: datetime
    asked: list[int]


class PastView(msgspec.Struct, frozen=True):
    """The document of a look back."""

    signal: str
    forecast: PastForecastView | None
    refused: str
    """Reason why there is no forecast; empty where there is one."""
    hours: list[HourOfForecasts]
    spans: list[Span]
    news: list[NewsView]
    containers: list[PastContainerView]
    plain: PlainView | None
    """None where there is no replay."""


def past_view(
    workload_facts: WorkloadFacts,
    what_if: WhatIf,
    signal: Signal,
    lead: timedelta | None,
    alone: RunResult | None,
    calendar: Calendar = NO_HOLIDAYS,
) -> PastView:
    """Return the past of one signal; `lead` defaults to the one in force, `alone` is the replay of the HPA alone."""
    facts = what_if.facts
    end = facts.traces.end
    forecast, refused = _forecast(facts, signal, lead)
    spans = masked_spans(facts, signal) if refused == "" else []
    spans += unknown_spans(facts, signal)
    spans += event_spans(facts.policy.horizontal.events, end - LOOK_BACK_LENGTH, end + HOUR)
    holidays = calendar.holidays(end - LOOK_BACK_LENGTH, end + HOUR)
    spans += [Span(holiday.start, holiday.end, "holiday", holiday.name) for holiday in holidays]
    return PastView(
        signal=str(signal),
        forecast=_forecast_view(forecast) if forecast else None,
        refused=refused,
        hours=[*by_hour(forecast)] if forecast else [],
        spans=spans,
        news=[NewsView(at, text) for at, text in workload_facts.news if at >= end - LOOK_BACK_LENGTH],
        containers=[view for container in workload_facts.containers for view in _container(container)],
        plain=_plain(what_if, alone) if alone else None,
    )


def _plain(what_if: WhatIf, alone: RunResult) -> PlainView:
    first = what_if.measurements.instant(MINUTES_A_POINT)
    return PlainView(first, alone.track.desired[MINUTES_A_POINT - 1 :: MINUTES_A_POINT].tolist())


def _forecast(facts: WhatIfFacts, signal: Signal, lead: timedelta | None) -> tuple[PastForecast | None, str]:
    known = np.isfinite(facts.traces.of(signal)[0])
    if not known.any():
        return None, f"nothing was measured of {signal}"
    history = (known.size - int(known.argmax())) * MINUTE
    if history < LOOK_BACK_LENGTH + timedelta(hours=1):
        return None, f"{history / HOUR:.0f} hours of history are too few to look back half a day"
    return past_forecast(facts, signal, lead), ""


def _forecast_view(past: PastForecast) -> PastForecastView:
    return PastForecastView(
        begin=past.begins[0],
        step_seconds=FIVE_MINUTES.total_seconds(),
        lead_seconds=past.span.lead_time.total_seconds(),
        window_seconds=past.span.length.total_seconds(),
        quantile=past.quantile,
        **{name: _numbers(getattr(past, name)) for name in ("low", "median", "high", "peak", "actual")},
    )


def _numbers(values: Floats | Sequence[float]) -> Numbers:
    return [float(f"{value:.{PAST_DIGITS}g}") if np.isfinite(value) else None for value in values]


def _container(container: ContainerRecord) -> list[PastContainerView]:
    units = {"cpu": "cores", "memory": "bytes"}
    return [
        PastContainerView(
            name=container.name,
            resource=resource,
            unit=unit,
            until=container.usage[resource].end,
            usage=_numbers(container.usage[resource].points()),
            request=container.resources.request(resource),
            limit=container.resources.limit(resource),
        )
        for resource, unit in units.items()
        if resource in container.usage
    ]
