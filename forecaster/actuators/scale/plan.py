"""`scale_plan`: the counts of workloads to write, and why others are not. Pure: objects and offers in, writes out.

Only where nothing else scales the workload. A count rises at once and falls late, as a floor does: to the highest offer
within `lower_after`, by a replica that has observed for as long, and never while anything is not known. The owner's
count is stored in an annotation, and every way back restores it. It does not expire: where the service is gone the
count stays, because the owner's may be too few for the present load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from forecaster.actuators import rollback
from forecaster.actuators.limits import Memory, Move, RecentOffers, with_offer
from forecaster.actuators.rollback import Health, RecentChange, Watch
from forecaster.actuators.settings import ScaleSettings
from forecaster.actuators.writes import MANAGER, Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True)
class LiveScale:
    """One workload with a scale subresource on the API server."""

    id: WorkloadId
    uid: str
    version: str
    """`resourceVersion`."""
    replicas: int
    """`spec.replicas`."""
    writers: frozenset[str]
    """Field managers that own `spec.replicas`."""
    owner: str = ""
    """Other controllers of the count or of the whole object, in words; empty where there are none."""
    scalers: tuple[str, ...] = ()
    """HPAs and the ScaledObject that scale it, in words."""
    held: str = ""
    """Reason why its count is held for now; empty where it is not."""
    deleted: bool = False
    before: int | None = None
    """The owner's count, where ours was written over it."""
    backed_off_until: datetime | None = None
    marked: bool = False
    """Whether the workload has our label."""
    fault: str = ""
    """Reason why the owner's count is not known."""
    watch: Watch = None
    """Last change of the object, or its rollback."""
    health: Health = rollback.UNKNOWN_HEALTH
    """Health as read for this cycle."""
    pods: int = 0
    """That there are, by its status."""

    @property
    def key(self) -> tuple[str, ...]:
        """Return the identity of the object."""
        return tuple(self.id)

    @property
    def workload(self) -> WorkloadId:
        """Itself."""
        return self.id

    @property
    def field_value(self) -> str:
        """The field that is written, and its value."""
        return f"replicas {self.replicas}"

    @property
    def other_writers(self) -> str:
        """Field managers beside ours that own `spec.replicas`, in words.

        A 0 that came through the scale subresource has no owner, and is never ours.
        """
        others = ", ".join(sorted(self.writers - {MANAGER}))
        return others or ("another client" if self.replicas == 0 else "")

    def __str__(self) -> str:
        return f"{self.id.kind} {self.id}"


class CountOffer(NamedTuple):
    """The offer for one workload."""

    replicas: int | None
    """None: not known, hold."""
    may_lower: bool = True
    """False while the measured demand is a lower bound."""
    current: int = 0
    """The count when it was decided."""
    reactive: int | None = None
    """Count that measured demand alone needs, within the policy's maximum; None where not known."""


