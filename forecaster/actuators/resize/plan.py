"""`resize_plan`: which running pods get other requests and limits now, and why others do not. Pure.

One pod of a workload after the other: the next one once the last has its size and has kept well for a while. What the
owner's template gave it lies in an annotation, and comes back where the pod is worse off, its node can never grant the
size, the mode changes, or by `forecaster release`. New pods have the template's sizes again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.actuators.resize.eviction import EvictionTerms, is_moving, no_restart, one_each, waits
from forecaster.actuators.resize.sized_pod import ResizablePod, Resized, ResizeWrite, Sizes, changed, merged
from forecaster.actuators.rollback import lasts
from forecaster.actuators.room import Surroundings, admitted
from forecaster.actuators.writes import Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.vertical.admission.context import PART_SIZED, as_stated, with_values
from forecaster.vertical.cluster_rules.pod import Requirements
from forecaster.vertical.cluster_rules.resize import ResizeStatus, resize
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.actuators.settings import ResizeSettings
    from forecaster.domain.workload import WorkloadId

NO_EVICTIONS = EvictionTerms()


@dataclass(slots=True)
class ResizePlan:
    """What to do now."""

    writes: list[ResizeWrite] = field(default_factory=list)
    refusals: list[WriteRefusal] = field(default_factory=list)


def resize_plan(
    watched: Sequence[ResizablePod],
    candidates: Sequence[ResizablePod],
    wanted: Mapping[WorkloadId, Sizes],
    allowed: Callable[[WorkloadId], bool],
    around: Callable[[str], Surroundings],
    now: datetime,
    rules: ResizeSettings,
    evictions: EvictionTerms = NO_EVICTIONS,
) -> ResizePlan:
    """Return the resizes of one cycle, and the refusals.

    `watched` are pods with our label, `candidates` at most one of each workload with another size
    than `wanted`; `allowed` says whether a policy permits our sizes.
    """
    plan, busy = ResizePlan(), occupied(watched, now, rules)
    moving = Counter(one.workload for one in watched if is_moving(one))
    for one in watched:
        if one.deleted:
            continue
        found = list(_followed(one, moving, now, rules, evictions, allowed=allowed(one.workload)))
        plan.writes += [each for each in found if isinstance(each, ResizeWrite)]
        plan.refusals += [each for each in found if isinstance(each, WriteRefusal)]
    busy |= {one.subject.workload for one in plan.writes if one.change is Change.ROLL_BACK}
    plan.writes, waiting = one_each(plan.writes, evictions.tried)
    plan.refusals += waiting
    for one in candidates:
        if one.workload in busy or one.deleted or one.marked or one.workload not in wanted:
            continue
        decided = _sized(one, wanted[one.workload], around(one.namespace), now, rules)
        if isinstance(decided, ResizeWrite):
            plan.writes.append(decided)
        elif decided:
            plan.refusals.append(decided)
    return plan


def occupied(watched: Sequence[ResizablePod], now: datetime, rules: ResizeSettings) -> set[WorkloadId]:
    """Workloads of which no other pod is resized now: one of theirs is on its way, or was worse off lately."""
    return {one.workload for one in watched if _occupies(one, now, rules)}


def undone(one: ResizablePod, why: str, change: Change = Change.RESTORE) -> ResizeWrite | None:
    """The owner's size again; None where nothing of ours is on this pod. A size that others wrote stays."""
    if one.resized is not None and not one.other_writers:
        return ResizeWrite(one, change, changed(one.sizes, one.resized.before), why)
    return ResizeWrite(one, Change.FORGET, {}, why) if one.marked or one.resized is not None else None


def _followed(
    one: ResizablePod,
    moving: Mapping[WorkloadId, int],
    now: datetime,
    rules: ResizeSettings,
    evictions: EvictionTerms,
    *,
    allowed: bool,
) -> Iterator[ResizeWrite | WriteRefusal]:
    """What is done with a pod that has a mark of ours."""
    if one.fault:
        yield WriteRefusal(one, RefusalReason.UNREADABLE, f"{one}: {one.fault}")
    elif one.resized is not None and one.other_writers:
        yield ResizeWrite(one, Change.YIELD, {}, f"{one.other_writers} resized it")
    elif not allowed:
        yield from filter(None, [undone(one, f"the policy of {one.workload} only observes sizes")])
    elif lasts(one.backed_off_until, now):
        until = f"{one.backed_off_until:%H:%M} UTC"
        yield WriteRefusal(
            one, RefusalReason.ROLLED_BACK, f"{one} was worse off; its workload keeps its size until {until}"
        )
    elif one.resized is None:
        yield ResizeWrite(one, Change.FORGET, {}, "a back-off or a restoring is over")
    elif not (one.resized.new or changed(one.sizes, one.resized.before)):
        yield ResizeWrite(one, Change.FORGET, {}, "its own size was written down, and ours was not written")
    elif one.settled:
        pass
    elif _begins(one, one.resized):
        yield from _starting(one, one.resized, now, rules)
    elif evictions.concern(one) and not _worse(one, one.resized, now, rules):
        yield from _stuck(one, one.resized, moving, now, rules, evictions)
    else:
        yield from _watched(one, one.resized, now, rules)


def _begins(one: ResizablePod, resized: Resized) -> bool:
    """Whether a pod has more CPU until it has started, or had that and has its own size again."""
    more, own = changed(one.sizes, resized.started), changed(one.sizes, resized.before)
    return bool(resized.started and (more or not own))


