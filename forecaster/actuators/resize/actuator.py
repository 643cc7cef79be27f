"""ResizeActuator: running pods of workloads in vertical mode in-place get the sizes of the cycle, one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from forecaster.actuators.limits import MAX_WORKLOADS, CycleLimits, in_turn, max_changed
from forecaster.actuators.resize.eviction import STUCK, EvictionTerms
from forecaster.actuators.resize.plan import occupied, resize_plan
from forecaster.actuators.resize.sized_pod import ResizablePod, Sizes, changed, compute_of
from forecaster.actuators.rollback import UNKNOWN_HEALTH, HealthAt, errors_worse, no_health
from forecaster.actuators.writes import Change, RefusalReason, WorkloadObject, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.domain.decision import Resize
from forecaster.horizontal.events import freeze_at
from forecaster.resources.neighbours import Neighbours
from forecaster.vertical.admission.advice import rounded, sum_of
from forecaster.vertical.admission.cluster import requirements_of
from forecaster.vertical.cluster_rules.resource_list import COMPUTE

if TYPE_CHECKING:
    from forecaster.actuators.neighbours import NeighboursAt
    from forecaster.actuators.queue import WriteQueue
    from forecaster.actuators.resize.pods import Resizes
    from forecaster.actuators.settings import ResizeSettings
    from forecaster.domain.event import ScheduledEvent
    from forecaster.domain.policies import Policies
    from forecaster.domain.report import Effected
    from forecaster.domain.workload import ContainerSize, Resources, WorkloadId
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.vertical.cluster_rules.pod import Requirements


@dataclass(slots=True)
class ResizeActuator:
    """Receives the recommendations of a cycle, and acts on them: `OfferReceiver` and `Actuator`."""

    pods: Resizes
    running: Callable[[Container[WorkloadId]], Iterator[tuple[WorkloadId, str, str, Resources]] | None]
    """Watched ready pods of these workloads: workload, namespace, name and summed size; None: not known."""
    writer: WriteQueue
    policies: Policies
    rules: ResizeSettings
    neighbours: NeighboursAt
    """Reads other autoscalers in the cluster; a workload that a VPA sizes stays unchanged."""
    health: HealthAt = no_health
    """Reads the health of a workload, by which a size is taken back beside the state of its pod."""
    offered: OfferedCycle | None = None
    tried: dict[tuple[str, ...], datetime] = field(default_factory=dict)
    """Instant of the last attempt to evict each pod."""
    sized: frozenset[WorkloadId] | None = None
    """Workloads of which a policy let sizes be at the last look; None before the first one."""
    left: bool = False
    """Whether settled pods may have a size that no policy lets be any more."""
    turn: int = 0
    """Position in the rotation of workloads and their pods: a pod that cannot have its size delays no other."""

    def receive(self, cycle: OfferedCycle) -> None:
        """The recommendations that are acted on."""
        self.offered = cycle

    def act(self, now: datetime) -> Effected:
        """Resize the pods under observation, and one pod of each workload with another size.

        Raises:
            ApiError: the pods cannot be read.
        """
        decided = decided_sizes(self.offered, now, self._in_place)
        recommended = {id_: chosen_sizes(containers) for id_, containers in decided.items()}
        watched = self._with_health([*self.pods.marked(), *self._left_behind(now)], now)
        candidates, unread = self._candidates(decided, occupied(watched, now, self.rules), now)
        evictions = self._evictions(watched, now)
        plan = resize_plan(
            watched, candidates or [], recommended, self._sized, self.pods.admission(), now, self.rules, evictions
        )
        resized = sum(pod.resized is not None for pod in watched)
        not_read = recommended.keys() - {pod.workload for pod in (*watched, *(candidates or ()))}
        fleet = len(recommended.keys() | {pod.workload for pod in watched})
        limits = CycleLimits(fleet, max_changed(fleet, self.rules.most_workloads))
        done = self.writer.effected(
            self.pods, plan.writes, [*plan.refusals, *unread], now, not_read, limits=limits, watched=resized
        )
        evicted = {write.subject.key for write in plan.writes if write.change is Change.EVICT}
        self.tried |= dict.fromkeys(evicted & done.tried, now)
        blind = ["resize: pods are not watched, so none is resized"] if candidates is None else []
        return done._replace(failures=(*done.failures, *blind))

    def _in_place(self, id_: WorkloadId) -> bool:
        return self.policies.stated(id_).vertical.mode == "in-place"

    def _left_behind(self, now: datetime) -> list[ResizablePod]:
        """Return settled pods of workloads with another mode; called after a change of any mode.

        A pod that was created with its size keeps it: its owner may never have run it with another one.
        """
        if self.offered is None or self.offered.at != now:
            return []
        sized = frozenset(filter(self._sized, self.offered.ids))
        self.left |= self.sized is None or not self.sized <= sized
        self.sized = sized
        if not self.left:
            return []
        settled = (pod for pod in self.pods.marked(settled=True) if pod.settled and not self._sized(pod.workload))
        left_behind = [pod for pod in settled if pod.resized is not None and not pod.resized.new]
        self.left = bool(left_behind)
        return in_turn(left_behind, self.turn)

    def _evictions(self, watched: Sequence[ResizablePod], now: datetime) -> EvictionTerms:
        """Return the conditions of evictions; where pods are not watched none counts as ready."""
        waiting = {pod.key for pod in watched if pod.status in STUCK}
        self.tried = {key: at for key, at in self.tried.items() if key in waiting}

        def evicts(id_: WorkloadId) -> bool:
            return self.policies.stated(id_).vertical.evict and not self._closed(id_, now)

        stuck = {pod.workload for pod in watched if pod.status in STUCK and evicts(pod.workload)}
        ready = Counter(id_ for id_, *_ in (self.running(stuck) or ()) if stuck)
        neighbours = self.neighbours(now) if stuck else Neighbours()
        sized = {id_ for id_ in stuck if neighbours.writes_sizes(id_)}
        return EvictionTerms(evicts, ready, self.tried, sized)

    def _closed(self, id_: WorkloadId, now: datetime) -> str:
        """Say why the workload's sizes may not change now; empty where they may."""
        return closed(self.policies.stated(id_).horizontal.events, now)

    def _sized(self, id_: WorkloadId) -> bool:
        return self.policies.stated(id_).vertical.mode != "observe"

    def _candidates(
        self, decided: Mapping[WorkloadId, Sequence[ContainerSize]], busy: Container[WorkloadId], now: datetime
    ) -> tuple[list[ResizablePod] | None, list[WriteRefusal]]:
        """Return one pod of each workload with pods of another size; None where pods are not watched."""
        due = {id_: pod_size(containers) for id_, containers in decided.items() if id_ not in busy}
        running = self.running(due) if due else iter(())
        if running is None:
            return None, []
        others: dict[WorkloadId, list[tuple[str, str]]] = defaultdict(list)
        for id_, namespace, name, size in running:
            if changed({"": requirements_of(size)}, {"": due[id_]}):
                others[id_].append((namespace, name))
        self.turn += 1
        held = {id_: why for id_ in others if (why := self._closed(id_, now))}
        waiting = [
            WriteRefusal(WorkloadObject(id_, min(others.pop(id_))[1]), RefusalReason.OUTSIDE_WINDOW, f"{id_}: {why}")
            for id_, why in held.items()
        ]
        round_ = self.turn // -(-len(others) // MAX_WORKLOADS) if others else 0
        turns = ((id_, sorted(others[id_])[round_ % len(others[id_])]) for id_ in in_turn([*others], self.turn))
        chosen = [(id_, key[1], key) for id_, key in turns]
        pods, unread = self.writer.read_each(lambda key: self.pods.of(*key), chosen)
        neighbours = self.neighbours(now) if pods else Neighbours()
        pods = [replace(pod, owner=pod.owner or neighbours.writes_sizes(pod.workload)) for pod in pods]
        return self._with_health(pods, now), [*waiting, *unread]

    def _with_health(self, pods: list[ResizablePod], now: datetime) -> list[ResizablePod]:
        """Return the pods with the errors of their workloads, for observed pods and those that may be resized."""
        healths = self.health({pod.workload: now for pod in pods}, now) if pods else {}
        examined = []
        for pod in pods:
            health = healths.get(pod.workload, UNKNOWN_HEALTH)
            before = pod.resized.errors if pod.resized else None
            why = errors_worse(before, health.errors, health.limit, self.rules.worse_by)
            unready = None if health.desired is None or health.ready is None else max(0, health.desired - health.ready)
            examined.append(replace(pod, errors=health.errors, worse=why, unready=unready))
        return examined


