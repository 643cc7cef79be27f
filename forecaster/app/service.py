"""The service: runs the cycle at aligned times and keeps its report, its metrics and, now and then, the history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from forecaster.app import telemetry
from forecaster.app.clock import current
from forecaster.app.schedule import Schedule
from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.domain.window import last_multiple
from forecaster.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from forecaster.app.reload import SettingsReload
    from forecaster.app.telemetry import Metrics
    from forecaster.config.settings import CycleSettings
    from forecaster.cycle.run import Cycle, Outcome
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.report import CycleReport


class Persistable(Protocol):
    """What outlives the process."""

    def save(self) -> None:
        """Write it as it is now. Raises `StoreError`."""


@dataclass(slots=True)
class Persistence:
    """What is written, how often, and when it was written last."""

    part: Persistable
    every: timedelta
    at: datetime | None = None

    def due(self, now: datetime) -> bool:
        """Whether it is time to write it; after a jump of the clock, either way, it is."""
        return self.at is None or not timedelta() <= now - self.at < self.every


@dataclass(slots=True)
class Service:
    """What `forecaster run` does between start and stop."""

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
    """What takes over settings that change meanwhile."""
    judged: ClusterPolicies | None = None
    """What objects of the cluster stated then."""

    def __post_init__(self) -> None:
        self.schedule = Schedule(self.tick, interval=self.settings.interval, delay=self.settings.delay)

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

    def stop(self) -> bool:
        """Let the running cycle finish and save the history; whether it finished within the grace."""
        finished = self.schedule.stop(self.settings.grace)
        if finished:
            self._save(self.persisted, self.clock())
        return finished

    def _run(self, now: datetime) -> None:
        waiting = self._reloaded()
        outcome = self.cycle.run(now)
        late = self.schedule.take_late_starts()
        self.report = replace(outcome.report, late_starts=late, failures=outcome.report.failures + waiting)
        self.metrics.record(self.report)
        telemetry.log_report(self.log, self.report)
        self._judge_overrides(outcome)
        self._save([one for one in self.persisted if one.due(now)], now)

    def _reloaded(self) -> tuple[str, ...]:
        """Take over settings that have changed; a line for what is not as the files say."""
        if self.reload is None:
            return ()
        stated = (self.cycle.policies.defaults, self.cycle.policies.overrides)
        self.reload.look()
        self.metrics.settings_loaded(taken_over=not self.reload.refused, waiting=len(self.reload.waiting))
        if isinstance(self.cycle, ShardedCycle):
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
        new = [one for one in idle if one not in before]
        if new:
            self.log.warning("overrides_match_nothing", at=outcome.report.at, overrides=new[: telemetry.FAILURES_SHOWN])

    def _save(self, due: Iterable[Persistence], now: datetime) -> None:
        for one in due:
            try:
                with self.metrics.counting_failures("snapshot"):
                    one.part.save()
            except StoreError as error:
                self.log.warning("snapshot_not_saved", error=str(error))
            one.at = now