@dataclass(frozen=True, slots=True)
class ScaleWrite:
    """One change of one workload."""

    subject: LiveScale
    change: Change
    replicas: int
    """Count after the change."""
    reason: str
    before: int | None = None
    """The owner's count, to be kept; None where nothing of ours stays."""
    backed_off_until: datetime | None = None
    watch: Watch = None
    """Observation to store with the count: what is watched, or held, afterwards."""
    measured: int = 0
    """Count that measured demand alone needs; 0 where it is not known."""

    @property
    def move(self) -> Move | None:
        """Change of the count; None for marks alone."""
        if self.change in {Change.YIELD, Change.FORGET}:
            return None
        return Move(self.replicas, self.subject.replicas, self.subject.pods, self.measured)

    @property
    def marks(self) -> dict[str, Any]:
        """The marks that it leaves on the workload."""
        return {"before": self.before, "backed_off_until": self.backed_off_until, "watch": self.watch}

    def __str__(self) -> str:
        return f"{self.subject}: replicas {self.replicas}"

    def facts(self) -> dict[str, object]:
        """Return the fields of the audit line."""
        return {"count": self.replicas, "was": self.subject.replicas, "before": self.before}

    def on(self, fresh: LiveScale) -> ScaleWrite | None:
        """Return this change for the object as it is now; None if the facts of the decision have changed.

        The annotation may have the owner's count by now: it is written first, and a controller may write in between.
        """
        decided, alike = self.subject, replace(fresh, version=self.subject.version)
        if decided.before is None and fresh.before == self.before is not None and fresh.writers <= decided.writers:
            alike = replace(alike, before=None, marked=decided.marked, writers=decided.writers)
        if fresh.watch == self.watch:
            alike = replace(alike, watch=decided.watch)
        derived: dict[str, Any] = {name: getattr(decided, name) for name in ("scalers", "held", "health", "pods")}
        subject = replace(fresh, **derived)
        return replace(self, subject=subject) if replace(alike, **derived) == decided else None

    def bounded(self, count: int, reason: str) -> ScaleWrite:
        """Return this change with another count. Part of an undo is no undo: marks of ours stay."""
        if self.change not in {Change.RESTORE, Change.ROLL_BACK}:
            return replace(self, replicas=count, reason=reason)
        scale = self.subject
        change = Change.RAISE if count > scale.replicas else Change.LOWER
        return replace(self, change=change, replicas=count, reason=reason, before=scale.before, watch=scale.watch)


class ScalePlan(NamedTuple):
    """Writes and refusals of one cycle."""

    writes: list[ScaleWrite]
    refusals: list[WriteRefusal]
    fleet: list[int]
    """Pods of each workload in mode scale, or with a count of ours."""


def updated_memory(
    memory: Memory, offers: Mapping[WorkloadId, CountOffer], now: datetime, rules: ScaleSettings
) -> dict[tuple[str, ...], RecentOffers]:
    """Return the memory after one more observation of the workloads in mode scale, the keys of `offers`."""
    return {
        tuple(id_): with_offer(memory.get(tuple(id_)), "", offer.replicas, now, rules.lower_after)
        for id_, offer in offers.items()
    }


def due_workloads(
    offers: Mapping[WorkloadId, CountOffer], memory: Memory, now: datetime, rules: ScaleSettings
) -> Iterator[WorkloadId]:
    """Yield the workloads with a count that may have to change, those that need the most first."""
    due = [(id_, _desired(offer, offer.current, memory[tuple(id_)], now, rules)) for id_, offer in offers.items()]
    moving = [(id_, count, offers[id_].current) for id_, count in due if count is not None]
    return (id_ for id_, _, _ in sorted(moving, key=lambda move: (-move[1] / max(1, move[2]), move[0])))


def scale_plan(
    live: Sequence[LiveScale],
    offers: Mapping[WorkloadId, CountOffer],
    scaled: Callable[[WorkloadId], bool],
    memory: Memory,
    now: datetime,
    rules: ScaleSettings,
    leaving: Mapping[WorkloadId, int | None] = MappingProxyType({}),
) -> ScalePlan:
    """The intended writes of one cycle, and the refusals.

    `live` are the workloads that have marks of ours and those to look at; `scaled` says whether a policy has `mode:
    scale`. A workload without an offer is held. `leaving` has what the measured demand asks for of the workloads that
    leave mode scale; None where it is not known.
    """
    left = [scale.replicas for scale in live if not scaled(scale.id)]
    plan = ScalePlan([], [], [*(offer.current for offer in offers.values()), *left])
    for scale in live:
        if scale.deleted:
            continue
        offer = (offers.get(scale.id) or CountOffer(None)) if scaled(scale.id) else None
        decided = _decided(scale, offer, memory.get(scale.key), now, rules, leaving.get(scale.id))
        if isinstance(decided, ScaleWrite):
            plan.writes.append(decided)
        elif decided:
            plan.refusals.append(decided)
    return plan


def undone(scale: LiveScale, why: str) -> ScaleWrite | None:
    """The owner's count again; None where nothing of ours is on this workload. A count that others wrote stays."""
    if scale.before is not None and not scale.other_writers and not scale.scalers:
        return ScaleWrite(scale, Change.RESTORE, scale.before, why)
    return ScaleWrite(scale, Change.FORGET, scale.replicas, why) if scale.marked or scale.before is not None else None


