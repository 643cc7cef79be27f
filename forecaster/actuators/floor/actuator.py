"""FloorActuator: the floor of every HPA as the offer has it, written while this replica leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from forecaster.actuators.floor.plan import floor_plan
from forecaster.actuators.floor.values import FloorOffer, LiveAutoscaler
from forecaster.actuators.headroom import ReserveQuota, unbounded
from forecaster.actuators.limits import CycleLimits, Memory
from forecaster.actuators.rollback import HealthAt, no_health, restarts_since
from forecaster.actuators.writes import Change, ClusterWrite
from forecaster.publish.offer import FORECAST

if TYPE_CHECKING:
    from forecaster.actuators.floor.autoscalers import Autoscalers
    from forecaster.actuators.neighbours import NeighboursAt
    from forecaster.actuators.queue import WriteQueue
    from forecaster.actuators.settings import FloorSettings
    from forecaster.domain.policies import Policies
    from forecaster.domain.report import Effected
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.publisher import OfferedCycle


@dataclass(slots=True)
class FloorActuator:
    """Receives the offers of a cycle, and acts on them: `OfferReceiver` and `Actuator`."""

    autoscalers: Autoscalers
    writer: WriteQueue
    policies: Policies
    rules: FloorSettings
    neighbours: NeighboursAt
    health: HealthAt = no_health
    """Reads the health of a workload, by which a change is taken back."""
    headroom: Callable[[], ReserveQuota] = lambda: unbounded
    """Reads the free quota of namespaces anew in each cycle."""
    unjudged: Callable[[WorkloadId], bool] = lambda _: False
    """Whether the gate of a workload has not been judged since the start: its forecast neither acts nor gives back."""
    offered: OfferedCycle | None = None
    memory: Memory = field(default_factory=dict)

    def receive(self, cycle: OfferedCycle) -> None:
        """The offers that are acted on."""
        self.offered = cycle

    def act(self, now: datetime) -> Effected:
        """Read every HPA and write the changes; a replica that may not write only reads.

        Raises:
            ApiError: the HPAs cannot be read.
        """
        live: list[LiveAutoscaler] = [self.writer.remembered(hpa) for hpa in self.autoscalers.listed()]
        self.policies.annotate({hpa.target: hpa.mode for hpa in live if hpa.mode})
        live = self._with_scaled_objects(live, now)
        offers = floor_offers(self.offered, now)
        held = self._held_while_unjudged(live, offers)
        offers |= held
        live = self._with_health(live, offers, now)
        plan = floor_plan(live, offers, self._floored, self.memory, now, self.rules)
        self.memory = plan.memory
        writes = [replace(write, reason=explained(write, self.offered, write.subject.target)) for write in plan.writes]
        raised, unjudged = sum(hpa.floor is not None for hpa in live), len(held)
        limits, reserve = CycleLimits.of(plan.fleet, self.rules), self.headroom()
        return self.writer.effected(
            self.autoscalers,
            writes,
            plan.refusals,
            now,
            limits=limits,
            reserve=reserve,
            meanwhile=plan.renewals,
            raised=raised,
            unjudged=unjudged,
        )

    def _held_while_unjudged(
        self, live: Sequence[LiveAutoscaler], offers: Mapping[WorkloadId, FloorOffer]
    ) -> dict[WorkloadId, FloorOffer]:
        """Return unknown offers for floors with a forecast that asks for nothing while its gate is not judged yet.

        A pod that starts without its state would give every floor of the fleet back at once.
        """
        floors = {hpa.target: offers[hpa.target] for hpa in live if hpa.floor and hpa.target in offers}
        return {
            id_: offer._replace(floor=None) for id_, offer in floors.items() if offer.floor == 0 and self.unjudged(id_)
        }

    def _floored(self, id_: WorkloadId) -> bool:
        return self.policies.stated(id_).mode == "floor"

    def _with_scaled_objects(self, live: list[LiveAutoscaler], now: datetime) -> list[LiveAutoscaler]:
        """Return the HPAs with the ScaledObject of the same workload; if these are unknown, an HPA names its maker."""
        if not any(hpa.marked or self._floored(hpa.target) for hpa in live):
            return live
        neighbours = self.neighbours(now)
        return [replace(hpa, scaler=str(neighbours.scaled_object(hpa.target) or "")) for hpa in live]

    def _with_health(
        self, live: list[LiveAutoscaler], offers: Mapping[WorkloadId, FloorOffer], now: datetime
    ) -> list[LiveAutoscaler]:
        """Return the HPAs with the health of each target that is under observation after a change, or may be raised."""
        since = {
            hpa.target: restarts_since(hpa.watch, now, self.rules)
            for hpa in live
            if hpa.watch or (offers.get(hpa.target, FloorOffer(None)).floor or 0) > hpa.min_replicas
        }
        health = self.health(since, now) if since else {}
        return [replace(hpa, health=health[hpa.target]) if hpa.target in health else hpa for hpa in live]


def explained(write: ClusterWrite, cycle: OfferedCycle | None, id_: WorkloadId) -> str:
    """Say why a count of this workload is written, with the sentence of the decision behind it."""
    row = None if cycle is None or write.change not in {Change.RAISE, Change.LOWER} else cycle.rows.get(id_)
    if cycle is None or row is None:
        return write.reason
    return f"{write.reason}. {cycle.recommendations[row].replicas.message}"


def floor_offers(cycle: OfferedCycle | None, now: datetime) -> dict[WorkloadId, FloorOffer]:
    """Return this cycle's floor for each workload; empty without offers of this very cycle."""
    if cycle is None or cycle.at != now:
        return {}
    decided, floor = cycle.decided, cycle.offers.numbers("floor")
    ahead = (floor.source == FORECAST) | (decided.count > decided.joined)
    counts = np.where(floor.known & ahead, np.nan_to_num(floor.value), 0).astype(np.int64).tolist()
    may_lower = np.logical_not(decided.incomplete.any(axis=0)).tolist()
    return {
        id_: FloorOffer(count if known else None, lowers)
        for id_, count, known, lowers in zip(cycle.ids, counts, floor.known.tolist(), may_lower, strict=True)
    }
