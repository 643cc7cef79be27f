"""Assumptions of a replay about the cluster: start-up times of pods, the clocks of the HPA, prices of capacity.

Without feedback, demand is as recorded, whatever the pods did. With feedback, a sync period brings new and waiting
demand; the pods carry what they can, and a share of the rest is retried in the next period. Used CPU is at most the
carried load, so that HPAs and decisions see the saturation that they would see; requests are counted as they arrive.
Forecasts are those of the recorded demand.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE
from forecaster.horizontal.columns import Counts, Floats, millis
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.row import KNOWN
from forecaster.hpa.spec import SHIPPED
from forecaster.replay.hpas import Usage
from forecaster.replay.pods import Pods

if TYPE_CHECKING:
    from forecaster.domain.workload import Prices, Workload, WorkloadId
    from forecaster.hpa.behavior import Behavior
    from forecaster.replay.setup import Capacity


@dataclass(frozen=True, slots=True)
class Feedback:
    """Reaction of load to pods.

    Raises:
        ValueError: a share is outside of 0 to 1, or the time is negative.
    """

    returns: float = 0.0
    """Share of unserved demand that is retried in the next sync period; 1 is a queue."""
    cold: timedelta = timedelta()
    """Time for which a newly ready pod carries less: caches, pools, a compiler that warms up."""
    cold_share: float = 1.0
    """Share of its capacity that a pod has while it is cold."""

    def __post_init__(self) -> None:
        for name, share in (("returns", self.returns), ("cold_share", self.cold_share)):
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{name} {share:g} must be between 0 and 1")
        if self.cold < timedelta():
            raise ValueError(f"cold {self.cold} must not be negative")


NO_FEEDBACK = Feedback()


def load_of(feedback: Feedback, capacity: Floats, signal: str, sync: timedelta) -> ReplayLoad:
    """Return the load of rows with pods that carry so much of a signal."""
    if feedback == NO_FEEDBACK:
        return RecordedLoad(capacity)
    return AnsweringLoad(feedback, capacity, signal, -(-feedback.cold // sync))


class RecordedLoad:
    """Demand as it was recorded, whatever the pods did."""

    def __init__(self, capacity: Floats) -> None:
        self._capacity = capacity

    def missing(self, pods: Pods, coming: Floats) -> Floats:
        """Return the demand above the capacity of ready pods."""
        missing = coming - pods.ready * self._capacity
        return np.maximum(missing, 0.0, out=missing)

    def used(self, usage: dict[str, Usage], *, earlier: bool) -> dict[str, Usage]:  # noqa: ARG002  an answering load reads it
        """Return the usage as recorded."""
        return usage

    def measured(self, inputs: Inputs) -> Inputs:
        """Return the inputs as recorded."""
        return inputs

    def end_minute(self) -> None:
        """Do nothing: recorded load has no state."""


class AnsweringLoad:
    """Demand that answers to a shortage, and pods that are slow at first; [row] each."""

    def __init__(self, feedback: Feedback, capacity: Floats, signal: str, cold: int) -> None:
        self._feedback, self._capacity, self._signal = feedback, capacity, signal
        self._waiting = np.zeros(len(capacity))
        self._ready: Counts | None = None
        self._young: deque[Floats] = deque(maxlen=cold)
        self._seen: list[Floats] = []
        self._minutes: deque[Floats | None] = deque([None, None], maxlen=2)
        """Mean measurements of the last two minutes, older first."""

    def missing(self, pods: Pods, coming: Floats) -> Floats:
        """Return the unserved part of new and waiting demand; a share of it keeps waiting."""
        offered = coming + self._waiting
        carried = np.minimum(offered, self._carries(pods))
        missing = offered - carried
        self._waiting = self._feedback.returns * missing
        self._seen.append(carried if self._signal == CPU else offered)
        return missing

    def _carries(self, pods: Pods) -> Floats:
        """Pods that became ready lately carry less; those that are removed meanwhile are taken for warm ones."""
        before = pods.ready if self._ready is None else self._ready
        self._ready = pods.ready
        if self._young.maxlen:
            self._young.append(np.maximum(pods.ready - before, 0).astype(np.float64))
        young = np.minimum(np.sum(self._young, axis=0), pods.ready) if self._young else 0.0
        return np.asarray((pods.ready - (1.0 - self._feedback.cold_share) * young) * self._capacity)

    def used(self, usage: dict[str, Usage], *, earlier: bool) -> dict[str, Usage]:
        """Return usage with the mean of the minute for the signal that fills pods, where it was recorded at all."""
        mean = self._minutes[0 if earlier else 1]
        if mean is None or self._signal not in usage:
            return usage
        return {**usage, self._signal: Usage(millis(mean), usage[self._signal].known)}

    def measured(self, inputs: Inputs) -> Inputs:
        """Return the inputs of a decision with the load that answers to pods."""
        mean = self._minutes[1]
        if mean is None:
            return inputs
        values = inputs.measured.copy()
        for target, kind in enumerate(inputs.rules.kinds):
            if kind.signal == self._signal:
                values[target] = np.where(inputs.unseen[target] == KNOWN, mean, values[target])
        return replace(inputs, measured=values)

    def end_minute(self) -> None:
        """Set the minute's measurement to the mean of its sync periods."""
        self._minutes.append(np.mean(self._seen, axis=0))
        self._seen.clear()


