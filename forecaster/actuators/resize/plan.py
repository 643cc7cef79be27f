"""`resize_plan`: which running pods get other requests and limits now, and why others do not. Pure.

One pod of a workload after the other: the next one once the last has its size and has kept well for a while. What the
owner's template gave it lies in an annotation, and comes back where the pod is worse off, its node can never grant the
size, the mode changes, or by `forecaster release`. New pods have the template's sizes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from forecaster.actuators.headroom import AdmissionAt, NamespaceAdmission, admitted
from forecaster.actuators.resize.eviction import EvictionTerms, is_moving, no_restart, waits, with_bounded_evictions
from forecaster.actuators.resize.sized_pod import ResizablePod, Resized, ResizeWrite, Sizes, changed, merged
from forecaster.actuators.rollback import lasts
from forecaster.actuators.settings import ResizeSettings
from forecaster.actuators.writes import MANAGER, Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.domain.workload import WorkloadId
from forecaster.vertical.admission.context import PART_SIZED, AdmissionContext, as_stated, with_values
from forecaster.vertical.cluster_rules.pod import Requirements
from forecaster.vertical.cluster_rules.resize import ResizeStatus, resize
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE

NO_EVICTIONS = EvictionTerms()


@dataclass(slots=True)
class ResizePlan:
    """Writes and refusals of one cycle."""

    writes: list[ResizeWrite] = field(default_factory=list)
    refusals: list[WriteRefusal] = field(default_factory=list)


def resize_plan(
    watched: Sequence[ResizablePod],
    candidates: Sequence[ResizablePod],
    recommended: Mapping[WorkloadId, Sizes],
    allowed: Callable[[WorkloadId], bool],
    admission: AdmissionAt,
    now: datetime,
    rules: ResizeSettings,
    evictions: EvictionTerms = NO_EVICTIONS,
) -> ResizePlan:
    """Return the resizes of one cycle, and the refusals.

    `watched` have our label, `candidates` another size, one of a workload; `allowed` says where a policy wants sizes.
    """
    plan, busy = ResizePlan(), occupied(watched, now, rules)
    moving = Counter(pod.workload for pod in watched if is_moving(pod))
    for pod in watched:
        if pod.deleted:
            continue
        followed = _followed(pod, moving, now, rules, evictions, allowed=allowed(pod.workload))
        steps = [_possible(step, admission) for step in followed]
        plan.writes += [step for step in steps if isinstance(step, ResizeWrite)]
        plan.refusals += [step for step in steps if isinstance(step, WriteRefusal)]
    busy |= {write.subject.workload for write in plan.writes if write.change is Change.ROLL_BACK}
    plan.writes, waiting = with_bounded_evictions(plan.writes, evictions.tried)
    plan.refusals += waiting
    for pod in candidates:
        watching = pod.marked and not pod.settled
        if pod.workload in busy or pod.deleted or watching or pod.workload not in recommended:
            continue
        if pod.resized is not None and pod.other_writers:
            plan.writes.append(_yielded(pod, now, rules))
            continue
        decided = _sized(pod, recommended[pod.workload], admission(pod.namespace), now, rules)
        if isinstance(decided, ResizeWrite):
            plan.writes.append(decided)
        elif decided:
            plan.refusals.append(decided)
    return plan


def occupied(watched: Sequence[ResizablePod], now: datetime, rules: ResizeSettings) -> set[WorkloadId]:
    """Workloads of which one pod is being resized, or was worse off lately: their other pods wait."""
    return {pod.workload for pod in watched if _occupies(pod, now, rules)}


def undone(pod: ResizablePod, why: str, change: Change = Change.RESTORE) -> ResizeWrite | None:
    """Return the step back to the owner's size, None if the pod has no mark of ours; another writer's size stays."""
    if pod.resized is not None and not pod.other_writers:
        return ResizeWrite(pod, change, changed(pod.sizes, pod.resized.before), why)
    return ResizeWrite(pod, Change.FORGET, {}, why) if pod.marked or pod.resized is not None else None


def _possible(step: ResizeWrite | WriteRefusal, admission: AdmissionAt) -> ResizeWrite | WriteRefusal:
    """Return a step, but a refusal where a way back would give the pod limits by a LimitRange that came since."""
    if isinstance(step, WriteRefusal) or step.change not in {Change.RESTORE, Change.ROLL_BACK}:
        return step
    pod, known = step.subject, admission(step.subject.namespace)
    context = AdmissionContext(pod.pod, limit_ranges=known.limit_ranges, server=known.server)
    limits = context.added_limits(step.sizes, step.sizes)
    why = f"{pod}: its own size would come with a limit of {limits}, by a LimitRange; delete the pod"
    return WriteRefusal(pod, RefusalReason.INADMISSIBLE, why) if limits else step


def _followed(
    pod: ResizablePod,
    moving: Mapping[WorkloadId, int],
    now: datetime,
    rules: ResizeSettings,
    evictions: EvictionTerms,
    *,
    allowed: bool,
) -> Iterator[ResizeWrite | WriteRefusal]:
    """Decide about a pod that has our mark."""
    if pod.fault:
        yield WriteRefusal(pod, RefusalReason.UNREADABLE, f"{pod}: {pod.fault}")
    elif not allowed:
        yield from filter(None, [undone(pod, f"the policy of {pod.workload} only observes sizes")])
    elif pod.resized is not None and pod.other_writers:
        yield _yielded(pod, now, rules)
    elif lasts(pod.backed_off_until, now):
        worse = MANAGER in pod.writers  # its own size is of our writing; a yield leaves us no claim
        code = RefusalReason.ROLLED_BACK if worse else RefusalReason.SECOND_WRITER
        why = "was worse off" if worse else "was resized by another client"
        until = f"its workload keeps its size until {pod.backed_off_until:%H:%M} UTC"
        yield WriteRefusal(pod, code, f"{pod} {why}; {until}")
    elif pod.resized is None:
        yield ResizeWrite(pod, Change.FORGET, {}, "a back-off or a restoring is over")
    elif not (pod.resized.new or changed(pod.sizes, pod.resized.before)):
        yield ResizeWrite(pod, Change.FORGET, {}, "its own size was written down, and ours was not written")
    elif pod.settled:
        pass
    elif _begins(pod, pod.resized):
        yield from _starting(pod, pod.resized, now, rules)
    elif evictions.concern(pod) and not _worse(pod, pod.resized, now, rules):
        yield from _stuck(pod, pod.resized, moving, now, rules, evictions)
    else:
        yield from _watched(pod, pod.resized, now, rules)


def _yielded(pod: ResizablePod, now: datetime, rules: ResizeSettings) -> ResizeWrite:
    """Accept another writer's size as the pod's own."""
    reason = f"{pod.other_writers} resized it; its workload is left alone for {duration_text(rules.back_off)}"
    return ResizeWrite(pod, Change.YIELD, {}, reason, backed_off_until=now + rules.back_off)


def _begins(pod: ResizablePod, resized: Resized) -> bool:
    """Whether a pod has more CPU until it has started, or had that and has its own size again."""
    more, own = changed(pod.sizes, resized.started), changed(pod.sizes, resized.before)
    return bool(resized.started and (more or not own))


def _starting(
    pod: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings
) -> Iterator[ResizeWrite | WriteRefusal]:
    """Decide about a pod with more CPU for its start; no change window delays the return to its own size."""
    more = changed(pod.sizes, resized.started)
    if not more and pod.status is ResizeStatus.NONE:
        yield ResizeWrite(pod, Change.FORGET, {}, "it has started, and has its own size again")
    elif more and pod.ready and resized.age(now) >= resized.boosted_for:
        yield ResizeWrite(pod, Change.RESIZE, more, "it has started", resized)
    else:
        steps = _watched(pod, resized, now, rules)
        yield from (step for step in steps if not (isinstance(step, ResizeWrite) and step.settled))


def _stuck(
    pod: ResizablePod,
    resized: Resized,
    moving: Mapping[WorkloadId, int],
    now: datetime,
    rules: ResizeSettings,
    evictions: EvictionTerms,
) -> Iterator[ResizeWrite | WriteRefusal]:
    """Decide about a pod with a size that its node does not grant, and which pod may be evicted for it."""
    if why := waits(pod, moving, now, rules.evict_after, evictions):
        message = f"{pod}: its node does not grant the size; {why}. {pod.node_message}"
        yield WriteRefusal(pod, RefusalReason.DEFERRED, message)
    else:
        why = f"its node did not grant the size for {duration_text(resized.age(now))}; its successor is made with it"
        yield ResizeWrite(pod, Change.EVICT, {}, f"{why}. {pod.node_message}".rstrip(". "), resized)


def _watched(
    pod: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings
) -> Iterator[ResizeWrite | WriteRefusal]:
    """Decide about a pod that was resized lately."""
    if worse := _worse(pod, resized, now, rules) or _refused_by_node(pod, resized, now, rules):
        undo = undone(pod, worse, Change.ROLL_BACK)
        yield from [replace(undo, backed_off_until=now + rules.back_off)] if undo else []
    elif pod.status in {ResizeStatus.DEFERRED, ResizeStatus.IN_PROGRESS}:
        code = RefusalReason.DEFERRED if pod.status is ResizeStatus.DEFERRED else RefusalReason.IN_PROGRESS
        yield WriteRefusal(pod, code, f"{pod}: its node has not granted the size yet. {pod.node_message}".rstrip(". "))
    elif resized.age(now) >= rules.watch_for:
        yield ResizeWrite(pod, Change.SETTLE, {}, "it has proven itself", resized, settled=True)


def _worse(pod: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings) -> str:
    """Say why a pod is worse off since it has its size; empty where it is not."""
    more = pod.restarts - resized.restarts
    expected = len(pod.pod.containers) if rules.restarts else int(resized.new)  # one, until what it needs is there
    if more > expected:
        return f"{more} restarts since its size was changed"
    patience = rules.watch_for if resized.new else rules.settle_for  # a new pod has to start first
    if not pod.ready and resized.age(now) >= patience:
        return f"not ready {duration_text(patience)} after its size was changed"
    return pod.worse if resized.age(now) < rules.watch_for else ""


def _refused_by_node(pod: ResizablePod, resized: Resized, now: datetime, rules: ResizeSettings) -> str:
    """Say why the node refuses the size; empty where it may accept it."""
    if pod.status is ResizeStatus.INFEASIBLE:
        return f"its node can never grant the size. {pod.node_message}".rstrip(". ")
    if pod.status in {ResizeStatus.ERROR, ResizeStatus.UNKNOWN} and resized.age(now) >= rules.settle_for:
        return f"its node could not apply the size. {pod.node_message}".rstrip(". ")
    return ""


def _occupies(pod: ResizablePod, now: datetime, rules: ResizeSettings) -> bool:
    """Whether other pods of the workload wait for this one; a pod that is deleted may be there for days."""
    fresh = pod.resized is not None and not pod.settled and pod.resized.age(now) < rules.settle_for
    moving = not pod.settled and pod.status is not ResizeStatus.NONE
    return lasts(pod.backed_off_until, now) or (not pod.deleted and (fresh or moving or not pod.ready))


def _sized(
    pod: ResizablePod, recommended: Sizes, admission: NamespaceAdmission, now: datetime, rules: ResizeSettings
) -> ResizeWrite | WriteRefusal | None:
    """Return the size that the cluster accepts, or why there is none."""
    if pod.owner or pod.fault:
        return WriteRefusal(pod, RefusalReason.OWNED, f"{pod}: {pod.owner or pod.fault}")
    if not pod.ready or pod.status is not ResizeStatus.NONE:
        return None
    able = as_stated(
        pod.pod, {name: merged(pod.sizes.get(name, Requirements()), size) for name, size in recommended.items()}
    )
    if not able:
        return WriteRefusal(pod, RefusalReason.INADMISSIBLE, f"{pod}: {PART_SIZED}")
    allowed = _without_less_memory(pod.sizes, able) if not rules.lower_memory else able
    nearest, refused = admitted(pod.pod, allowed, admission, running=((pod.pod, pod.node),))
    sizes = changed(pod.sizes, nearest)
    if not sizes:
        return WriteRefusal(pod, RefusalReason.INADMISSIBLE, f"{pod}: {refused}") if refused else None
    restarted = resize(pod.pod, with_values(pod.pod, sizes), admission.server).restarts
    if restarted and (why := no_restart(pod, rules)):
        message = f"{pod}: its resizePolicy restarts {', '.join(restarted)}; {why}"
        return WriteRefusal(pod, RefusalReason.RESTARTS, message)
    reason = f"sized for {pod.workload}" + (f", as near as it is admitted: {refused}" if refused else "")
    before, new = (pod.resized.before, pod.resized.new) if pod.resized else (pod.sizes, False)
    resized = Resized(before, now, pod.restarts, new, pod.errors)
    return ResizeWrite(pod, Change.RESIZE, sizes, reason, resized)


def _without_less_memory(now: Sizes, recommended: Sizes) -> Sizes:
    """Return the recommended sizes, with at least the present memory."""

    def raised(name: str, size: Requirements) -> Requirements:
        has = now.get(name, Requirements())
        requests, limits = ({**to} for to in (size.requests, size.limits))
        for to, present in ((requests, has.requests), (limits, has.limits)):
            if MEMORY_RESOURCE in to and MEMORY_RESOURCE in present:
                to[MEMORY_RESOURCE] = max(to[MEMORY_RESOURCE], present[MEMORY_RESOURCE])
        return Requirements(requests, limits)

    return {name: raised(name, size) for name, size in recommended.items()}
