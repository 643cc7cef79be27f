"""What does not change during a replay: a workload's HPA, what one of its pods carries, and how long a pod takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.decisions.targets import Unusable, targets_of
from forecaster.domain.signal import CPU, Signal
from forecaster.hpa.limits import ReplicaBounds
from forecaster.replay import start_up as start_ups
from forecaster.replay import timing as timings
from forecaster.replay.scaler import Scaler

if TYPE_CHECKING:
    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.hpa.behavior import Behavior
    from forecaster.replay.start_up import StartUp
    from forecaster.replay.timing import Timing


@dataclass(frozen=True, slots=True)
class Capacity:
    """What fills one pod: so much of this signal."""

    amount: float
    signal: Signal = CPU


@dataclass(frozen=True, slots=True)
class Setup:
    """The HPA, what fills one pod, the time from asking for a pod until it serves, and the clocks."""

    scaler: Scaler
    capacity: Capacity
    start_up: StartUp = start_ups.USUAL
    timing: Timing = timings.USUAL


def setup_of(
    workload: Workload,
    policy: HorizontalPolicy,
    *,
    capacity: Capacity | None = None,
    start_up: StartUp = start_ups.USUAL,
    timing: Timing = timings.USUAL,
    behavior: Behavior | None = None,
) -> Setup | str:
    """The replay of this workload, or why there is none.

    Unless `capacity` says otherwise a pod is full when it uses its CPU request: more is not promised to it, and the
    HPA's target below the request is the headroom that its owner chose.
    """
    hpa, cores = workload.autoscaler, workload.resources.cpu_request
    if hpa is None:
        return "no HPA scales it, so there is nothing to compare with"
    if not hpa.targets:
        return f"HPA {hpa.name} has no metrics, so nothing says how many pods it asks for"
    if capacity is None and not cores:
        return "it requests no CPU, so nothing says when a pod is full"
    usable, unusable = _divided(targets_of(workload, policy))
    if unusable:
        return "; ".join(f"{one.metric}: {one.note}" for one in unusable)
    scaler = Scaler(usable, ReplicaBounds(max(1, hpa.min_replicas), hpa.max_replicas), behavior)
    return Setup(scaler, capacity or Capacity(cores or 0.0), start_up, timing)


def _divided(targets: tuple[PodTarget | Unusable, ...]) -> tuple[tuple[PodTarget, ...], list[Unusable]]:
    usable = tuple(one for one in targets if not isinstance(one, Unusable))
    return usable, [one for one in targets if isinstance(one, Unusable)]
