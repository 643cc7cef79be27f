"""FloorActuator: the floor of every HPA as the offer has it, written while this replica leads; and `release`."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from forecaster.actuators.floor import floor_plan, released
from forecaster.actuators.values import FloorChange, FloorOffer
from forecaster.domain.report import Effected
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.publish.offer import FORECAST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.actuators.floor import FloorPlan, Memory
    from forecaster.actuators.values import FloorRefusal, FloorSettings, LiveAutoscaler, Write
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.rows import OfferedCycle

ATTEMPTS = 3
"""Of `release`, where an HPA is written by its controller meanwhile."""
BUDGET_SECONDS = 20.0
"""Of a cycle for its writes; what is left then waits for the next one."""
SHOWN = 5
"""Refusals of a cycle that are written out in the log; the gauge `forecaster_floors` counts all."""


class Fence(Protocol):
    """Whether this replica may write."""

    fault: str
    paused: bool

    def valid(self) -> bool:
        """At this moment."""

    def leading(self) -> bool:
        """Whether it leads, paused or not."""


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


class AuditLog(Protocol):
    """Where writes are noted."""

    def info(self, event: str, **facts: object) -> object:
        """One line."""

    def warning(self, event: str, **facts: object) -> object:
        """One line that a person should see."""


@dataclass(slots=True)
class FloorActuator:
    """Receives the offers of a cycle, and acts on them: `OfferReceiver` and `Actuator`."""

    autoscalers: LiveAutoscalers
    fence: Fence
    policies: Policies
    rules: FloorSettings
    log: AuditLog
    seconds: Callable[[], float] = time.monotonic
    """For durations only."""
    offered: OfferedCycle | None = None
    rows: Mapping[WorkloadId, int] = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By HPA, what was refused at the last look: said when it changes."""

    def receive(self, cycle: OfferedCycle) -> None:
        """The offers that are acted on."""
        self.offered, self.rows = cycle, {id_: row for row, id_ in enumerate(cycle.ids)}

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
        self._say_refusals(plan.refusals)
        outcomes: Counter[tuple[str, str]] = Counter()
        stopped = self.rules.paused or self.fence.paused
        failures = [] if stopped else self._carry_out(plan.writes, now, outcomes)
        return Effected(self.fence.leading(), outcomes, _states(live, plan), tuple(failures))

    def _floored(self, id_: WorkloadId) -> bool:
        return self.policies.stated(id_).mode == "floor"

    def _carry_out(self, writes: Sequence[Write], now: datetime, outcomes: Counter[tuple[str, str]]) -> list[str]:
        """Write one after the other while this replica may; a line for each that failed."""
        if self.fence.fault:
            return [f"floor: {self.fence.fault}"]
        failures: list[str] = []
        until = self.seconds() + BUDGET_SECONDS
        for done, write in enumerate(writes):
            if self.seconds() > until or not self.fence.valid():
                return failures + _left(writes[done:], leads=self.fence.leading())
            error = self._written(self._explained(write), now)
            outcomes[write.change, _outcome(error, dry_run=self.rules.dry_run)] += 1
            if error is not None:
                failures.append(f"{write.autoscaler}: minReplicas {write.min_replicas} not written: {error}")
                if _overloaded(error):
                    return failures + _left(writes[done + 1 :], leads=True)
        return failures

    def _written(self, write: Write, now: datetime) -> ApiError | None:
        """One change, noted before it is sent; what went wrong."""
        one = write.autoscaler
        self.log.info(
            "floor_write",
            hpa=f"{one.namespace}/{one.name}",
            change=str(write.change),
            min_replicas=write.min_replicas,
            was=one.min_replicas,
            before=write.floor.before if write.floor else None,
            expires=write.floor.expires if write.floor else None,
            reason=write.reason,
            version=one.version,
            dry_run=self.rules.dry_run,
        )
        try:
            self._sent(write)
        except ApiError as error:
            self.log.warning("floor_not_written", hpa=f"{one.namespace}/{one.name}", error=str(error))
            return error
        try:
            self.autoscalers.record(write, now)
        except ApiError as error:
            self.log.warning("floor_event_lost", hpa=f"{one.namespace}/{one.name}", error=str(error))
        return None

    def _sent(self, write: Write) -> None:
        """Sent again where only what the HPA's own controller writes has changed meanwhile, which it does often."""
        try:
            self.autoscalers.write(write)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            fresh = self.autoscalers.again(write.autoscaler)
            if not _same(fresh, write.autoscaler) or not self.fence.valid():
                raise
            self.autoscalers.write(replace(write, autoscaler=fresh))

    def _explained(self, write: Write) -> Write:
        """With the sentence of the decision behind it."""
        row = self.rows.get(write.autoscaler.target)
        if self.offered is None or row is None or write.change not in {FloorChange.RAISE, FloorChange.LOWER}:
            return write
        return replace(write, reason=f"{write.reason}. {self.offered.recommendations[row].replicas.message}")

    def _say_refusals(self, refusals: Sequence[FloorRefusal]) -> None:
        """One line for all that are new, with the first of them in words."""
        new = [one for one in refusals if self.refused.get(one.autoscaler.key) != one.code]
        if new:
            codes = dict(Counter(str(one.code) for one in new))
            self.log.info("floors_refused", codes=codes, first=[one.message for one in new[:SHOWN]])
        self.refused = {one.autoscaler.key: str(one.code) for one in refusals}


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


