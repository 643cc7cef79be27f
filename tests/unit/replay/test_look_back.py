"""The last half day of a workload: its forecasts at any lead time, their errors, and masked or unknown spans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.app.past_view import by_hour, event_spans, masked_spans, past_forecast, unknown_spans
from forecaster.domain.event import ScheduledEvent
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, PODS
from forecaster.domain.window import FIVE_MINUTES, HOUR
from forecaster.replay.traces import Traces
from forecaster.replay.what_if import WhatIfFacts
from tests.support.builders import NOON, hpa, minutes, workload

if TYPE_CHECKING:
    from datetime import timedelta

DAYS = 4
COUNT = DAYS * 1440


def facts(**changed: float) -> WhatIfFacts:
    """Demand with the same peak every hour, for four days; `changed` sets minutes before now to another value."""
    cores = np.where(np.arange(COUNT) % 60 < 30, 6.0, 2.0)
    for span, value in changed.items():
        first, last = map(int, span.strip("_").split("_"))
        cores[COUNT - first : COUNT - last] = value
    web = workload(replicas=12, autoscaler=hpa(highest=30))
    values = {CPU: cores[None], PODS: np.full((1, COUNT), 12.0)}
    policy = Policy.model_validate({"horizontal": {"lead_time": "10m", "window": "5m"}})
    return WhatIfFacts(web, policy, Traces((web,), NOON - minutes(COUNT - 1), values), "seasonal-naive-day")


@pytest.mark.parametrize("lead", [None, minutes(30)], ids=["in force", "of choice"])
def test_a_forecast_of_a_load_that_repeats_itself_is_right(lead: timedelta | None) -> None:
    past = past_forecast(facts(), CPU, lead)
    assert past.span.lead_time == (lead or minutes(10))
    assert past.begins[1] - past.begins[0] == FIVE_MINUTES
    known = np.isfinite(past.actual)
    assert known.sum() >= 140
    assert not known[-1]  # its window is not over
    assert set(np.unique(past.actual[known])) == {2.0, 6.0}
    assert (past.actual[known] <= past.peak[known] + 1e-6).mean() >= 0.9


def test_an_unprecedented_load_is_an_error_of_its_hour() -> None:
    hours = {hour.begin: hour for hour in by_hour(past_forecast(facts(_240_180=18.0), CPU))}
    surprise, usual = hours[NOON - 4 * HOUR], hours[NOON - 8 * HOUR]
    assert usual.coverage is not None
    assert surprise.coverage is not None
    assert surprise.coverage < 0.5 < usual.coverage
    assert (surprise.error or 0.0) > (usual.error or 0.0) + 0.3


def test_an_hour_without_peaks_has_no_figures() -> None:
    past = past_forecast(facts(), CPU)
    nothing = past._replace(actual=np.full_like(past.actual, np.nan))
    assert {(hour.coverage, hour.error) for hour in by_hour(nothing)} == {(None, None)}


def test_where_nothing_was_measured_is_unknown() -> None:
    (gap,) = unknown_spans(facts(_120_90=np.nan), CPU)
    assert (gap.begin, gap.until) == (NOON - minutes(120), NOON - minutes(90))


def test_demand_at_a_limit_is_masked_with_the_reason() -> None:
    known = facts(_300_240=24.0)  # twelve pods with a limit of two cores each
    spans = masked_spans(known, CPU)
    assert any("at the CPU limit" in span.said for span in spans)
    assert any(span.begin < NOON - minutes(270) < span.until for span in spans)


def test_events_are_where_their_policy_puts_them() -> None:
    sale = ScheduledEvent.model_validate({"name": "sale", "cron": "0 9 * * *", "duration": "2h", "replicas": 9})
    freeze = ScheduledEvent.model_validate({"name": "move", "cron": "30 12 * * *", "duration": "1h", "freeze": True})
    spans = event_spans((sale, freeze), NOON - 12 * HOUR, NOON + HOUR)
    assert [(span.begin, span.until, span.said) for span in spans] == [
        (NOON - 3 * HOUR, NOON - HOUR, "sale: at least 9"),
        (NOON + minutes(30), NOON + HOUR, "move: nothing changes"),
    ]


def test_looking_back_does_not_need_an_hpa() -> None:
    known = facts()
    alone = replace(known, workload=workload(autoscaler=None))
    assert np.isfinite(past_forecast(alone, CPU).peak).any()
