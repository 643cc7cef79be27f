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

from forecaster.demand.fresh import FreshHistory
from forecaster.demand.latest import DayAgo
from forecaster.domain.clock import clock_changes, time_by_clock
from forecaster.domain.outlook import PeakForecast
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.wall_clock import by_wall_clock, columns_by_clock
from tests.support.builders import minutes
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """10 minutes before the load comes, by the clock of the zone."""
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
    """What is expected of 07:55 to 08:05."""
    now = at_ten_to_eight(zone, day)
    ahead = Forecaster("adaptive").peaks(CPU, history(zone, now, stated=stated), [SPAN], now)[SPAN].ahead(WEB, 0.9)
    assert isinstance(ahead, PeakForecast)
    return ahead.peak


@each_change
def test_the_morning_after_a_change_is_expected_as_the_friday_before(zone: str, monday: datetime) -> None:
    friday = p90(zone, monday - 3 * DAY)
    assert friday > 8
    assert p90(zone, monday) == pytest.approx(friday, rel=0.15)


def test_a_fleet_in_utc_has_the_very_numbers_that_it_had() -> None:
    seen = history("UTC", at_ten_to_eight("UTC", datetime(2026, 3, 30, tzinfo=UTC)), stated=False)
    assert by_wall_clock(seen.weeks.values, (WEB,), seen) is seen.weeks.values
    in_utc = replace(seen, zones={WEB: "Asia/Tokyo"})  # no summer time there
    assert by_wall_clock(seen.weeks.values, (WEB,), in_utc) is seen.weeks.values


@each_change
def test_yesterday_is_the_day_before_by_the_clock(zone: str, monday: datetime) -> None:
    now = at_ten_to_eight(zone, monday - DAY)
    seen = history(zone, now, stated=True)
    begin = now + minutes(10)
    assert DayAgo(seen.weeks, seen.zones).peak(WEB, begin, begin + minutes(9)) == pytest.approx(10, rel=0.05)
    assert DayAgo(seen.weeks, seen.zones).peak(WEB, now - minutes(9), now) == pytest.approx(1, rel=0.05)


def columns(zone: str, end: datetime, count: int) -> NDArray[np.intp]:
    found = columns_by_clock(zone, end, FIVE_MINUTES, count)
    return np.arange(count) if found is None else found


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]),
    st.integers(0, 366 * 288),
    st.integers(1, 9000),
)
def test_every_column_holds_what_its_clock_showed(zone: str, place: int, count: int) -> None:
    """The array rule is the rule on one instant, whatever lies within the weeks."""
    end = datetime(2026, 1, 1, tzinfo=UTC) + place * FIVE_MINUTES
    found = columns(zone, end, count)
    begin = end - count * FIVE_MINUTES
    for column in {0, count // 3, count // 2, count - 1}:
        meant = time_by_clock(end, end - (begin + column * FIVE_MINUTES), zone)
        expected = (meant - begin) // FIVE_MINUTES
        assert found[column] == (expected if 0 <= expected < count else -1)


def test_a_change_is_found_to_the_second() -> None:
    (change,) = clock_changes("Europe/Berlin", datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 4, 3, 7, tzinfo=UTC))
    assert change == (datetime(2026, 3, 29, 1, tzinfo=UTC), timedelta(hours=1))
