"""`floor_plan`: which `minReplicas` to write now, and why others are not. Pure: objects and offers in, writes out.

A floor is raised at once and lowered late: to the highest that was asked within `lower_after`, by a replica that has
looked for as long. While nothing is known it stays, at most for `held_for`; then its expiry ends it. The value that the
owner stated lies in an annotation beside it, written in the same request, and is what every way back restores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.actuators import rollback
from forecaster.actuators.floor.values import FloorOffer, LiveAutoscaler, Write, WrittenFloor
from forecaster.actuators.limits import Memory, RecentOffers, with_offer
from forecaster.actuators.rollback import Rollback, Watch
from forecaster.actuators.settings import FloorSettings
from forecaster.actuators.writes import Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.domain.workload import WorkloadId


class FloorPlan(NamedTuple):
    """Writes and refusals of one cycle."""

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
    targets = Counter(hpa.target for hpa in autoscalers)
    live = (hpa for hpa in autoscalers if not hpa.deleted)
    concerned = [hpa for hpa in live if hpa.marked or hpa.floor or hpa.fault or hpa.misread or floored(hpa.target)]
    memory_after: dict[tuple[str, ...], RecentOffers] = {}
    writes, refusals, renewals = [], [], dict[tuple[str, ...], Write]()
    for hpa in concerned:
        offer = offers.get(hpa.target) or FloorOffer(None)
        before, identity, in_mode = memory.get(hpa.key), f"{hpa.uid} {hpa.target.path}", floored(hpa.target)
        recent = memory_after[hpa.key] = with_offer(before, identity, offer.floor, now, rules.lower_after)
        unfit = _unfit(hpa, targets[hpa.target], floored=in_mode)
        match _decided(hpa, offer, recent, unfit, now, rules):
            case Write() as write:
                writes.append(write)
                if write.move and hpa.floor and _renewal_due(hpa.floor, now, rules):
                    renewals[hpa.key] = _floored(hpa, Change.RENEW, hpa.min_replicas, "its change waits", now, rules)
            case WriteRefusal() as refusal if in_mode or hpa.fault or hpa.misread:
                refusals.append(refusal)
    return FloorPlan(writes, refusals, memory_after, [hpa.replicas for hpa in concerned], renewals)


def _unfit(hpa: LiveAutoscaler, autoscalers: int, *, floored: bool) -> WriteRefusal | None:
    """Say why this HPA must not have a floor, or not this one."""
    if hpa.misread:
        return WriteRefusal(hpa, RefusalReason.UNREADABLE, f"{hpa}: {hpa.misread}")
    if hpa.scaler:
        return WriteRefusal(hpa, RefusalReason.OWNED, f"{hpa}: {hpa.scaler} scales its target; state its minimum there")
    if hpa.controller:
        return WriteRefusal(hpa, RefusalReason.OWNED, f"{hpa} is made from {hpa.controller}; state its minimum there")
    if hpa.scale_up_disabled:
        return WriteRefusal(hpa, RefusalReason.OWNED, f"{hpa}: its behavior disables scaling up; minReplicas stays")
    if autoscalers > 1:
        return WriteRefusal(
            hpa, RefusalReason.AMBIGUOUS, f"{hpa}: {autoscalers} HPAs scale {hpa.target}; remove all but one"
        )
    why = "" if floored else f"the policy of {hpa.target} has no mode floor"
    if floored and hpa.floor and hpa.floor.target not in {"", hpa.target.path}:
        why = f"its floor was raised for {hpa.floor.target:.80}, and it scales {hpa.target.path} now"
    return WriteRefusal(hpa, RefusalReason.OWNED, f"{hpa}: {why}") if why else None


def _decided(
    hpa: LiveAutoscaler,
    offer: FloorOffer,
    recent: RecentOffers,
    unfit: WriteRefusal | None,
    now: datetime,
    rules: FloorSettings,
) -> Write | WriteRefusal | None:
    """The write, or why there is none; None where there is nothing to do."""
    if settled := _settled(hpa, unfit, now, rules):
        return settled
    if offer.floor is None:
        return _held(hpa, hpa.floor, recent, now, rules) if hpa.floor else None
    return _moved(hpa, offer, recent, now, rules)


def _settled(
    hpa: LiveAutoscaler, unfit: WriteRefusal | None, now: datetime, rules: FloorSettings
) -> Write | WriteRefusal | None:
    """Return the write or refusal that does not depend on the offer."""
    if hpa.fault:
        return WriteRefusal(hpa, RefusalReason.UNREADABLE, f"{hpa}: {hpa.fault}")
    if hpa.floor and hpa.other_writers:
        return _waits(hpa, now) or _yielded(hpa, now, rules)
    if unfit is not None:
        return undone(hpa, unfit.message) or unfit
    if hpa.floor and (why := rollback.why_worse(hpa.watch, hpa.health, now, rules)):
        return _rolled_back(hpa, hpa.floor, why, now, rules)
    return _waits(hpa, now)


def _waits(hpa: LiveAutoscaler, now: datetime) -> Write | WriteRefusal | None:
    """Say why an HPA in mode floor has no floor yet."""
    if hold := rollback.held(hpa.watch, now):
        return WriteRefusal(hpa, RefusalReason.ROLLED_BACK, f"{hpa}: {hold}")
    if rollback.lasts(hpa.backed_off_until, now):
        until = f"{hpa.backed_off_until:%H:%M} UTC"
        return WriteRefusal(
            hpa, RefusalReason.SECOND_WRITER, f"{hpa}: minReplicas had another writer; left alone until {until}"
        )
    if hpa.marked and not hpa.floor and not _lengthens_hold(hpa, now):
        return Write(hpa, Change.FORGET, hpa.min_replicas, "a back-off or a restoring is over")
    return None


def _yielded(hpa: LiveAutoscaler, now: datetime, rules: FloorSettings) -> Write:
    """The other writer's value is the owner's from now on."""
    until = now + rules.back_off
    reason = f"{hpa.other_writers} wrote minReplicas {hpa.min_replicas}; left alone for {duration_text(rules.back_off)}"
    return Write(hpa, Change.YIELD, hpa.min_replicas, reason, backed_off_until=until)


def _rolled_back(hpa: LiveAutoscaler, floor: WrittenFloor, why: str, now: datetime, rules: FloorSettings) -> Write:
    """The owner's value again; above it the HPA keeps what its own metrics ask for."""
    hold = rollback.rolled_back(hpa.watch, why, now, rules)
    count = min(floor.before, hpa.max_replicas)
    return Write(hpa, Change.ROLL_BACK, count, rollback.rolled_back_reason(hold, now), watch=hold)


