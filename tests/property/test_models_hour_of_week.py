"""Hour of the week: local clocks agree with the standard library, quantiles with a plain loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models import Panel
from models.calendar import Calendar
from models.hour_of_week import known_quantiles, like

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
STARTS = st.integers(0, 4 * 365 * 24 * 60).map(
    lambda count: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=count)
)


@given(zone=ZONES, start=STARTS, minutes=st.sampled_from([1, 5, 15, 30, 60]))
def test_local_time_is_that_of_the_standard_library(zone: str, start: datetime, minutes: int) -> None:
    step = timedelta(minutes=minutes)
    panel = Panel(np.zeros((1, 60)), start, step, ("a",))
    clock = Calendar(zone).of(panel)
    expected = [(start + i * step).astimezone(ZoneInfo(zone)) for i in range(60)]
    assert clock.hour.tolist() == [instant.hour for instant in expected]
    assert clock.weekday.tolist() == [instant.weekday() for instant in expected]


@given(start=STARTS, target=st.integers(0, 23))
def test_alike_are_the_same_hour_of_working_days_or_of_days_off(start: datetime, target: int) -> None:
    panel = Panel(np.zeros((1, 14 * 24)), start, timedelta(hours=1), ("a",))
    calendar = Calendar()
    clock = calendar.of(panel, beyond=24)
    chosen = like(clock, calendar.days_off(clock), panel.length, panel.length + target)
    aim = panel.end + timedelta(hours=target)
    days = [panel.start + int(i) * panel.step for i in chosen]
    assert {day.hour for day in days} == {aim.hour}
    assert {day.weekday() >= 5 for day in days} == {aim.weekday() >= 5}
    assert sum(day.weekday() == aim.weekday() for day in days) == 4


@given(seed=st.integers(0, 2**16), gaps=st.floats(0, 0.9))
def test_quantiles_leave_gaps_out(seed: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    samples = rng.uniform(0, 10, (4, 30))
    samples[rng.random((4, 30)) < gaps] = np.nan
    quantile_rows = known_quantiles(samples, (0.1, 0.5, 0.9))
    for row, quantiles in zip(samples, quantile_rows, strict=True):
        known = row[np.isfinite(row)]
        expected = np.quantile(known, (0.1, 0.5, 0.9)) if len(known) else np.full(3, np.nan)
        np.testing.assert_allclose(quantiles, expected)
