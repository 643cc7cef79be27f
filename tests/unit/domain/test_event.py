"""Known events: cron in the time zone of its owner, whole durations, and clear refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import process_time
from zoneinfo import available_timezones

import pytest
from pydantic import ValidationError

from forecaster.domain.clock import clock_of
from forecaster.domain.event import ScheduledEvent, parse_cron
from forecaster.horizontal.events import events_at
from forecaster.hpa.numbers import MAX_INT32

BERLIN = {"cron": "0 8 * * mon-fri", "duration": "10h", "time_zone": "Europe/Berlin", "name": "office", "replicas": 9}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        pytest.param("2026-01-05T06:59", None, id="Monday, before eight in Berlin"),
        pytest.param("2026-01-05T07:00", "2026-01-05T17:00", id="at eight"),
        pytest.param("2026-01-05T16:59", "2026-01-05T17:00", id="the last minute"),
        pytest.param("2026-01-05T17:00", None, id="over"),
        pytest.param("2026-01-10T10:00", None, id="Saturday"),
        pytest.param("2026-07-06T06:00", "2026-07-06T16:00", id="summer time"),
    ],
)
def test_a_schedule_holds_in_its_time_zone(now: str, until: str | None) -> None:
    assert ScheduledEvent.model_validate(BERLIN).lasts_until(at(now)) == (at(until) if until else None)


def test_it_is_seen_a_lead_time_ahead() -> None:
    event = ScheduledEvent.model_validate(BERLIN)
    assert event.lasts_until(at("2026-01-05T06:55"), timedelta(minutes=5)) == at("2026-01-05T17:00")


@pytest.mark.parametrize(
    ("now", "most"),
    [
        pytest.param("2026-03-28T20:59", MAX_INT32, id="before ten in Berlin, in winter"),
        pytest.param("2026-03-28T21:00", 5, id="at ten"),
        pytest.param("2026-03-29T03:49", 5, id="the last minute before that"),
        pytest.param("2026-03-29T03:50", MAX_INT32, id="a lead time before six, in summer"),
        pytest.param("2026-03-29T20:00", 5, id="at ten, in summer"),
    ],
)
def test_a_maximum_follows_the_clock_on_the_wall(now: str, most: int) -> None:
    """Seven hours from ten are over at six in the night that loses an hour; the pods of six o'clock start before."""
    night = ScheduledEvent.model_validate(
        {"name": "night", "max_replicas": 5, "cron": "0 22 * * *", "duration": "7h", "time_zone": "Europe/Berlin"}
    )
    assert events_at([night], at(now), timedelta(minutes=10)).most == most


def test_an_event_over_midnight_lasts_into_the_next_day() -> None:
    night = ScheduledEvent.model_validate({**BERLIN, "cron": "0 22 * * *", "duration": "8h"})
    assert night.lasts_until(at("2026-01-06T03:00")) == at("2026-01-06T05:00")


@pytest.mark.parametrize("cron", ["* * 25 10 *", "0 0 31 2 *"], ids=["each minute of a day of 25 hours", "never"])
def test_events_of_a_namespace_are_found_in_a_moment(cron: str) -> None:
    """A thousand of them once took 5 s in each cycle, for a month after each change of a clock."""
    event = {"name": "e", "replicas": 2, "cron": cron, "duration": "31d"}
    zones = ("Europe/Berlin", "Europe/Rome", "Europe/Paris", "Africa/Cairo")
    events = [ScheduledEvent.model_validate(event | {"time_zone": zones[i % 4]}) for i in range(1_000)]
    began = process_time()
    assert len({event.lasts_until(at("2026-11-10T12:03")) for event in events}) <= 2
    assert process_time() - began < 1


def test_an_owner_of_many_time_zones_has_each_read_from_disk_once() -> None:
    zones = sorted(available_timezones())[:30]
    clock_of.cache_clear()
    for minute in range(3):
        for zone in zones:
            ScheduledEvent.model_validate(BERLIN | {"time_zone": zone}).lasts_until(at(f"2026-01-05T07:0{minute}"))
    assert clock_of.cache_info().misses == len(zones)


def test_a_single_event_is_on_between_its_ends() -> None:
    event = ScheduledEvent(name="match", replicas=5, start=at("2026-01-05T12:00"), end=at("2026-01-05T14:00"))
    assert event.lasts_until(at("2026-01-05T13:00")) == at("2026-01-05T14:00")
    assert event.lasts_until(at("2026-01-05T14:00")) is None


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({**BERLIN, "time_zone": "Mars/Olympus"}, id="unknown zone"),
        pytest.param({**BERLIN, "cron": "0 8 * *"}, id="four fields"),
        pytest.param({**BERLIN, "cron": "61 8 * * *"}, id="minute 61"),
        pytest.param({**BERLIN, "cron": "0 8 * * fri-mon"}, id="backwards"),
        pytest.param({**BERLIN, "duration": None}, id="no duration"),
        pytest.param({**BERLIN, "freeze": True}, id="floor and freeze"),
        pytest.param({"name": "x", "replicas": 3}, id="no time"),
        pytest.param({**BERLIN, "replicas": 9, "max_replicas": 8}, id="floor above the most"),
        pytest.param({**BERLIN, "over_measured": True}, id="nothing to hold over measured demand"),
        pytest.param(
            {"name": "x", "replicas": 3, "start": at("2026-01-05T12:00"), "end": at("2026-01-05T11:00")},
            id="ends first",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ScheduledEvent.model_validate(given)


def test_either_kind_of_day_will_do_as_in_cron() -> None:
    cron = parse_cron("0 0 13 * fri")
    zone = ScheduledEvent.model_validate(BERLIN).time_zone
    day = timedelta(days=1)
    assert cron.latest(at("2026-01-13T12:00"), day, zone) is not None  # a Tuesday, the 13th
    assert cron.latest(at("2026-01-09T12:00"), day, zone) is not None  # a Friday, the 9th
    assert cron.latest(at("2026-01-14T23:30"), day, zone) is None
