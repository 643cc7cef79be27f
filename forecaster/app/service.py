"""The service: runs the cycle at aligned times and keeps its report, its metrics and, now and then, the history."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from forecaster.app import telemetry
from forecaster.app.clock import current
from forecaster.cycle.run import Cycle, Outcome
from forecaster.domain.window import last_multiple
from forecaster.errors import StoreError

if TYPE_CHECKING:
    from forecaster.app.reload import SettingsReload
    from forecaster.app.sharding.cycle import ShardedCycle
    from forecaster.app.telemetry import Metrics
    from forecaster.config.settings import CycleSettings
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.report import CycleReport
    from forecaster.store.state import ObservedFile

EXIT_STUCK = 70
"""Exit code of a process whose cycle hung: an internal error, as sysexits.h numbers it."""


class Persistable(Protocol):
    """State that outlives the process."""

    def save(self) -> None:
        """Write it as it is now. Raises `StoreError`."""


@dataclass(slots=True)
class Persistence:
    """Persisted state, the interval of its writes, and the time of the last one."""

    part: Persistable
    every: timedelta
    at: datetime | None = None

    def due(self, now: datetime) -> bool:
        """Whether it is time to write it; after a jump of the clock, either way, it is."""
        return self.at is None or not timedelta() <= now - self.at < self.every


@dataclass(slots=True)
class OnChange:
    """A file that is written in the cycle in which there is something new to keep."""

    file: ObservedFile[Any]
    written: bytes = b""

    def save(self) -> None:
        """Write the state if it differs from the last written one. Raises `StoreError`."""
        state = self.file.observed.encoded()
        if state != self.written:
            self.file.save()
            self.written = state


@dataclass(slots=True)
class Service:
    """The steps of `forecaster run` between start and stop."""

    cycle: Cycle | ShardedCycle
    settings: CycleSettings
    metrics: Metrics
    persisted: Sequence[Persistence]
    log: telemetry.Log
    clock: Callable[[], datetime] = current
    schedule: Schedule = field(init=False)
    report: CycleReport | None = None
    taken_over: datetime | None = None
    """The evaluation time of the table that another replica published last: it is not decided a second time."""
    idle: frozenset[str] = frozenset()
    """Overrides and objects that meant no workload when it was looked last."""
    reload: SettingsReload | None = None
    """Reader of changed settings."""
    end: Callable[[int], None] = os._exit
    """Ends the process with an exit code, without waiting for its threads."""
    judged: ClusterPolicies | None = None
    """Policies stated by objects of the cluster at that time."""

    def __post_init__(self) -> None:
        self.schedule = Schedule(
            self.tick,
            interval=self.settings.interval,
            delay=self.settings.delay,
            patience=self.settings.stuck_after,
            give_up=self.give_up,
        )

    def tick(self) -> None:
        """One start of the schedule; whatever happens, the next one comes."""
        now = last_multiple(self.clock() - self.settings.delay, self.settings.interval)
        before = self.report.at if self.report else self.taken_over
        if before is not None and before - self.settings.interval < now <= before:
            self.log.warning("evaluation_time_repeated", at=now, before=before)
            return
        if before is not None and now < before:
            self.log.warning("clock_went_back", at=now, before=before)
        try:
            self._run(now)
        except Exception:
            self.log.exception("cycle_failed", at=now)
            self.metrics.cycle_failed()

    def give_up(self, running: timedelta) -> None:
        """End the process at once: a cycle that hangs holds the Lease and every later cycle, and cannot be stopped.

        What starts the process again goes on from the state that was saved. The first cycle reads the history whatever
        it takes; ended in it, each next process would begin the same reading anew.
        """
        if self.report is None:
            self.log.warning("first_cycle_slow", running=running)
            return
        self.log.critical("cycle_stuck", running=running, stuck_after=self.settings.stuck_after)
        self.end(EXIT_STUCK)

    def stop(self) -> bool:
        """Let the running cycle finish and save the history; whether it finished within the grace."""
        if isinstance(self.cycle, Cycle):
            self.cycle.ending = True
        finished = self.schedule.stop(self.settings.grace)
        if finished:
            self._save(self.persisted, self.clock())
        return finished

    def _run(self, now: datetime) -> None:
        waiting = self._reloaded()
        outcome = self.cycle.run(now)
        late = self.schedule.pop_late_starts()
        self.report = replace(outcome.report, late_starts=late, failures=outcome.report.failures + waiting)
        self.metrics.record(self.report)
        telemetry.log_report(self.log, self.report)
        self._judge_overrides(outcome)
        self._save([persistence for persistence in self.persisted if persistence.due(now)], now)

    def _reloaded(self) -> tuple[str, ...]:
        """Apply changed settings; return a line for each setting that is not in force as the files state it."""
        if self.reload is None:
            return ()
        stated = (self.cycle.policies.defaults, self.cycle.policies.overrides)
        self.reload.look()
        self.metrics.settings_loaded(taken_over=not self.reload.refused, waiting=len(self.reload.waiting))
        if not isinstance(self.cycle, Cycle):
            self.cycle.divide(self.reload.shards)
        if (self.cycle.policies.defaults, self.cycle.policies.overrides) != stated:
            self.judged = None  # other overrides may mean no workload
        return tuple(self.reload.failures())

    def _judge_overrides(self, outcome: Outcome) -> None:
        """One warning, once there are workloads: an override that means none of them is mostly misspelt.

        One more for those that are new wherever objects of the cluster state something else.
        """
        policies = self.cycle.policies
        if not outcome.inventory.workloads or policies.cluster == self.judged:
            return
        before, self.judged = self.idle, policies.cluster
        idle = policies.without_a_workload(outcome.inventory.ids)
        self.idle = frozenset(idle)
        new = [override for override in idle if override not in before]
        if new:
            self.log.warning("overrides_match_nothing", at=outcome.report.at, overrides=new[: telemetry.FAILURES_SHOWN])

    def _save(self, due: Iterable[Persistence], now: datetime) -> None:
        for persistence in due:
            try:
                with self.metrics.counting_failures("snapshot"):
                    persistence.part.save()
            except StoreError as error:
                self.log.warning("snapshot_not_saved", error=str(error))
            persistence.at = now


NICENESS = 10
"""Answers of the serving process are awaited, the end of a cycle is not: the cycle gives way where both want a core."""


class Schedule:
    """Starts `job` at once and then `delay` after every multiple of `interval`.

    A start that falls into a running job is skipped and counted; several that were missed become one. A job that runs
    for longer than `patience` is reported to `give_up`, with how long it has run.
    """

    def __init__(
        self,
        job: Callable[[], None],
        *,
        interval: timedelta,
        delay: timedelta,
        patience: timedelta | None = None,
        give_up: Callable[[timedelta], None] | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._late = 0
        self._patience, self._give_up, self._seconds = patience, give_up, seconds
        self._began: float | None = None
        """Start of the running job, in seconds of a clock for durations; None between two jobs."""
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

    def pop_late_starts(self) -> int:
        """Return how many starts were skipped or joined since the last call."""
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

    def follow_job(self) -> bool:
        """Give up on a job that hangs; whether it does."""
        began = self._began
        if began is None or self._patience is None or self._give_up is None:
            return False
        running = timedelta(seconds=self._seconds() - began)
        if running <= self._patience:
            return False
        self._give_up(running)
        return True

    def _watch_clock(self) -> None:
        while not self._stopped.wait(self._interval.total_seconds()):
            self.follow_clock(datetime.now(UTC))
            self.follow_job()

    def _run(self) -> None:
        self._idle.clear()
        self._began = self._seconds()
        give_way()
        try:
            if not self._stopped.is_set():  # it was started, and stopped before it began: nothing waits for it
                self._job()
        finally:
            self._began = None
            self._idle.set()

    def _count_late(self, _event: object) -> None:
        self._late += 1


def give_way() -> None:
    """Lower the priority of this thread alone, where the system can (Linux)."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


def _aligned(interval: timedelta, delay: timedelta) -> CronTrigger:
    """Whole minutes only, as the settings promise."""
    minutes = int(interval.total_seconds() // 60)
    late, second = divmod(int(delay.total_seconds()), 60)
    return CronTrigger(minute=f"{late % minutes}-59/{minutes}", second=second, timezone=UTC)
