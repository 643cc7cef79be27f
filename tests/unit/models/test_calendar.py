"""Calendar: local hours across changes of the clock, holidays, events."""

from datetime import UTC, date, datetime, timedelta
from unittest.mock import patch

import numpy as np
import pytest

from models import Panel, QuestionError, calendar
from models.calendar import Calendar, Event, public_holidays, within
from tests.support.panels import HOUR


def hours(start: datetime, count: int) -> Panel:
    return Panel(np.zeros((1, count)), start, HOUR, ("a",))


def test_a_day_in_spring_has_23_hours_and_one_in_autumn_25() -> None:
    berlin = Calendar("Europe/Berlin")
    spring = berlin.of(hours(datetime(2026, 3, 28, 23, tzinfo=UTC), 24))
    autumn = berlin.of(hours(datetime(2026, 10, 24, 22, tzinfo=UTC), 26))
    assert (spring.day == spring.day[0]).sum() == 23
    assert (autumn.day == autumn.day[0]).sum() == 25
    assert (autumn.hour[autumn.day == autumn.day[0]] == 2).sum() == 2


def test_the_week_begins_on_monday() -> None:
    assert Calendar().of(hours(datetime(2026, 1, 5, tzinfo=UTC), 1)).hour_of_week.tolist() == [0]
    assert Calendar().of(hours(datetime(2026, 1, 4, 23, tzinfo=UTC), 1)).hour_of_week.tolist() == [167]


def test_holidays_of_a_country_and_of_its_regions_are_days_off() -> None:
    pytest.importorskip("holidays")
    assert date(2026, 10, 3) in public_holidays("DE", [2026])
    epiphany = hours(datetime(2026, 1, 6, 12, tzinfo=UTC), 1)
    for country, off in (("DE-BY", True), ("DE-BE", False)):
        calendar = Calendar("Europe/Berlin", (country,))
        assert calendar.days_off(calendar.of(epiphany)).tolist() == [off]


def test_holidays_of_a_country_are_made_once_for_all_days_of_a_panel() -> None:
    pytest.importorskip("holidays")
    berlin = Calendar("Europe/Berlin", ("DE",))
    with patch.object(calendar, "public_holidays", wraps=calendar.public_holidays) as made:
        off = berlin.days_off(berlin.of(hours(datetime(2026, 4, 30, 22, tzinfo=UTC), 240)))
    assert (made.call_count, int(off.sum())) == (1, 24 + 4 * 24)


def test_a_country_or_zone_that_nobody_knows_is_refused_by_name() -> None:
    pytest.importorskip("holidays")
    with pytest.raises(QuestionError, match="no holidays are known for 'XX'"):
        public_holidays("XX", [2026])
    with pytest.raises(QuestionError, match="no time zone 'Mars/Base'"):
        Calendar("Mars/Base").of(hours(datetime(2026, 1, 5, tzinfo=UTC), 1))


def test_an_event_touches_the_bins_that_it_overlaps_also_beyond_the_end() -> None:
    panel = hours(datetime(2026, 1, 5, tzinfo=UTC), 4)
    sale = Event("sale", panel.start + timedelta(minutes=90), panel.start + timedelta(hours=5))
    assert within(panel, [sale], beyond=2).tolist() == [False, True, True, True, True, False]


def test_an_event_without_length_is_refused() -> None:
    monday = datetime(2026, 1, 5, tzinfo=UTC)
    with pytest.raises(QuestionError, match="not after its start"):
        Event("sale", monday, monday)


def test_a_holiday_lasts_from_one_local_midnight_to_the_next() -> None:
    berlin = Calendar("Europe/Berlin", ("DE",))
    (labour_day,) = berlin.holidays(datetime(2026, 4, 30, 22, tzinfo=UTC), datetime(2026, 5, 1, 12, tzinfo=UTC))
    assert (labour_day.start, labour_day.end) == (
        datetime(2026, 4, 30, 22, tzinfo=UTC),
        datetime(2026, 5, 1, 22, tzinfo=UTC),
    )
    assert labour_day.name
    assert berlin.holidays(datetime(2026, 5, 4, tzinfo=UTC), datetime(2026, 5, 5, tzinfo=UTC)) == []