def released(scale: LiveScale, *, at_once: bool) -> ScaleWrite | str | None:
    """The undo that a person commands, knowing what the load needs: a lower count only `at_once`."""
    undo = undone(scale, "released by command")
    if undo is None or at_once or undo.replicas >= scale.replicas:
        return undo
    slowly = "mode publish goes there as the measured demand allows"
    return f"its owner's {undo.replicas} would come back at once, whatever its load needs: {slowly}, --now does it"


def _decided(
    scale: LiveScale,
    offer: CountOffer | None,
    recent: RecentOffers | None,
    now: datetime,
    rules: ScaleSettings,
    measured: int | None = None,
) -> ScaleWrite | WriteRefusal | None:
    """Return the write, the refusal, or None for no change. Without an offer the workload is in another mode."""
    settled = _settled(scale, now, rules, scaled=offer is not None, measured=measured)
    if isinstance(settled, WriteRefusal) and settled.code is RefusalReason.SECOND_WRITER and offer:
        return _while_held(scale, offer, settled.message, RefusalReason.SECOND_WRITER)
    if settled:
        return settled
    return _moved(scale, offer, recent, now, rules) if offer and recent else None


def _settled(
    scale: LiveScale, now: datetime, rules: ScaleSettings, *, scaled: bool, measured: int | None
) -> ScaleWrite | WriteRefusal | None:
    """Return the write or refusal that does not depend on the offer."""
    if scale.fault:
        return WriteRefusal(scale, RefusalReason.UNREADABLE, f"{scale}: {scale.fault}")
    if scale.scalers or scale.owner:
        why = f"{', '.join(scale.scalers)} scales it" if scale.scalers else scale.owner
        refusal = WriteRefusal(
            scale, RefusalReason.OWNED, f"{scale}: {why}; mode scale is for what nothing else scales"
        )
        return undone(scale, why) or (refusal if scaled else None)
    if scale.before is not None and scale.other_writers:
        return _yielded(scale, now, rules)
    if not scaled:
        return _left(scale, f"the policy of {scale} has no mode scale", measured, rules)
    return _waits(scale, now)


def _left(scale: LiveScale, why: str, measured: int | None, rules: ScaleSettings) -> ScaleWrite | WriteRefusal | None:
    """Return the owner's count once the measured demand needs no more: until then the count goes down step by step."""
    if scale.before is None or scale.before >= scale.replicas or scale.other_writers:
        return undone(scale, why)
    if measured is None:
        held = f"{scale}: {why}; {scale.replicas} stay while the demand is not known, then {scale.before} comes back"
        return WriteRefusal(scale, RefusalReason.HELD, held)
    count = max(scale.before, min(scale.replicas, max(measured, _one_step_down(scale.replicas, rules))))
    if count == scale.before:
        return undone(scale, why)
    if count == scale.replicas:
        held = f"{scale}: {why}; the measured demand needs {measured}, then {scale.before} comes back"
        return WriteRefusal(scale, RefusalReason.HELD, held)
    reason = f"{why}; on the way back to {scale.before}, the measured demand needs {measured}"
    return ScaleWrite(scale, Change.LOWER, count, reason, scale.before)


def _one_step_down(count: int, rules: ScaleSettings) -> int:
    return max(1, count - max(1, int(rules.most_shrink * count)))


def _waits(scale: LiveScale, now: datetime) -> ScaleWrite | WriteRefusal | None:
    """Say why a workload in mode scale is not changed yet."""
    if rollback.lasts(scale.backed_off_until, now):
        why = f"its count had another writer; {_alone(scale)} until {scale.backed_off_until:%H:%M} UTC"
        return WriteRefusal(scale, RefusalReason.SECOND_WRITER, f"{scale}: {why}")
    if scale.marked and scale.before is None:
        return ScaleWrite(scale, Change.FORGET, scale.replicas, "a back-off or a restoring is over")
    if scale.held:
        return WriteRefusal(scale, RefusalReason.OWNED, f"{scale}: {scale.held}")
    if scale.replicas == 0:
        return WriteRefusal(scale, RefusalReason.STOPPED, f"{scale}: scaled to 0, which its owner undoes")
    return None