def release(
    autoscalers: LiveAutoscalers, now: datetime, *, expired: bool, chosen: Callable[[LiveAutoscaler], bool]
) -> Iterator[Released]:
    """Give owners their values back, and tell of each HPA. Without `expired`, also of those that are still asked for.

    Raises:
        ApiError: the HPAs cannot be read, or the API server does not answer.
    """
    for one in autoscalers.listed(marked=True):
        found = _released(autoscalers, one, now, expired=expired, attempts=ATTEMPTS) if chosen(one) else None
        if found is not None:
            yield found


class Released(NamedTuple):
    """One HPA of a release."""

    line: str
    done: bool = True
    """False: its owner's value is not back."""


def _released(
    autoscalers: LiveAutoscalers, one: LiveAutoscaler, now: datetime, *, expired: bool, attempts: int
) -> Released | None:
    """What became of one; None where there is nothing to do, or it is gone."""
    if one.fault:
        return Released(f"{one}: left at minReplicas {one.min_replicas}: {one.fault}", done=False)
    write = released(one, now, expired=expired)
    if write is None:
        return None
    try:
        try:
            autoscalers.write(write)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT or attempts == 1:
                raise
            fresh = autoscalers.again(one)
            return _released(autoscalers, fresh, now, expired=expired, attempts=attempts - 1)
    except UnreachableError:
        raise
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        return Released(f"{one}: left at minReplicas {one.min_replicas}: {error}", done=False)
    with suppress(ApiError):  # the value is back; its Event is told by this line, too
        autoscalers.record(write, now)
    return Released(f"{one}: minReplicas {write.min_replicas}, was {one.min_replicas}: {write.reason}")


def _same(fresh: LiveAutoscaler, decided: LiveAutoscaler) -> bool:
    """Whether nothing that the decision was made of has changed."""
    return replace(fresh, version=decided.version, replicas=decided.replicas) == decided


def _overloaded(error: ApiError) -> bool:
    """Whether to leave the API server alone for this cycle."""
    busy = error.status == HTTPStatus.TOO_MANY_REQUESTS or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return busy or isinstance(error, UnreachableError)


def _left(writes: Sequence[Write], *, leads: bool) -> list[str]:
    """A line for writes that wait for the next cycle; none where another replica leads and carries them out."""
    return [f"floor: {len(writes)} changes wait for the next cycle"] if writes and leads else []


def _outcome(error: ApiError | None, *, dry_run: bool) -> str:
    if error is None:
        return "dry-run" if dry_run else "written"
    return "conflict" if error.status == HTTPStatus.CONFLICT else "failed"


def _states(live: Sequence[LiveAutoscaler], plan: FloorPlan) -> Counter[str]:
    """HPAs by what became of their floor."""
    found = Counter("raised" for one in live if one.floor)
    return found + Counter(str(one.code) for one in plan.refusals)
