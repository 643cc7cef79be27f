"""`floor_plan`: which `minReplicas` to write now, and why others are not. Pure: objects and offers in, writes out.

A floor is raised at once and lowered late: to the highest that was asked within `lower_after`, by a replica that has
looked for as long. While nothing is known it stays, at most for `held_for`; then its expiry ends it. The value that the
owner stated lies in an annotation beside it, written in the same request, and is what every way back restores.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from forecaster.actuators import rollback
from forecaster.actuators.floor.values import FloorOffer, LiveAutoscaler, Write, WrittenFloor
from forecaster.actuators.limits import Memory, Seen, looked
from forecaster.actuators.rollback import RolledBack
from forecaster.actuators.writes import Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forecaster.actuators.rollback import Watch
    from forecaster.actuators.settings import FloorSettings
    from forecaster.domain.workload import WorkloadId


class FloorPlan(NamedTuple):
    """What to do now."""

    writes: list[Write]
    refusals: list[WriteRefusal]
    memory: Memory
    fleet: list[int]
    """Pods of each HPA in mode floor, or with a value of ours."""
    renewals: dict[tuple[str, ...], Write]
    """Renewals of floors whose change may have to wait: where many move in every cycle, some wait for long."""


def floor_plan(
    autoscalers: Sequence[LiveAutoscaler],
    offers: Mapping[WorkloadId, FloorOffer],
    floored: Callable[[WorkloadId], bool],
    memory: Memory,
    now: datetime,
    rules: FloorSettings,
) -> FloorPlan:
    """The intended writes of one cycle, the refusals, and what to remember.

    `floored` says whether a workload's policy has `mode: floor`; a workload without an offer is held.
    """
    targets = Counter(one.target for one in autoscalers)
    concerned = [one for one in autoscalers if not one.deleted and (_marked(one) or floored(one.target))]
    remembered: dict[tuple[str, ...], Seen] = {}
    writes, refusals, renewals = [], [], dict[tuple[str, ...], Write]()
    for one in concerned:
        offer = offers.get(one.target) or FloorOffer(None)
        seen = remembered[one.key] = looked(memory.get(one.key), one.uid, offer.floor, now, rules.lower_after)
        ours = floored(one.target)
        match _decided(one, offer, seen, _unfit(one, targets[one.target], floored=ours), now, rules):
            case Write() as write:
                writes.append(write)
                if write.move and one.floor and _renewal_due(one.floor, now, rules):
                    renewals[one.key] = _floored(one, Change.RENEW, one.min_replicas, "its change waits", now, rules)
            case WriteRefusal() as refusal if ours or one.fault or one.misread:
                refusals.append(refusal)
    return FloorPlan(writes, refusals, remembered, [one.replicas for one in concerned], renewals)


def _marked(one: LiveAutoscaler) -> bool:
    return one.marked or one.floor is not None or bool(one.fault or one.misread)


def _unfit(one: LiveAutoscaler, autoscalers: int, *, floored: bool) -> WriteRefusal | None:
    """Why this HPA is to have no floor."""
    if one.misread:
        return WriteRefusal(one, RefusalReason.UNREADABLE, f"{one}: {one.misread}")
    if one.beside:
        return WriteRefusal(one, RefusalReason.OWNED, f"{one}: {one.beside} scales its target; state its minimum there")
    if one.controller:
        return WriteRefusal(one, RefusalReason.OWNED, f"{one} is made from {one.controller}; state its minimum there")
    if autoscalers > 1:
        return WriteRefusal(
            one, RefusalReason.AMBIGUOUS, f"{one}: {autoscalers} HPAs scale {one.target}; remove all but one"
        )
    return None if floored else WriteRefusal(one, RefusalReason.OWNED, f"the policy of {one.target} has no mode floor")


def _decided(
    one: LiveAutoscaler, offer: FloorOffer, seen: Seen, unfit: WriteRefusal | None, now: datetime, rules: FloorSettings
) -> Write | WriteRefusal | None:
    """The write, or why there is none; None where there is nothing to do."""
    if settled := _settled(one, unfit, now, rules):
        return settled
    if offer.floor is None:
        return _held(one, one.floor, seen, now, rules) if one.floor else None
    return _moved(one, offer, seen, now, rules)


def _settled(
    one: LiveAutoscaler, unfit: WriteRefusal | None, now: datetime, rules: FloorSettings
) -> Write | WriteRefusal | None:
    """What is done whatever is offered."""
    if one.fault:
        return WriteRefusal(one, RefusalReason.UNREADABLE, f"{one}: {one.fault}")
    if one.floor and one.other_writers:
        return _yielded(one, now, rules)
    if unfit is not None:
        return undone(one, unfit.message) or unfit
    if one.floor and (why := rollback.why_worse(one.watch, one.health, now, rules)):
        return _rolled_back(one, one.floor, why, now, rules)
    return _waits(one, now)


def _waits(one: LiveAutoscaler, now: datetime) -> Write | WriteRefusal | None:
    """Why an HPA in mode floor has none yet."""
    if found := rollback.held(one.watch, now):
        return WriteRefusal(one, RefusalReason.ROLLED_BACK, f"{one}: {found}")
    if rollback.lasts(one.backed_off_until, now):
        until = f"{one.backed_off_until:%H:%M} UTC"
        return WriteRefusal(
            one, RefusalReason.SECOND_WRITER, f"{one}: minReplicas had another writer; left alone until {until}"
        )
    if one.marked and not one.floor and not _remembered(one, now):
        return Write(one, Change.FORGET, one.min_replicas, "a back-off or a restoring is over")
    return None


def _yielded(one: LiveAutoscaler, now: datetime, rules: FloorSettings) -> Write:
    """The other writer's value is the owner's from now on."""
    until = now + rules.back_off
    reason = f"{one.other_writers} wrote minReplicas {one.min_replicas}; left alone for {duration_text(rules.back_off)}"
    return Write(one, Change.YIELD, one.min_replicas, reason, backed_off_until=until)


def _rolled_back(one: LiveAutoscaler, floor: WrittenFloor, why: str, now: datetime, rules: FloorSettings) -> Write:
    """The owner's value again; above it the HPA keeps what its own metrics ask for."""
    found = rollback.rolled_back(one.watch, why, now, rules)
    count = min(floor.before, one.max_replicas)
    return Write(one, Change.ROLL_BACK, count, rollback.rolled_back_reason(found, now), watch=found)


