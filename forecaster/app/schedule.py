"""Runs one job at aligned times, one run at a time."""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


NICENESS = 10
"""Answers of the serving process are awaited, the end of a cycle is not: the cycle gives way where both want a core."""


class Schedule:
    """Starts `job` at once and then `delay` after every multiple of `interval`.

    A start that falls into a running job is skipped and counted; several that were missed become one.
    """

    def __init__(self, job: Callable[[], None], *, interval: timedelta, delay: timedelta) -> None:
        self._late = 0
        self._idle = threading.Event()
        self._idle.set()
        self._job = job
        self._scheduler = BackgroundScheduler(timezone=UTC)
        self._scheduler.add_listener(self._count_late, EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED)
        self._interval = interval
        self._stopped = threading.Event()
        self._due = self._scheduler.add_job(
            self._run,
            _aligned(interval, delay),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )

    def start(self) -> None:
        """Begin; returns at once."""
        self._scheduler.start()
        threading.Thread(target=self._watch_clock, name="clock", daemon=True).start()

    def stop(self, timeout: timedelta) -> bool:
        """Start nothing more and wait for the running job; whether it finished in time."""
        self._stopped.set()
        self._scheduler.pause()
        finished = self._idle.wait(timeout.total_seconds())
        self._scheduler.shutdown(wait=finished)
        return finished

    def take_late_starts(self) -> int:
        """How many starts were skipped or joined since the last question."""
        late, self._late = self._late, 0
        return late

    def follow_clock(self, now: datetime) -> bool:
        """Start anew where the next start lies further ahead than two intervals; whether it did.

        A clock that was wrong by hours and was set back would otherwise stop the schedule for as long.
        """
        if self._due.next_run_time - now <= 2 * self._interval:
            return False
        self._due.modify(next_run_time=now)
        return True

    def _watch_clock(self) -> None:
        while not self._stopped.wait(self._interval.total_seconds()):
            self.follow_clock(datetime.now(UTC))

    def _run(self) -> None:
        self._idle.clear()
        give_way()
        try:
            self._job()
        finally:
            self._idle.set()

    def _count_late(self, _event: object) -> None:
        self._late += 1


def give_way() -> None:
    """This thread alone becomes less urgent, where the system can tell threads apart: on Linux."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


def _aligned(interval: timedelta, delay: timedelta) -> CronTrigger:
    """Whole minutes only, as the settings promise."""
    minutes = int(interval.total_seconds() // 60)
    late, second = divmod(int(delay.total_seconds()), 60)
    return CronTrigger(minute=f"{late % minutes}-59/{minutes}", second=second, timezone=UTC)
