"""After a change to or from summer time, days and weeks are compared by the clock of the workload's time zone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.cycle.load_forecast import PodLoads
from forecaster.demand.fresh import FreshHistory
from forecaster.demand.latest import DayAgo
from forecaster.domain.clock import clock_changes, time_by_clock
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, PeakForecast
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.wall_clock import by_wall_clock, columns_by_clock
from forecaster.replay.judging import PastDemand, cases_of
from tests.support.builders import CPU_HALF, hpa, minutes, workload
from tests.support.recommendations import ahead_of, workload_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal

WEB = workload_id("web")
DAY, COLUMNS = timedelta(days=1), 21 * 288
SPAN = PeakSpan(minutes(5), minutes(10))
CHANGES = {
    "Berlin, spring": ("Europe/Berlin", datetime(2026, 3, 30, tzinfo=UTC)),
    "Berlin, autumn": ("Europe/Berlin", datetime(2026, 10, 26, tzinfo=UTC)),
    "New York, spring": ("America/New_York", datetime(2026, 3, 9, tzinfo=UTC)),
    "New York, autumn": ("America/New_York", datetime(2026, 11, 2, tzinfo=UTC)),
}
"""Zones, and the Monday after a change of their clock."""
each_change = pytest.mark.parametrize(("zone", "monday"), CHANGES.values(), ids=CHANGES)


def at_ten_to_eight(zone: str, day: datetime) -> datetime:
    """Ten minutes before the load comes, by the clock of the zone."""
    return day.replace(hour=7, minute=50, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def ends(now: datetime) -> list[datetime]:
    return [now - place * FIVE_MINUTES for place in range(COLUMNS - 1, -1, -1)]


def history(zone: str, now: datetime, *, stated: bool) -> FreshHistory:
    """Three weeks of a load that steps from 1 to 10 from 08:00 to 18:00 by the clock of the zone."""
    hours = [(at - FIVE_MINUTES).astimezone(ZoneInfo(zone)).hour for at in ends(now)]
    noise = np.random.default_rng(1).uniform(0.97, 1.03, COLUMNS)
    values = np.array([10.0 if 8 <= hour < 18 else 1.0 for hour in hours]) * noise
    weeks = Window((WEB,), now - (COLUMNS - 1) * FIVE_MINUTES, FIVE_MINUTES, values[None].astype(np.float32))
    fresh = FreshHistory(weeks, np.empty((1, 0), np.float32), now)
    return replace(fresh, zones={WEB: zone}) if stated else fresh


def p90(zone: str, day: datetime, *, stated: bool = True) -> float:
    """Forecast for 07:55 to 08:05 by the clock of the zone."""
    now = at_ten_to_eight(zone, day)
    ahead = ahead_of(Forecaster("adaptive").peaks(CPU, history(zone, now, stated=stated), [SPAN], now)[SPAN], WEB, 0.9)
    assert isinstance(ahead, PeakForecast)
    return ahead.peak


@each_change
def test_the_morning_after_a_change_is_expected_as_the_friday_before(zone: str, monday: datetime) -> None:
    friday = p90(zone, monday - 3 * DAY)
    assert friday > 8
    assert p90(zone, monday) == pytest.approx(friday, rel=0.15)


def test_a_fleet_in_utc_has_the_very_numbers_that_it_had() -> None:
    known = history("UTC", at_ten_to_eight("UTC", datetime(2026, 3, 30, tzinfo=UTC)), stated=False)
    assert by_wall_clock(known.weeks.values, (WEB,), known) is known.weeks.values
    in_utc = replace(known, zones={WEB: "Asia/Tokyo"})  # no summer time there
    assert by_wall_clock(known.weeks.values, (WEB,), in_utc) is known.weeks.values


@each_change
def test_yesterday_is_the_day_before_by_the_clock(zone: str, monday: datetime) -> None:
    now = at_ten_to_eight(zone, monday - DAY)
    known = history(zone, now, stated=True)
    begin = now + minutes(10)
    assert DayAgo(known.weeks, known.zones).peak(WEB, begin, begin + minutes(9)) == pytest.approx(10, rel=0.05)
    assert DayAgo(known.weeks, known.zones).peak(WEB, now - minutes(9), now) == pytest.approx(1, rel=0.05)


class Weeks:
    """A history with the weeks of one load, and no minutes."""

    def __init__(self, zone: str, now: datetime) -> None:
        self.weeks = history(zone, now, stated=False).weeks

    def window(self, _signal: Signal, step: timedelta) -> Window:
        if step == FIVE_MINUTES:
            return self.weeks
        return Window((WEB,), self.weeks.end, step, np.full((1, 1), np.nan, np.float32))


@each_change
def test_a_gate_judges_days_by_the_clock_of_their_users(zone: str, monday: datetime) -> None:
    """Each day of the evidence steps up at the same time of day, also before the change."""
    past = PastDemand(Weeks(zone, at_ten_to_eight(zone, monday)))
    places = {}
    for stated in (zone, "UTC"):
        policy = Policy.model_validate({"time_zone": stated})
        cases = cases_of(workload("web", autoscaler=hpa(CPU_HALF)), policy, past)
        assert isinstance(cases, list)
        bins = cases[0].bins
        steps = (len(bins) - np.flatnonzero((bins[1:] > bins.mean()) & (bins[:-1] < bins.mean()))) % 288
        places[stated] = len(np.unique(steps))
    assert places == {zone: 1, "UTC": 2}


@pytest.mark.parametrize(("zone", "monday"), [CHANGES[name] for name in CHANGES if "spring" in name])
def test_a_pods_coming_load_is_expected_by_the_clock_of_its_users(zone: str, monday: datetime) -> None:
    """The step of 08:00 lies within a quarter of an hour after 07:50 on the Sunday."""
    now = at_ten_to_eight(zone, monday - DAY)
    alone = workload("web", autoscaler=None, replicas=2)
    peaks = {}
    for stated in (True, False):
        forecaster = Forecaster("seasonal-naive-day")
        forecaster.peaks(CPU, history(zone, now, stated=stated), [SPAN], now)
        policy = Policy.model_validate({"time_zone": zone if stated else "UTC", "vertical": {"horizon": "15m"}})
        loads = PodLoads(Weeks(zone, now), forecaster, Policies(policy))
        peaks[stated] = loads.of([alone], policy.vertical)[alone.id]
    assert peaks[True].ratio > peaks[False].ratio


def columns(zone: str, end: datetime, count: int) -> NDArray[np.intp]:
    moved = columns_by_clock(zone, end, FIVE_MINUTES, count)
    return np.arange(count) if moved is None else moved


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]),
    st.integers(0, 366 * 288),
    st.integers(1, 9000),
)
def test_every_column_holds_what_its_clock_showed(zone: str, place: int, count: int) -> None:
    """The rule on arrays equals the rule on a single instant for all weeks."""
    end = datetime(2026, 1, 1, tzinfo=UTC) + place * FIVE_MINUTES
    shown = columns(zone, end, count)
    begin = end - count * FIVE_MINUTES
    for column in {0, count // 3, count // 2, count - 1}:
        meant = time_by_clock(end, end - (begin + column * FIVE_MINUTES), zone)
        expected = (meant - begin) // FIVE_MINUTES
        assert shown[column] == (expected if 0 <= expected < count else -1)


def test_a_change_is_found_to_the_second() -> None:
    (change,) = clock_changes("Europe/Berlin", datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 4, 3, 7, tzinfo=UTC))
    assert change == (datetime(2026, 3, 29, 1, tzinfo=UTC), timedelta(hours=1))
