"""The latest beginning of a repeated event is that of all its beginnings, on days of a clock change, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from forecaster.domain.event import Cron

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Asuncion")
CHANGES = (datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 3, 8, tzinfo=UTC))
moments = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes), st.sampled_from(CHANGES), st.integers(-4000, 4000)
)


def ordered(most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.frozensets(st.integers(0, most), min_size=1, max_size=4).map(lambda numbers: tuple(sorted(numbers)))


crons = st.builds(
    Cron,
    minutes=ordered(59),
    hours=ordered(23),
    days=st.sampled_from([frozenset(range(1, 32)), frozenset({29}), frozenset({8, 25})]),
    months=st.just(frozenset(range(1, 13))),
    weekdays=st.sampled_from([frozenset(range(7)), frozenset({0}), frozenset({1, 2, 3, 4, 5})]),
    either_day=st.booleans(),
)
ALWAYS = frozenset(range(1, 32)), frozenset(range(1, 13)), frozenset(range(7))


def of_all(cron: Cron, before: datetime, within: timedelta, zone: ZoneInfo) -> datetime | None:
    """The latest of all beginnings, as they stand in the calendar."""
    local = before.astimezone(zone).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    days = [local - timedelta(days=back) for back in range(within.days + 2)]
    starts = [
        (day + timedelta(hours=hour, minutes=minute)).replace(tzinfo=zone).astimezone(UTC)
        for day in days
        if day.month in cron.months and meant(cron, day)
        for hour in cron.hours
        for minute in cron.minutes
    ]
    return max((at for at in starts if before - within < at <= before), default=None)


def meant(cron: Cron, day: datetime) -> bool:
    by_date, by_name = day.day in cron.days, day.isoweekday() % 7 in cron.weekdays
    return by_date or by_name if cron.either_day else by_date and by_name


@given(crons, moments, st.integers(1, 5000), st.sampled_from(ZONES))
@example(
    Cron((30,), (2,), *ALWAYS, either_day=False),
    CHANGES[0] + timedelta(hours=2),
    90,
    "Europe/Berlin",
)
def test_the_latest_beginning_is_that_of_all(cron: Cron, before: datetime, minutes: int, name: str) -> None:
    zone, within = ZoneInfo(name), timedelta(minutes=minutes)
    assert cron.latest(before, within, name) == of_all(cron, before, within, zone)