def _remembered(one: LiveAutoscaler, now: datetime) -> bool:
    """Whether a roll back still makes the next hold longer."""
    return isinstance(one.watch, RolledBack) and one.watch.counts(now)


def undone(one: LiveAutoscaler, why: str) -> Write | None:
    """The owner's value again, whatever is offered; None where nothing of ours is on this HPA."""
    if one.floor:
        return Write(one, Change.RESTORE, min(one.floor.before, one.max_replicas), why)
    return Write(one, Change.FORGET, one.min_replicas, why) if one.marked else None


def released(one: LiveAutoscaler, now: datetime, *, expired: bool) -> Write | None:
    """What `forecaster release` does to one HPA; with `expired` only what has run out. None where that is nothing."""
    if expired and not _run_out(one, now):
        return None
    if one.floor and one.other_writers:
        return Write(one, Change.FORGET, one.min_replicas, f"{one.other_writers} wrote minReplicas since")
    return undone(one, "its expiry has passed" if expired else "released by command")


def _run_out(one: LiveAutoscaler, now: datetime) -> bool:
    if one.floor:
        return one.floor.expires <= now
    return not (_remembered(one, now) or rollback.lasts(one.backed_off_until, now))


def _held(one: LiveAutoscaler, floor: WrittenFloor, seen: Seen, now: datetime, rules: FloorSettings) -> Write | None:
    """While nothing is known the floor stays, and ends by its expiry once that has lasted for `held_for`."""
    if floor.expires <= now:
        return undone(one, "its expiry has passed")
    if now - seen.known_at < rules.held_for and _renewal_due(floor, now, rules):
        return _floored(one, Change.RENEW, one.min_replicas, "nothing is known: hold", now, rules)
    return None


def _moved(one: LiveAutoscaler, offer: FloorOffer, seen: Seen, now: datetime, rules: FloorSettings) -> Write | None:
    owner = one.floor.before if one.floor else one.min_replicas

    def bounded(count: int) -> int:
        return min(max(owner, count), one.max_replicas)

    asked = bounded(offer.floor or 0)
    if asked > one.min_replicas:
        beyond = f", of which maxReplicas allows {asked}" if (offer.floor or 0) > asked else ""
        return _floored(one, Change.RAISE, asked, f"the forecast asks for {offer.floor}{beyond}", now, rules)
    kept = bounded(seen.lowest())
    if one.floor and offer.may_lower and now - seen.since >= rules.lower_after:
        window = duration_text(rules.lower_after)
        if kept <= owner:
            return Write(one, Change.RESTORE, kept, f"the forecast has asked for no more than {owner} for {window}")
        if kept < one.min_replicas:
            return _floored(one, Change.LOWER, kept, f"no more was asked for in {window}", now, rules)
    if one.floor and _renewal_due(one.floor, now, rules):
        return _floored(one, Change.RENEW, one.min_replicas, "still asked for", now, rules)
    return None


def _floored(
    one: LiveAutoscaler, change: Change, count: int, reason: str, now: datetime, rules: FloorSettings
) -> Write:
    """A write after which a floor is on, with a new expiry; the owner's value is kept as it is."""
    owner = one.floor.before if one.floor else one.min_replicas
    watch = _watch(one, change, now, rules)
    return Write(one, change, count, reason, WrittenFloor(owner, now + rules.expires_after), watch=watch)


def _watch(one: LiveAutoscaler, change: Change, now: datetime, rules: FloorSettings) -> Watch:
    """A raise is watched. A lowering ends that: it takes back of ours, and the owner's value is lower still."""
    if change == Change.LOWER:
        return None
    if change == Change.RAISE:
        return rollback.watch_after(one.watch, one.min_replicas, one.health, now, rules, raised=True)
    return one.watch


def _renewal_due(floor: WrittenFloor, now: datetime, rules: FloorSettings) -> bool:
    """Whether a floor is in the second half of its time, or ends later than settings and clock allow."""
    return not rules.expires_after / 2 <= floor.expires - now <= rules.expires_after + timedelta(minutes=1)