def _starting(
    one: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings
) -> Iterator[ResizeWrite | WriteRefusal]:
    """What is done with a pod that has, or had, more CPU to start with; no change window holds its own size back."""
    more = changed(one.sizes, resized.started)
    if not more and one.status is ResizeStatus.NONE:
        yield ResizeWrite(one, Change.FORGET, {}, "it has started, and has its own size again")
    elif more and one.ready and resized.age(now) >= resized.boosted_for:
        yield ResizeWrite(one, Change.RESIZE, more, "it has started", resized)
    else:
        found = _watched(one, resized, now, rules)
        yield from (each for each in found if not (isinstance(each, ResizeWrite) and each.settled))


def _stuck(
    one: ResizablePod,
    resized: Resized,
    moving: Mapping[WorkloadId, int],
    now: datetime,
    rules: ResizeSettings,
    evictions: EvictionTerms,
) -> Iterator[ResizeWrite | WriteRefusal]:
    """Decide about a pod with a size that its node does not grant, and which pod may be evicted for it."""
    if why := waits(one, moving, now, rules.evict_after, evictions):
        yield WriteRefusal(one, RefusalReason.DEFERRED, f"{one}: its node does not grant the size; {why}. {one.said}")
    else:
        why = f"its node did not grant the size for {duration_text(resized.age(now))}; its successor is made with it"
        yield ResizeWrite(one, Change.EVICT, {}, f"{why}. {one.said}".rstrip(". "), resized)


def _watched(
    one: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings
) -> Iterator[ResizeWrite | WriteRefusal]:
    """What is done with a pod that was resized lately."""
    if worse := _worse(one, resized, now, rules) or _refused_by_node(one, resized, now, rules):
        undo = undone(one, worse, Change.ROLL_BACK)
        yield from [replace(undo, backed_off_until=now + rules.back_off)] if undo else []
    elif one.status in {ResizeStatus.DEFERRED, ResizeStatus.IN_PROGRESS}:
        code = RefusalReason.DEFERRED if one.status is ResizeStatus.DEFERRED else RefusalReason.IN_PROGRESS
        yield WriteRefusal(one, code, f"{one}: its node has not granted the size yet. {one.said}".rstrip(". "))
    elif resized.age(now) >= rules.watch_for:
        yield ResizeWrite(one, Change.SETTLE, {}, "it has kept well", resized, settled=True)


def _worse(one: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings) -> str:
    """Why a pod is worse off since it has its size; empty where it is not."""
    more = one.restarts - resized.restarts
    expected = len(one.pod.containers) if rules.restarts else int(resized.new)  # one, until what it needs is there
    if more > expected:
        return f"{more} restarts since its size was changed"
    patience = rules.watch_for if resized.new else rules.settle_for  # a new pod has to start first
    if not one.ready and resized.age(now) >= patience:
        return f"not ready {duration_text(patience)} after its size was changed"
    return one.worse if resized.age(now) < rules.watch_for else ""


def _refused_by_node(one: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings) -> str:
    """Why its node will not have the size; empty where it may."""
    if one.status is ResizeStatus.INFEASIBLE:
        return f"its node can never grant the size. {one.said}".rstrip(". ")
    if one.status in {ResizeStatus.ERROR, ResizeStatus.UNKNOWN} and resized.age(now) >= rules.settle_for:
        return f"its node could not apply the size. {one.said}".rstrip(". ")
    return ""


def _occupies(one: ResizablePod, now: datetime, rules: ResizeSettings) -> bool:
    """Whether other pods of the workload wait for this one."""
    fresh = one.resized is not None and not one.settled and one.resized.age(now) < rules.settle_for
    moving = not one.settled and one.status is not ResizeStatus.NONE
    return lasts(one.backed_off_until, now) or fresh or moving or not one.ready


def _sized(
    one: ResizablePod, wanted: Sizes, around: Surroundings, now: datetime, rules: ResizeSettings
) -> ResizeWrite | WriteRefusal | None:
    """The size that the cluster takes, or why there is none."""
    if one.owner or one.fault:
        return WriteRefusal(one, RefusalReason.OWNED, f"{one}: {one.owner or one.fault}")
    if not one.ready or one.status is not ResizeStatus.NONE:
        return None
    able = as_stated(
        one.pod, {name: merged(one.sizes.get(name, Requirements()), size) for name, size in wanted.items()}
    )
    if not able:
        return WriteRefusal(one, RefusalReason.INADMISSIBLE, f"{one}: {PART_SIZED}")
    allowed = _kept_memory(one.sizes, able) if not rules.lower_memory else able
    nearest, refused = admitted(one.pod, allowed, around, running=((one.pod, one.node),))
    sizes = changed(one.sizes, nearest)
    if not sizes:
        return WriteRefusal(one, RefusalReason.INADMISSIBLE, f"{one}: {refused}") if refused else None
    restarted = resize(one.pod, with_values(one.pod, sizes), around.server).restarts
    if restarted and (why := no_restart(one, rules)):
        said = f"{one}: its resizePolicy restarts {', '.join(restarted)}; {why}"
        return WriteRefusal(one, RefusalReason.RESTARTS, said)
    reason = f"sized for {one.workload}" + (f", as near as it is admitted: {refused}" if refused else "")
    return ResizeWrite(one, Change.RESIZE, sizes, reason, Resized(one.sizes, now, one.restarts, errors=one.errors))


def _kept_memory(now: Sizes, wanted: Sizes) -> Sizes:
    """The wanted sizes, memory no lower than it is."""

    def kept(name: str, size: Requirements) -> Requirements:
        has = now.get(name, Requirements())
        requests, limits = ({**to} for to in (size.requests, size.limits))
        for to, of in ((requests, has.requests), (limits, has.limits)):
            if MEMORY_RESOURCE in to and MEMORY_RESOURCE in of:
                to[MEMORY_RESOURCE] = max(to[MEMORY_RESOURCE], of[MEMORY_RESOURCE])
        return Requirements(requests, limits)

    return {name: kept(name, size) for name, size in wanted.items()}