def _yielded(scale: LiveScale, now: datetime, rules: ScaleSettings) -> ScaleWrite:
    """The other writer's count is the owner's from now on."""
    meanwhile = f"{_alone(scale)} for {duration_text(rules.back_off)}"
    reason = f"{scale.other_writers} wrote replicas {scale.replicas}; {meanwhile}"
    return ScaleWrite(scale, Change.YIELD, scale.replicas, reason, backed_off_until=now + rules.back_off)


def _alone(scale: LiveScale) -> str:
    return "raised by measured demand alone" if scale.replicas else "left alone"


def _moved(
    scale: LiveScale, offer: CountOffer, recent: RecentOffers, now: datetime, rules: ScaleSettings
) -> ScaleWrite | WriteRefusal | None:
    if why := rollback.why_worse(scale.watch, scale.health, now, rules):
        return _taken_back(scale, offer, why, now, rules)
    if hold := rollback.held(scale.watch, now):
        return _while_held(scale, offer, str(hold))
    count = _desired(offer, scale.replicas, recent, now, rules)
    if count is None:
        return None
    owner, raised = scale.replicas if scale.before is None else scale.before, count > scale.replicas
    watch = rollback.watch_after(scale.watch, scale.replicas, scale.health, now, rules, raised=raised)
    if raised:
        reason = f"{count} are asked for"
        return ScaleWrite(scale, Change.RAISE, count, reason, owner, watch=watch, measured=offer.reactive or 0)
    reason = f"no more than {recent.lowest()} were asked for in {duration_text(rules.lower_after)}"
    return ScaleWrite(scale, Change.LOWER, count, reason, owner, watch=watch)


def _taken_back(
    scale: LiveScale, offer: CountOffer, why: str, now: datetime, rules: ScaleSettings
) -> ScaleWrite | WriteRefusal:
    """Return the count before the change, or the larger measured one; without measured demand the count stays."""
    assert isinstance(scale.watch, RecentChange)  # noqa: S101  only what is watched is worse
    known = offer.reactive is not None and (offer.may_lower or not scale.watch.raised)
    count = max(scale.watch.count, offer.reactive or 1)
    if (scale.watch.raised and not known) or (count >= scale.replicas) == scale.watch.raised:
        return _while_held(scale, offer, f"worse off since its last change, which measured demand asks for: {why}")
    hold = rollback.rolled_back(scale.watch, why, now, rules)
    return ScaleWrite(scale, Change.ROLL_BACK, count, rollback.rolled_back_reason(hold, now), scale.before, watch=hold)


def _while_held(
    scale: LiveScale, offer: CountOffer, why: str, code: RefusalReason = RefusalReason.ROLLED_BACK
) -> ScaleWrite | WriteRefusal:
    """Return the raise that measured demand needs while the count is held, or a refusal: nothing is lowered."""
    if offer.reactive is None or offer.reactive <= scale.replicas or scale.replicas == 0:
        return WriteRefusal(scale, code, why if why.startswith(str(scale)) else f"{scale}: {why}")
    owner = scale.replicas if scale.before is None else scale.before
    reason = f"{offer.reactive} are asked for by what is measured; {why}"
    return ScaleWrite(
        scale, Change.RAISE, offer.reactive, reason, owner, scale.backed_off_until, scale.watch, offer.reactive
    )


def _desired(offer: CountOffer, current: int, recent: RecentOffers, now: datetime, rules: ScaleSettings) -> int | None:
    """The count to write over `current`; None where it stays, as always while it is not known."""
    if offer.replicas is None or offer.replicas < 1:
        return None
    if offer.replicas > current:
        return offer.replicas
    if not offer.may_lower or now - recent.since < rules.lower_after or recent.lowest() >= current:
        return None
    return max(recent.lowest(), _one_step_down(current, rules))
