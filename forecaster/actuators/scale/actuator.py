"""ScaleActuator: the count of every workload in mode scale as the offer has it, written while this replica leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from forecaster.actuators.floor.actuator import explained
from forecaster.actuators.headroom import ReserveQuota, unbounded
from forecaster.actuators.limits import CycleLimits, Memory, workloads_to_read
from forecaster.actuators.rollback import UNKNOWN_HEALTH, HealthAt, no_health, restarts_since
from forecaster.actuators.scale.plan import CountOffer, LiveScale, due_workloads, scale_plan, updated_memory
from forecaster.publish.offer import NO_COUNT
from forecaster.resources.neighbours import CPU, SCALED_OBJECTS

if TYPE_CHECKING:
    from forecaster.actuators.floor.values import LiveAutoscaler
    from forecaster.actuators.neighbours import NeighboursAt
    from forecaster.actuators.queue import WriteQueue
    from forecaster.actuators.scale.scales import Scales
    from forecaster.actuators.settings import ScaleSettings
    from forecaster.actuators.writes import WriteRefusal
    from forecaster.domain.policies import Policies
    from forecaster.domain.report import Effected
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.publisher import OfferedCycle


@dataclass(slots=True)
class ScaleActuator:
    """Receives the offers of a cycle, and acts on them: `OfferReceiver` and `Actuator`."""

    scales: Scales
    autoscalers: Callable[[], Sequence[LiveAutoscaler]]
    """All HPAs; workloads scaled by one of them stay unchanged."""
    writer: WriteQueue
    policies: Policies
    rules: ScaleSettings
    neighbours: NeighboursAt
    """Reads other autoscalers; workloads that a ScaledObject scales, or a VPA sizes, stay unchanged."""
    health: HealthAt = no_health
    """Reads the health of a workload, by which a change is taken back."""
    headroom: Callable[[], ReserveQuota] = lambda: unbounded
    """Reads the free quota of namespaces anew in each cycle."""
    offered: OfferedCycle | None = None
    memory: Memory = field(default_factory=dict)

    def receive(self, cycle: OfferedCycle) -> None:
        """The offers that are acted on."""
        self.offered = cycle

    def act(self, now: datetime) -> Effected:
        """Write the counts that have to change, of workloads in mode scale and of those that carry our annotation.

        Raises:
            ApiError: the workloads or the HPAs cannot be read.
        """
        offers = count_offers(self.offered, now, self._scaled)
        self.memory = updated_memory(self.memory, offers, now, self.rules)
        live, unread = self._live(offers, now)
        leaving = measured_counts(self.offered, now, (scale.id for scale in live if not self._scaled(scale.id)))
        plan = scale_plan(live, offers, self._scaled, self.memory, now, self.rules, leaving)
        writes = [replace(write, reason=explained(write, self.offered, write.subject.id)) for write in plan.writes]
        scaled = sum(scale.before is not None for scale in live)
        others = offers.keys() - {scale.id for scale in live} - {refusal.subject.workload for refusal in unread}
        limits, reserve = CycleLimits.of(plan.fleet, self.rules), self.headroom()
        return self.writer.effected(
            self.scales, writes, [*plan.refusals, *unread], now, others, limits=limits, reserve=reserve, scaled=scaled
        )

    def _scaled(self, id_: WorkloadId) -> bool:
        return self.policies.stated(id_).mode == "scale"

    def _live(
        self, offers: Mapping[WorkloadId, CountOffer], now: datetime
    ) -> tuple[list[LiveScale], list[WriteRefusal]]:
        """The marked ones, and as many of those to look at as one cycle may change, with what else scales them."""
        marked = {scale.id: scale for scale in self.scales.marked()}
        others = (id_ for id_ in due_workloads(offers, self.memory, now, self.rules) if id_ not in marked)
        subjects = [(id_, id_.name, id_) for id_ in workloads_to_read(others, self.writer.lasting)]
        read, unread = self.writer.read_each(self.scales.of, subjects)
        live = [*marked.values(), *(self.writer.remembered(scale) for scale in read)]
        if not live:
            return [], unread
        scalers: dict[WorkloadId, list[str]] = defaultdict(list)
        for hpa in self.autoscalers():
            scalers[hpa.target].append(f"HPA {hpa.name}")
        neighbours, completed = self.neighbours(now), list[LiveScale]()
        healths = self.health({scale.id: restarts_since(scale.watch, now, self.rules) for scale in live}, now)
        for scale in live:
            if scaled_object := neighbours.scaled_object(scale.id):
                scalers[scale.id].append(str(scaled_object))
            # A scale point would move with the CPU request of a VPA.
            held = "; ".join(
                filter(None, (neighbours.not_known(SCALED_OBJECTS), neighbours.writes_sizes(scale.id, CPU)))
            )
            health = healths.get(scale.id, UNKNOWN_HEALTH)
            completed.append(replace(scale, scalers=tuple(scalers[scale.id]), held=held, health=health))
        return completed, unread


def measured_counts(
    cycle: OfferedCycle | None, now: datetime, ids: Iterable[WorkloadId]
) -> dict[WorkloadId, int | None]:
    """Return the count that each workload's measured demand needs; None where this cycle does not know it."""
    if cycle is None or cycle.at != now:
        return dict.fromkeys(ids)
    decided = cycle.decided
    whole = np.logical_not(decided.incomplete.any(axis=0)) & (decided.count != NO_COUNT) & (decided.reactive >= 1)
    rows = {id_: cycle.rows.get(id_) for id_ in ids}
    return {
        id_: None if row is None or not whole[row] else int(min(decided.reactive[row], decided.maximum[row]))
        for id_, row in rows.items()
    }


def count_offers(
    cycle: OfferedCycle | None, now: datetime, scaled: Callable[[WorkloadId], bool]
) -> dict[WorkloadId, CountOffer]:
    """Return the stabilized, bounded count of each workload in mode scale, from this very cycle.

    Without an HPA nothing else applies these two.
    """
    if cycle is None:
        return {}
    decided, fresh = cycle.decided, cycle.at == now
    may_lower = np.logical_not(decided.incomplete.any(axis=0)).tolist()
    by_measured = np.minimum(decided.reactive, decided.maximum).tolist()
    rows = zip(cycle.ids, decided.recommended.tolist(), may_lower, decided.current.tolist(), by_measured, strict=True)
    return {
        id_: CountOffer(count, lowers, current, reactive if reactive >= 1 else None)
        if fresh and count != NO_COUNT
        else CountOffer(None, lowers, current)
        for id_, count, lowers, current, reactive in rows
        if scaled(id_)
    }
