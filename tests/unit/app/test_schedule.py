"""The schedule: where both want a core, a cycle gives way to answers."""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from forecaster.app.service import NICENESS, Schedule


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells threads apart")
def test_a_cycle_is_less_urgent_than_whoever_else_wants_the_core() -> None:
    urgency, ran = list[int](), threading.Event()

    def job() -> None:
        urgency.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        ran.set()

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    schedule = Schedule(job, interval=timedelta(minutes=1), delay=timedelta(0))
    schedule.start()
    assert ran.wait(30)
    assert schedule.stop(timedelta(seconds=30))
    assert urgency == [max(before, NICENESS)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


def test_a_job_that_has_not_begun_when_the_schedule_stops_does_not_begin() -> None:
    """The scheduler has handed it to a thread, and the stop saw nothing running: nothing would wait for it."""
    ran = list[bool]()
    schedule = Schedule(lambda: ran.append(True), interval=timedelta(minutes=1), delay=timedelta(0))
    schedule._scheduler.start(paused=True)  # noqa: SLF001  so that the thread is ours
    assert schedule.stop(timedelta(0))
    late = threading.Thread(target=schedule._run)  # noqa: SLF001
    late.start()  # the scheduler's thread becomes less urgent, and stays so: this one, with all later tests, must not
    late.join()
    assert ran == []


def test_a_clock_that_was_ahead_by_hours_does_not_stop_the_schedule() -> None:
    """The next start was set while the clock was six hours ahead."""
    schedule = Schedule(lambda: None, interval=timedelta(minutes=1), delay=timedelta(0))
    now = datetime.now(UTC)
    assert not schedule.follow_clock(now)
    assert schedule.follow_clock(now - timedelta(hours=6))
    assert not schedule.follow_clock(now - timedelta(hours=6))


@pytest.mark.parametrize(
    ("interval", "delay", "starts"),
    [
        (1, 5, ["12:00:05", "12:01:05"]),
        (1, 75, ["12:00:15", "12:01:15"]),
        (5, 75, ["12:01:15", "12:06:15"]),
    ],
)
def test_cycles_start_a_delay_after_each_interval(interval: int, delay: int, starts: list[str]) -> None:
    """Samples by remote write are there more than a minute later: the cycle of 12:00 starts then."""
    schedule = Schedule(lambda: None, interval=timedelta(minutes=interval), delay=timedelta(seconds=delay))
    trigger, noon = schedule._due.trigger, datetime(2026, 3, 1, 12, tzinfo=UTC)  # noqa: SLF001  what it waits for
    first = trigger.get_next_fire_time(None, noon)
    second = trigger.get_next_fire_time(first, first + timedelta(seconds=1))
    assert [f"{instant:%H:%M:%S}" for instant in (first, second)] == starts


def test_a_job_that_hangs_is_given_up_and_one_that_takes_its_time_is_not() -> None:
    """The clock stands at nine, ten and sixteen minutes after the job began; it may take fifteen."""
    began, release, minutes, given_up = threading.Event(), threading.Event(), [0.0], list[timedelta]()

    def job() -> None:
        began.set()
        release.wait(30)

    schedule = Schedule(
        job,
        interval=timedelta(minutes=1),
        delay=timedelta(0),
        patience=timedelta(minutes=15),
        give_up=given_up.append,
        seconds=lambda: minutes[0] * 60,
    )
    assert not schedule.follow_job(), "nothing runs"
    schedule.start()
    assert began.wait(30)
    for minutes[0] in (9.0, 15.0):
        assert not schedule.follow_job()
    minutes[0] = 16.0
    assert schedule.follow_job()
    assert given_up == [timedelta(minutes=16)]
    release.set()
    assert schedule.stop(timedelta(seconds=30))
    assert not schedule.follow_job()
