"""Models learn demand: usage that was held down, or an outage, is not forecast, and a note says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from forecaster.demand.fresh import DemandContext, FreshHistory, fresh
from forecaster.domain.report import MaskedShare
from forecaster.domain.signal import CPU, PeakForecast
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.domain.workload import Resources
from forecaster.forecasting.cleaning import SETTLE, ShardHistory, cleaned_since, cleaned_weeks
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from tests.support.builders import NOON, hpa, minutes, workload
from tests.support.recommendations import ahead_of

if TYPE_CHECKING:
    from datetime import datetime

DAY = 288
WEB = workload(resources=Resources(cpu_request=0.5, cpu_limit=1.0), autoscaler=hpa(highest=100))
AT_ONCE = PeakSpan(minutes(0), minutes(5))


class Days(NamedTuple):
    """Usage and ready pods by five minutes; they end at noon, so that the newest columns are the busiest."""

    usage: np.ndarray
    pods: np.ndarray


def days(count: int) -> Days:
    """Days with four cores at noon, almost none at midnight, some noise, and plenty of pods."""
    clock = np.arange(count * DAY) / DAY + 0.5
    noise = np.random.default_rng(1).normal(0, 0.02, count * DAY)
    return Days((2.0 - 1.8 * np.cos(2 * np.pi * clock)) * np.exp(noise), np.full(count * DAY, 10.0))


def shown(measured: Days, passed: int = 0) -> FreshHistory:
    """History without the last `passed` columns, as the service has it on the grid of the clock."""
    usage, pods = (part[: len(part) - passed] for part in measured)
    end = NOON - passed * FIVE_MINUTES
    ready, cpu = (_windows(part, end) for part in (pods, usage))
    return fresh(*cpu, DemandContext(CPU, fresh(*ready), {WEB.id: WEB}))


def _windows(values: np.ndarray, end: datetime) -> tuple[Window, Window]:
    weeks = Window((WEB.id,), end - (len(values) - 1) * FIVE_MINUTES, FIVE_MINUTES, values[None].astype(np.float32))
    recent = np.repeat(weeks.values[:, -36:], 5, axis=1)
    return weeks, Window((WEB.id,), end - 179 * MINUTE, MINUTE, recent)


def group_of(history: FreshHistory) -> ShardHistory:
    assert history.context
    return ShardHistory((WEB.id,), np.array([0]), history, history.context)


def forecast(measured: Days, model: str = "adaptive", passed: int = 0) -> PeakForecast:
    """Forecast of the coming five minutes."""
    now = NOON - passed * FIVE_MINUTES
    ahead = ahead_of(Forecaster(model).peaks(CPU, shown(measured, passed), [AT_ONCE], now)[AT_ONCE], WEB.id, 0.9)
    assert isinstance(ahead, PeakForecast)
    return ahead


@pytest.mark.parametrize("model", ["adaptive", "seasonal-naive-day"])
def test_a_throttled_week_does_not_lower_next_weeks_forecast(model: str) -> None:
    """Two pods were full at two cores for a week; the forecast is made six hours before noon."""
    demand = days(14)
    held = Days(demand.usage.copy(), demand.pods.copy())
    held.usage[-7 * DAY : -DAY // 4], held.pods[-7 * DAY :] = np.minimum(demand.usage[-7 * DAY : -DAY // 4], 2.0), 2.0
    held.usage[-DAY // 4 :] = demand.usage[-DAY // 4 :] * 0.5
    at_noon = Forecaster(model).peaks(
        CPU, shown(held, DAY // 4), [PeakSpan(minutes(355), minutes(5))], NOON - minutes(360)
    )
    (peaks,) = at_noon.values()
    assert peaks.values[0, 2] == pytest.approx(3.8, abs=0.4)


def test_a_throttled_week_that_is_not_cleaned_lowers_the_forecast() -> None:
    demand = days(14)
    demand.usage[-7 * DAY :] = np.minimum(demand.usage[-7 * DAY :], 2.0)
    cut = shown(demand, DAY // 4)
    raw = FreshHistory(cut.weeks, cut.recent, cut.end)
    peaks = Forecaster("seasonal-naive-day").peaks(CPU, raw, [PeakSpan(minutes(355), minutes(5))], NOON - minutes(360))
    assert next(iter(peaks.values())).values[0, 2] < 2.1


@pytest.mark.parametrize("model", ["adaptive", "seasonal-naive-day"])
def test_an_outage_and_its_return_are_not_repeated_the_next_day(model: str) -> None:
    calm = days(8)
    hurt = Days(calm.usage.copy(), calm.pods.copy())
    hurt.usage[-DAY - 10 : -DAY], hurt.usage[-DAY : -DAY + 4] = 0.0, 9.0
    before, after = (forecast(measured, model) for measured in (calm, hurt))
    assert after.median == pytest.approx(before.median, rel=0.05)
    assert after.high == pytest.approx(before.high, rel=0.1)


def test_in_an_outage_what_is_usual_is_expected() -> None:
    gone = days(8)
    gone.usage[-6:] = 0.01
    ahead = forecast(gone)
    assert ahead.median == pytest.approx(3.8, abs=0.4)
    assert ahead.note.startswith(
        "now outage and return: the usual demand is used instead; 0.3% of the last week is masked"
    )


def test_a_newest_value_at_the_limit_is_no_false_low() -> None:
    """Five days have four cores at noon; now two pods are at their limit of two cores."""
    demand = days(6)
    demand.usage[-3:], demand.pods[-3:] = 2.0, 2.0
    assert forecast(demand).median == pytest.approx(3.8, abs=0.4)


def test_pods_without_samples_for_hours_are_not_used_for_cleaning() -> None:
    """The clock was six hours ahead: the weeks of pods are known, and their window of minutes has no row."""
    measured = days(6)
    weeks, recent = _windows(measured.pods, NOON)
    nothing = Window((), recent.start, MINUTE, recent.values[:0])
    usage = fresh(*_windows(measured.usage, NOON), DemandContext(CPU, fresh(weeks, nothing), {WEB.id: WEB}))
    ahead = ahead_of(Forecaster("seasonal-naive-day").peaks(CPU, usage, [AT_ONCE], NOON)[AT_ONCE], WEB.id, 0.9)
    assert isinstance(ahead, PeakForecast)
    assert ahead.median == pytest.approx(3.8, abs=0.4)


def test_columns_that_came_later_are_cleaned_as_the_weeks_are() -> None:
    """Usage at yesterday's noon was held down; the models learned half a day before."""
    measured, later = days(8), 3 * DAY // 2
    noon = slice(-DAY - 20, -DAY + 20)
    measured.usage[noon], measured.pods[noon] = np.minimum(measured.usage[noon], 2.0), 2.0
    group = [group_of(shown(measured, later)), group_of(shown(measured))]
    in_steps = cleaned_weeks(group[0], None)[1].settled
    at_once = cleaned_since(group[1], in_steps).values
    for passed in range(later, -1, -1):
        values, _, in_steps = cleaned_since(group_of(shown(measured, passed)), in_steps)
    whole, _ = cleaned_weeks(group[1], None)
    assert values == pytest.approx(whole, rel=0.02)
    assert at_once == pytest.approx(whole, rel=0.02)
    assert group[1].end - in_steps.open <= SETTLE


