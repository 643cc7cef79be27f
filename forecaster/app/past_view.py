"""The last half day of one workload for the dashboard: forecasts at a chosen lead, their outcome, masked columns.

Forecasts are made anew at each past origin by the present model, from the data of that time, as replays make them: so
any lead can be shown, also one that no policy has used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.workload_facts import ContainerRecord, WorkloadFacts
from forecaster.demand.fresh import DemandContext
from forecaster.demand.masks import Masked
from forecaster.domain.event import ScheduledEvent
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, HOUR, MINUTE, MINUTES_A_POINT, last_multiple
from forecaster.forecasting.cleaning import ShardHistory, masks_of
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.horizontal.columns import Floats
from forecaster.horizontal.lead_time import lead_time
from forecaster.replay.account import RunResult
from forecaster.replay.forecasts import ForecastRequest, ServiceHistory, forecast_minutes
from forecaster.replay.strategies import perfect
from forecaster.replay.traces import measurements_of
from forecaster.replay.what_if import WhatIf, WhatIfFacts
from models import Calendar

LOOK_BACK_LENGTH = timedelta(hours=12)
LOOK_BACK_POINTS = LOOK_BACK_LENGTH // FIVE_MINUTES
LOW, MEDIAN, HIGH = 0.1, 0.5, 0.9
MIN_PEAKS = 6
"""Smallest number of known peaks in an hour that is summarized."""


class PastForecast(NamedTuple):
    """Forecast of the peak between `lead` and `lead` + window after each origin; [origin] each."""

    begins: list[datetime]
    """Beginning of each window."""
    low: Floats
    median: Floats
    high: Floats
    peak: Floats
    """Peak at the policy's quantile."""
    actual: Floats
    """The peak that came, NaN where it is not known yet."""
    quantile: float
    span: PeakSpan


@dataclass(frozen=True, slots=True)
class HourOfForecasts:
    """Errors of the forecasts of one hour, as ratios; None where too few peaks are known."""

    begin: datetime
    coverage: float | None
    """Share of peaks at or below the forecast quantile."""
    error: float | None
    """|peak - median| as a share of the peaks."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, `masked`, `unknown`, `event` or `holiday`, and its description."""

    begin: datetime
    until: datetime
    kind: str
    said: str


def past_forecast(facts: WhatIfFacts, signal: Signal, lead: timedelta | None = None) -> PastForecast:
    """Return the forecasts of the half day until now, at the lead time in force unless another one is given."""
    horizontal, end = facts.policy.horizontal, facts.traces.end
    span = PeakSpan(lead or lead_time(horizontal).value, horizontal.window)
    begin = last_multiple(end - LOOK_BACK_LENGTH - span.lead_time, FIVE_MINUTES)
    minutes = (end - begin) // MINUTE + 1
    measured = measurements_of(facts.traces, begin, minutes, [(facts.workload.id, facts.policy)])
    made = forecast_minutes(measured, [signal], ForecastRequest(facts.model, span, every=MINUTES_A_POINT))
    came = perfect(measurements_of(facts.traces, begin + span.lead_time, minutes), PeakSpan(timedelta(), span.length))
    quantile = horizontal.quantile
    origins = slice(0, minutes, MINUTES_A_POINT)
    levels = {"low": LOW, "median": MEDIAN, "high": HIGH, "peak": quantile}
    quantiles = {name: _at(made.peak(signal, level, origins)) for name, level in levels.items()}
    actual = came.values[signal][origins, 0, 0]
    begins = [measured.instant(minute) + span.lead_time for minute in range(0, minutes, MINUTES_A_POINT)]
    over = np.array([at + span.length <= end for at in begins])
    return PastForecast(begins, **quantiles, actual=np.where(over, actual, np.nan), quantile=quantile, span=span)


def _at(values: Floats | None) -> Floats:
    if values is None:
        raise TypeError("the forecast has no values")
    return np.asarray(values[:, 0])


def by_hour(past: PastForecast) -> Iterator[HourOfForecasts]:
    """Coverage and error of each hour."""
    hours = [last_multiple(at, HOUR) for at in past.begins]
    for hour in dict.fromkeys(hours):
        within = np.array([start == hour for start in hours]) & np.isfinite(past.actual) & np.isfinite(past.peak)
        if within.sum() < MIN_PEAKS:
            yield HourOfForecasts(hour, None, None)
            continue
        actual, total = past.actual[within], float(past.actual[within].sum())
        error = float(np.abs(actual - past.median[within]).sum()) / total if total > 0 else None
        yield HourOfForecasts(hour, float((actual <= past.peak[within]).mean()), error)


def masked_spans(facts: WhatIfFacts, signal: Signal) -> list[Span]:
    """Return the spans in which models learn from other values than the measured ones, and why."""
    measured = measurements_of(facts.traces, facts.traces.end, 1)
    workload, now = facts.workload, facts.traces.end
    pods = ServiceHistory.of(measured, PODS).cut(now)
    history = ServiceHistory.of(measured, signal).cut(now, DemandContext(signal, pods, {workload.id: workload}))
    if history.context is None:
        return []
    why = masks_of(ShardHistory([workload.id], np.array([0]), history, history.context))[0, -LOOK_BACK_POINTS:]
    return [
        span
        for reason in Masked
        for span in _spans(why == reason, history.weeks.end, "masked", f"not learned from as measured: {reason.words}")
    ]


def unknown_spans(facts: WhatIfFacts, signal: Signal) -> list[Span]:
    """Return the spans in which nothing complete was measured."""
    values = facts.traces.of(signal)[0]
    last = last_multiple(facts.traces.end, FIVE_MINUTES)
    stop = facts.traces.column(last) + 1
    bins = values[max(stop - LOOK_BACK_POINTS * MINUTES_A_POINT, 0) : stop]
    bins = bins[len(bins) % MINUTES_A_POINT :].reshape(-1, MINUTES_A_POINT)
    return list(_spans(np.isnan(bins).all(axis=1), last, "unknown", "nothing complete was measured"))


def event_spans(events: tuple[ScheduledEvent, ...], begin: datetime, until: datetime) -> list[Span]:
    """The known events of a policy that are on within a span of time."""
    spans: dict[tuple[str, datetime], Span] = {}
    at = begin
    while at <= until:
        for event in events:
            end = event.lasts_until(at)
            if end is not None:
                span = Span(at, min(end, until), "event", f"{event.name}: {event.effect()}")
                spans.setdefault((event.name, end), span)
        at += FIVE_MINUTES
    return list(spans.values())


def _spans(true: NDArray[np.bool_], end: datetime, kind: str, text: str) -> Iterator[Span]:
    """Runs of columns of five minutes, the last of which ends at `end`."""
    edges = np.flatnonzero(np.diff(np.r_[False, true, False].astype(np.int8)))
    start = end - len(true) * FIVE_MINUTES
    for first, stop in edges.reshape(-1, 2).tolist():
        yield Span(start + first * FIVE_MINUTES, start + stop * FIVE_MINUTES, kind, text)


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