ReplayLoad = RecordedLoad | AnsweringLoad
"""Load on the pods of all rows, sync period by sync period."""


START_UP = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class StartUp:
    """Durations of equal weight; which of them applies follows from the instant and the seed alone (`pods.Draws`).

    So every policy that is compared meets the same slow and fast moments, and a replay repeats to the digit.
    """

    durations: tuple[timedelta, ...] = (START_UP,)
    seed: int = 0

    @property
    def longest(self) -> timedelta:
        """Longest of the durations."""
        return max(self.durations)


@dataclass(frozen=True, slots=True)
class Timing:
    """The clocks of a replay.

    Raises:
        ValueError: syncs do not divide a minute, or a delay is negative or too long.
    """

    sync: timedelta = SHIPPED.sync_period
    """Time between two passes of the HPA; divides a minute."""
    metrics_delay: timedelta = timedelta()
    """Time from the end of a minute until its demand is visible: scrape and aggregation; below a minute."""
    decision_delay: timedelta = timedelta(seconds=5)
    """Time from the evaluation until the floor that follows from it is in force; a minute at most.

    Never earlier than the next sync after the evaluation time.
    """

    def __post_init__(self) -> None:
        if self.sync <= timedelta() or MINUTE % self.sync:
            raise ValueError(f"sync {self.sync} does not divide a minute; use 15s, 30s or 1m")
        if not timedelta() <= self.metrics_delay < MINUTE:
            raise ValueError(f"metrics_delay {self.metrics_delay} must be 0s or more and below a minute")
        if not timedelta() <= self.decision_delay <= MINUTE:
            raise ValueError(f"decision_delay {self.decision_delay} must be between 0s and a minute")

    @property
    def syncs(self) -> int:
        """Passes of the HPA in a minute."""
        return MINUTE // self.sync

    @property
    def first_fresh(self) -> int:
        """The first sync of a minute that sees the minute before."""
        return -(-self.metrics_delay // self.sync)

    @property
    def first_floored(self) -> int:
        """The first sync of a minute at which a floor from its beginning is in force."""
        return max(1, -(-self.decision_delay // self.sync))


USUAL_TIMING = Timing()

SWEEP = (1.6, 1.4, 1.25, 1.15, 1.05, 1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
"""Targets as shares of the owner's: from lean to safe, as every policy can be tuned."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions of a replay about the cluster, beside policies and HPAs.

    Start-up times are equally likely; a capacity or a behavior that is not stated comes from the workload.
    """

    start_ups: tuple[timedelta, ...] = (START_UP,)
    timing: Timing = USUAL_TIMING
    shares: tuple[float, ...] = SWEEP
    every: int = 1
    """Minutes from one forecast to the next."""
    capacities: Mapping[WorkloadId, Capacity] = field(default_factory=dict)
    behaviors: Mapping[WorkloadId, Behavior] = field(default_factory=dict)
    prices: Prices | None = None
    feedback: Feedback = NO_FEEDBACK
    measured_start_ups: Mapping[WorkloadId, tuple[timedelta, ...]] = field(default_factory=dict)
    """Start-up times of single workloads, in place of `start_ups`."""

    def start_up_of(self, workload: Workload) -> StartUp:
        """The start-up of one workload's pods: its name is the seed, so that not all are slow at once."""
        durations = self.measured_start_ups.get(workload.id) or self.start_ups
        return StartUp(durations, zlib.crc32(str(workload.id).encode()))


USUAL_ASSUMPTIONS = Assumptions()
