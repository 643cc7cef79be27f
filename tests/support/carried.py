"""Writes of a plan that the shared queue lets through in one cycle: limits and quotas are its part, not the plan's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from forecaster.actuators.headroom import unbounded
from forecaster.actuators.limits import CycleLimits
from forecaster.actuators.queue import WriteBatch, WriteQueue
from forecaster.actuators.settings import ActingSettings
from tests.support.builders import NOON
from tests.support.fences import Fence, Log

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.actuators.floor.plan import FloorPlan
    from forecaster.actuators.headroom import ReserveQuota
    from forecaster.actuators.scale.plan import ScalePlan
    from forecaster.actuators.settings import LimitSettings
    from forecaster.actuators.writes import WriteRefusal


@dataclass
class Accepting:
    """A cluster that takes every write."""

    written: list[Any] = field(default_factory=list)

    def again(self, subject: Any) -> Any:
        return subject

    def write(self, write: Any) -> None:
        self.written.append(write)

    def record(self, write: Any, at: datetime) -> None:
        pass


class Carried(NamedTuple):
    """Writes and refusals of one cycle."""

    writes: list[Any]
    refusals: list[WriteRefusal]


def carried(
    plan: FloorPlan | ScalePlan, rules: LimitSettings, reserve: ReserveQuota = unbounded, cluster: Any = None
) -> Carried:
    """Carry a plan out once; each write goes to the `cluster`, if there is one."""
    taken = cluster or Accepting()
    queue = WriteQueue("test", Fence(), ActingSettings(), Log(taken), seconds=lambda: 0.0)
    meanwhile = getattr(plan, "renewals", {})
    batch = WriteBatch(NOON, CycleLimits.of(plan.fleet, rules), reserve, meanwhile, list(plan.refusals))
    done = [write for write, _ in queue.carried_out(taken, plan.writes, batch)]
    return Carried(done, batch.refused)
