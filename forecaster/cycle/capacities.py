"""Capacity of one pod of each workload, learned hour by hour from how full and how throttled pods were.

Only workloads with `sizing: newsvendor` and without `peak_target` are learned. Containers are read once an hour; the
cycles that follow evaluate that hour workload by workload. Where the settings of a signal have a query for pod
capacity, its answer is used and nothing is learned for that signal.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.containers import Containers
from forecaster.demand.capacity import LearnedCapacity, fullest, learned, rolled_out, settled
from forecaster.demand.censored import CENSORED_SPAN, throttled
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, PodCapacity
from forecaster.domain.signal import CPU, PODS, REQUESTS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTES_A_POINT, Window
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.horizontal.targets import AmountTarget, PodTarget, Unusable, full_pod, stated_pod, targets_of
from forecaster.ports import Histories

Floats = NDArray[np.float64]

CAPACITY_ROUNDS = 50
"""Cycles over which the workloads of one reading are spread; a late one comes first in the next reading."""
ANSWERED = "answered by the signal's capacity query"
NOTABLE_CHANGE = 0.02
"""A smaller relative difference from the assumed capacity is not reported."""


class PersistedCapacity(msgspec.Struct, frozen=True):
    """The persisted part of one learned capacity."""

    id: tuple[str, str, str]
    signal: str
    amount: float
    minutes: int
    version: str
    cost: float | None
    why: str = ""
    """Origin of the capacity; empty where it equals the assumption."""


@dataclass(slots=True)
class Capacities:
    """Learned pod capacities by workload and signal, and the workloads with an hour that is not evaluated yet."""

    known: dict[tuple[WorkloadId, str], LearnedCapacity] = field(default_factory=dict)
    rolling: dict[tuple[WorkloadId, str], str] = field(default_factory=dict)
    """Versions that appeared within the last hour: their cost is known after their first whole hour."""
    filled: dict[WorkloadId, dict[str, PodCapacity]] = field(default_factory=dict)
    """Capacities that differ from the assumed ones."""
    answered: dict[WorkloadId, dict[str, PodCapacity]] = field(default_factory=dict)
    """The last answers of capacity queries: a day without a queue does not make a pod's capacity unknown."""
    read: datetime | None = None
    waiting: deque[Workload] = field(default_factory=deque)
    at_once: int = 0

    def renew(
        self, history: Histories, containers: Containers, policies: Policies, workloads: Sequence[Workload]
    ) -> None:
        """Learn the capacity of some workloads with containers that were read since the last time."""
        if containers.read is not None and containers.read != self.read:
            self.read = containers.read
            self._take_answers(containers.facts.carried)
            late = {workload.id for workload in self.waiting}
            due = [workload for workload in workloads if learns(policies.stated(workload.id).horizontal)]
            self.waiting = deque(sorted(due, key=lambda workload: workload.id not in late))
            self.at_once = -(-len(self.waiting) // CAPACITY_ROUNDS)
        if not self.waiting:
            return
        weeks = {signal: history.window(signal, FIVE_MINUTES) for signal in (*history.signals, PODS)}
        for _ in range(min(self.at_once, len(self.waiting))):
            workload = self.waiting.popleft()
            with suppress(Exception):  # what is wrong with a workload is told when it is its turn to be decided
                self._learn_hour(workload, weeks, containers, policies.stated(workload.id).horizontal)

    def _take_answers(self, carried: Mapping[tuple[WorkloadId, str], float]) -> None:
        for (id_, signal), amount in carried.items():
            self.answered.setdefault(id_, {})[signal] = PodCapacity(amount, ANSWERED)
        self._put_answers_in_force()

    def _put_answers_in_force(self) -> None:
        for id_, capacities in self.answered.items():
            self.filled[id_] = self.filled.get(id_, {}) | capacities

    def persisted(self) -> tuple[PersistedCapacity, ...]:
        """Return the capacities to persist."""
        learned_here = (
            PersistedCapacity(
                id_, str(signal), known.amount, known.minutes, known.version, known.cost, self._in_force(id_, signal)
            )
            for (id_, signal), known in self.known.items()
            if signal not in self.answered.get(id_, {})
        )
        answered = (
            PersistedCapacity(id_, str(signal), capacity.amount, 0, "", None, capacity.why)
            for id_, capacities in self.answered.items()
            for signal, capacity in capacities.items()
        )
        return (*learned_here, *answered)

    def _in_force(self, id_: WorkloadId, signal: str) -> str:
        """Say why a capacity differs from the assumed one; empty where it does not."""
        capacity = self.filled.get(id_, {}).get(signal)
        return capacity.why if capacity else ""

    def restore(self, persisted: tuple[PersistedCapacity, ...]) -> None:
        """Restore persisted capacities, which take effect at once."""
        self.known, self.filled, self.answered = {}, {}, {}
        for capacity in persisted:
            id_ = WorkloadId(*capacity.id)
            if capacity.why != ANSWERED:
                learned_values = capacity.amount, capacity.minutes, capacity.version, capacity.cost
                self.known[id_, capacity.signal] = LearnedCapacity(*learned_values)
            if capacity.why:
                pod_capacities = self.answered if capacity.why == ANSWERED else self.filled
                pod_capacities.setdefault(id_, {})[capacity.signal] = PodCapacity(capacity.amount, capacity.why)
        self._put_answers_in_force()

    def forget_others(self, ids: Container[WorkloadId]) -> None:
        """Keep these workloads only."""
        self.known = {key: capacity for key, capacity in self.known.items() if key[0] in ids}
        self.rolling = {key: version for key, version in self.rolling.items() if key[0] in ids}
        self.filled = {id_: capacities for id_, capacities in self.filled.items() if id_ in ids}
        self.answered = {id_: capacities for id_, capacities in self.answered.items() if id_ in ids}

    def _learn_hour(
        self, workload: Workload, weeks: Mapping[Signal, Window], containers: Containers, policy: HorizontalPolicy
    ) -> None:
        """Learn from the hour that was read; without throttling data, or with gaps only, learn nothing."""
        ids = containers.of_workload.get(workload.id, ())
        throttled_shares = [share for id_ in ids if (share := containers.facts.held_back.get(id_)) is not None]
        if not throttled_shares or self.read is None:
            return
        hour = {signal: _hour(week, workload.id, self.read) for signal, week in weeks.items()}
        strained = throttled(max(throttled_shares))
        version = version_of(containers.facts.images.get(id_, "") for id_ in ids)
        answered = self.answered.get(workload.id, {})
        pod_capacities: dict[str, PodCapacity] = dict(answered)
        for target in targets_of(workload, policy):
            if not isinstance(target, Unusable) and throttles(target.signal) and target.signal not in answered:
                self._learn(workload, target, hour, version, strained=strained)
                pod_capacities |= filling(self.known.get((workload.id, target.signal)), target)
        self.filled[workload.id] = pod_capacities

    def _learn(
        self, workload: Workload, target: PodTarget, hour: Mapping[Signal, Floats], version: str, *, strained: bool
    ) -> None:
        key, fresh, cost = (workload.id, target.signal), full_pod(target, None), cost_of(hour, target.signal)
        before = self.known.get(key) or LearnedCapacity(fresh, version=version, cost=cost)
        if version != before.version and self.rolling.get(key) != version:
            self.rolling[key] = version
            return
        self.rolling.pop(key, None)
        now = rolled_out(before, version, cost, fresh)
        load = settled(hour[target.signal], hour[PODS])
        bad = fullest(load) if strained else np.zeros(len(load), bool)
        self.known[key] = replace(
            learned(
                now,
                np.where(bad | ~np.array(strained), load, np.nan),
                bad,
                target=stated_pod(target),
                version=version,
                most=most_of(workload, target, cost, fresh),
                each=MINUTES_A_POINT,
            ),
            cost=now.cost or cost,
        )


def learns(policy: HorizontalPolicy) -> bool:
    """Whether pod capacity influences decisions and is not stated."""
    return policy.sizing == "newsvendor" and policy.peak_target is None


def filling(capacity: LearnedCapacity | None, target: PodTarget) -> dict[str, PodCapacity]:
    """Return the capacity that replaces the assumed one in decisions; empty where both are the same."""
    assumed = full_pod(replace(target, full=None), None)
    if capacity is None or abs(capacity.amount / assumed - 1.0) < NOTABLE_CHANGE:
        return {}
    evidence = "throttled above" if capacity.amount < assumed else "carried well"
    return {target.signal: PodCapacity(capacity.amount, f"learned from {capacity.minutes / 60:.0f} h, {evidence}")}


def throttles(signal: Signal) -> bool:
    """Whether overload of a pod by this signal shows as throttled CPU: true of the CPU of pods and of requests only."""
    return not signal.of_container and (signal.limited or not signal.resource)


def cost_of(hour: Mapping[Signal, Floats], signal: Signal) -> float | None:
    """Usual cores for one unit of a signal, of CPU for one request per second; None where nothing was measured."""
    work = REQUESTS if signal.resource else signal
    if CPU not in hour or work not in hour:
        return None
    cpu, amount = hour[CPU], hour[work]
    served = (amount > 0) & ~np.isnan(cpu)
    return float(np.median(cpu[served] / amount[served])) if served.any() else None


def most_of(workload: Workload, target: PodTarget, cost: float | None, fresh: float) -> float:
    """Upper bound of a pod's capacity: its CPU limit, or request, in the unit of the target."""
    cores = workload.resources.cpu_limit or workload.resources.cpu_request
    if isinstance(target, AmountTarget) and not target.signal.resource:
        return max(cores / cost, fresh) if cores and cost else fresh
    return max(cores or fresh, fresh)


def version_of(images: Iterable[str]) -> str:
    """Return one word for the images of a pod's containers."""
    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:12]


def _hour(window: Window, id_: WorkloadId, end: datetime) -> Floats:
    """The columns of the hour that ends at `end`, and one before it; gaps where nothing is known."""
    count = CENSORED_SPAN // FIVE_MINUTES + 1
    last = (end - window.start) // window.step + 1
    values = np.full(count, np.nan)
    if id_ in window.row and 0 < last <= window.values.shape[1]:
        known = window.values[window.row[id_], max(0, last - count) : last]
        values[count - len(known) :] = known
    return values