def _lengthens_hold(hpa: LiveAutoscaler, now: datetime) -> bool:
    """Whether a roll back still makes the next hold longer."""
    return isinstance(hpa.watch, Rollback) and hpa.watch.counts(now)


def undone(hpa: LiveAutoscaler, why: str) -> Write | None:
    """The owner's value again, whatever is offered; None where nothing of ours is on this HPA."""
    if hpa.floor:
        return Write(hpa, Change.RESTORE, min(hpa.floor.before, hpa.max_replicas), why)
    return Write(hpa, Change.FORGET, hpa.min_replicas, why) if hpa.marked else None


def released(hpa: LiveAutoscaler, now: datetime, *, expired: bool) -> Write | None:
    """Return the write of `forecaster release` for one HPA, or None; with `expired` only for an expired floor."""
    if expired and not _run_out(hpa, now):
        return None
    if hpa.floor and hpa.other_writers:
        return Write(hpa, Change.FORGET, hpa.min_replicas, f"{hpa.other_writers} wrote minReplicas since")
    return undone(hpa, "its expiry has passed" if expired else "released by command")


def _run_out(hpa: LiveAutoscaler, now: datetime) -> bool:
    if hpa.floor:
        return hpa.floor.expires <= now
    return not (_lengthens_hold(hpa, now) or rollback.lasts(hpa.backed_off_until, now))


def _held(
    hpa: LiveAutoscaler, floor: WrittenFloor, recent: RecentOffers, now: datetime, rules: FloorSettings
) -> Write | None:
    """While nothing is known the floor stays, and ends by its expiry once that has lasted for `held_for`."""
    if floor.expires <= now:
        return undone(hpa, "its expiry has passed")
    if now - recent.known_at < rules.held_for and _renewal_due(floor, now, rules):
        return _floored(hpa, Change.RENEW, hpa.min_replicas, "nothing is known: hold", now, rules)
    return None


def _moved(
    hpa: LiveAutoscaler, offer: FloorOffer, recent: RecentOffers, now: datetime, rules: FloorSettings
) -> Write | None:
    owner = hpa.floor.before if hpa.floor else hpa.min_replicas

    def bounded(count: int) -> int:
        return min(max(owner, count), hpa.max_replicas)

    desired = bounded(offer.floor or 0)
    if desired > hpa.min_replicas:
        beyond = f", of which maxReplicas allows {desired}" if (offer.floor or 0) > desired else ""
        return _floored(hpa, Change.RAISE, desired, f"the forecast asks for {offer.floor}{beyond}", now, rules)
    lowest = bounded(recent.lowest())
    if hpa.floor and offer.may_lower and now - recent.since >= rules.lower_after:
        window = duration_text(rules.lower_after)
        if lowest <= owner:
            return Write(hpa, Change.RESTORE, lowest, f"the forecast has asked for no more than {owner} for {window}")
        if lowest < hpa.min_replicas:
            return _floored(hpa, Change.LOWER, lowest, f"no more was asked for in {window}", now, rules)
    if hpa.floor and _renewal_due(hpa.floor, now, rules):
        return _floored(hpa, Change.RENEW, hpa.min_replicas, "still asked for", now, rules)
    return None


def _floored(
    hpa: LiveAutoscaler, change: Change, count: int, reason: str, now: datetime, rules: FloorSettings
) -> Write:
    """A write after which a floor is on, with a new expiry; the owner's value is kept as it is."""
    owner = hpa.floor.before if hpa.floor else hpa.min_replicas
    floor = WrittenFloor(owner, now + rules.expires_after, hpa.target.path)
    return Write(hpa, change, count, reason, floor, watch=_watch(hpa, change, now, rules))


def _watch(hpa: LiveAutoscaler, change: Change, now: datetime, rules: FloorSettings) -> Watch:
    """A raise is watched. A lowering ends that: it takes back of ours, and the owner's value is lower still."""
    if change == Change.LOWER:
        return None
    if change == Change.RAISE:
        return rollback.watch_after(hpa.watch, hpa.min_replicas, hpa.health, now, rules, raised=True)
    return hpa.watch


def _renewal_due(floor: WrittenFloor, now: datetime, rules: FloorSettings) -> bool:
    """Whether a floor is in the second half of its time, or ends later than settings and clock allow."""
    return not rules.expires_after / 2 <= floor.expires - now <= rules.expires_after + timedelta(minutes=1)
