"""FloorActuator: the floor of every HPA as the offer has it, written while this replica leads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from forecaster.actuators.floor import floor_plan
from forecaster.actuators.values import FloorOffer
from forecaster.actuators.writes import Change
from forecaster.domain.report import Effected
from forecaster.publish.offer import FORECAST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.actuators.floor import FloorPlan
    from forecaster.actuators.memory import Memory
    from forecaster.actuators.settings import FloorSettings
    from forecaster.actuators.values import LiveAutoscaler, Write
    from forecaster.actuators.writes import Writer
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.rows import OfferedCycle


class LiveAutoscalers(Protocol):
    """The HPAs of a cluster. Raises ApiError."""

    def listed(self, *, marked: bool = False) -> list[LiveAutoscaler]:
        """All of them, or those with a mark of ours."""

    def again(self, one: LiveAutoscaler) -> LiveAutoscaler:
        """The same one as it is now."""

    def write(self, write: Write) -> None:
        """Carry out one change of the version that it was decided on."""

    def record(self, write: Write, at: datetime) -> None:
        """The Event of a change."""


@dataclass(slots=True)
class FloorActuator:
    """Receives the offers of a cycle, and acts on them: `OfferReceiver` and `Actuator`."""

    autoscalers: LiveAutoscalers
    writer: Writer
    policies: Policies
    rules: FloorSettings
    offered: OfferedCycle | None = None
    memory: Memory = field(default_factory=dict)

    def receive(self, cycle: OfferedCycle) -> None:
        """The offers that are acted on."""
        self.offered = cycle

    def act(self, now: datetime) -> Effected:
        """Look at every HPA and write what has to change; a replica that may not write only looks.

        Raises:
            ApiError: the HPAs cannot be read.
        """
        live = self.autoscalers.listed()
        self.policies.annotate({one.target: one.mode for one in live if one.mode})
        offers = floor_offers(self.offered, now)
        plan = floor_plan(live, offers, self._floored, self.memory, now, self.rules)
        self.memory = plan.memory
        self.writer.say_refusals(plan.refusals)
        done = self.writer.carry_out(self.autoscalers, [self._explained(one) for one in plan.writes], now)
        return Effected(self.writer.fence.leading(), done.outcomes, _states(live, plan), tuple(done.failures))

    def _floored(self, id_: WorkloadId) -> bool:
        return self.policies.stated(id_).mode == "floor"

    def _explained(self, write: Write) -> Write:
        """With the sentence of the decision behind it."""
        if write.change not in {Change.RAISE, Change.LOWER} or self.offered is None:
            return write
        return replace(write, reason=write.reason + decision_of(self.offered, write.autoscaler.target))


def decision_of(cycle: OfferedCycle, id_: WorkloadId) -> str:
    """The sentence of the decision about a workload's count, to be put behind another; empty where there is none."""
    row = cycle.rows.get(id_)
    return "" if row is None else f". {cycle.recommendations[row].replicas.message}"


def floor_offers(cycle: OfferedCycle | None, now: datetime) -> dict[WorkloadId, FloorOffer]:
    """What the offers of this cycle say of each workload; without offers of this very cycle nothing is known."""
    if cycle is None or cycle.at != now:
        return {}
    decided, floor = cycle.decided, cycle.offers.floor
    ahead = (floor.source == FORECAST) | (decided.count > decided.joined)
    counts = np.where(floor.known & ahead, np.nan_to_num(floor.value), 0).astype(np.int64).tolist()
    may_lower = np.logical_not(decided.incomplete.any(axis=0)).tolist()
    return {
        id_: FloorOffer(count if known else None, lowers)
        for id_, count, known, lowers in zip(cycle.ids, counts, floor.known.tolist(), may_lower, strict=True)
    }


def _states(live: Sequence[LiveAutoscaler], plan: FloorPlan) -> Counter[str]:
    """HPAs by what became of their floor."""
    found = Counter("raised" for one in live if one.floor)
    return found + Counter(str(one.code) for one in plan.refusals)