def test_two_shards_that_become_one_are_cleaned_as_each_was() -> None:
    """The later end of settled columns is open for both shards, and the usage of starting pods stays."""
    measured = days(10)
    measured.usage[-3 * DAY : -3 * DAY + 100] = 0.5 * measured.usage[-3 * DAY : -3 * DAY + 100]
    measured.pods[-3 * DAY : -3 * DAY + 100] = 1.0
    now, before = shown(measured), shown(measured, 2 * SETTLE)
    _, new = cleaned_weeks(group_of(now), None)
    _, old = cleaned_weeks(group_of(before), None)
    both = new.joined(replace(old, starts=np.full_like(old.starts, 0.7)))
    assert both.settled.open == old.settled.open
    assert both.searched_until == new.searched_until
    part = both.part(np.array([1]), (WEB.id,))
    assert (part.starts == 0.7).all()
    expected = cleaned_since(group_of(now), old.settled).values
    np.testing.assert_allclose(cleaned_since(group_of(now), part.settled).values, expected)


def test_masked_shares_and_reasons_are_reported_and_explained() -> None:
    measured = days(8)
    noon = slice(-DAY - 20, -DAY + 20)
    measured.usage[noon], measured.pods[noon] = 2.0, 2.0
    forecaster = Forecaster("last-value")
    peaks = forecaster.peaks(CPU, shown(measured), [AT_ONCE], NOON)[AT_ONCE]
    assert forecaster.masked() == [MaskedShare(WEB.id, CPU, "limit", pytest.approx(40 / (7 * DAY)))]
    ahead = ahead_of(peaks, WEB.id, 0.9)
    assert isinstance(ahead, PeakForecast)
    assert "2.0% of the last week is masked (at the CPU limit 2.0%)" in ahead.note


def test_free_demand_is_not_remarked_upon() -> None:
    assert forecast(days(8), "seasonal-naive-day").note == ""