def decided_sizes(
    cycle: OfferedCycle | None, now: datetime, allowed: Callable[[WorkloadId], bool]
) -> dict[WorkloadId, tuple[ContainerSize, ...]]:
    """The sizes of this very cycle by container, of workloads in this mode that are not held."""
    if cycle is None or cycle.at != now:
        return {}
    decided = ((id_, cycle.recommendations[row].resources) for row, id_ in enumerate(cycle.ids) if allowed(id_))
    return {
        id_: resize.containers
        for id_, resize in decided
        if isinstance(resize, Resize) and not resize.targets and resize.containers and resize.containers[0].name
    }


def chosen_sizes(containers: Sequence[ContainerSize]) -> Sizes:
    """Return the chosen sizes. What has none was read hours ago, and a rollout since may have changed it."""
    return {each.name: compute_of(requirements_of(rounded(each.recommended)), without=each.own) for each in containers}


def pod_size(containers: Sequence[ContainerSize]) -> Requirements:
    """Return the size of a whole pod, in the resources of which any container has a chosen size."""
    sizes = {each.name: requirements_of(rounded(each.recommended)) for each in containers}
    return compute_of(requirements_of(sum_of(sizes)), set(COMPUTE).intersection(*(each.own for each in containers)))


def closed(events: Sequence[ScheduledEvent], now: datetime) -> str:
    """Say why sizes of running pods may not change now; empty where they may.

    An event with `freeze` forbids changes. Where any event has `sizes`, they may change only during such an event.
    """
    if freeze := freeze_at(events, now):
        return f"its size stays, {freeze.event} changes nothing until {freeze.until:%Y-%m-%d %H:%M} UTC"
    windows = [event for event in events if event.sizes]
    if not windows or any(event.lasts_until(now) for event in windows):
        return ""
    return f"its size changes during {', or '.join(map(_when, windows))}"


def _when(event: ScheduledEvent) -> str:
    if event.cron is not None and event.duration is not None:
        return f"{event.name} ({event.cron} for {duration_text(event.duration)}, {event.time_zone})"
    return f"{event.name} ({event.start:%Y-%m-%d %H:%M %Z} to {event.end:%Y-%m-%d %H:%M %Z})"
