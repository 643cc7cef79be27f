"""What does not change during a replay: a workload's HPA, what one of its pods carries, and how long a pod takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.decisions.targets import Unusable, targets_of
from forecaster.hpa.limits import Bounds
from forecaster.replay.scaler import Scaler

if TYPE_CHECKING:
    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload

START_UP = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Setup:
    """The HPA, the CPU demand that fills one pod (cores), and the time from asking for a pod until it serves."""

    scaler: Scaler
    pod_cores: float
    start_up: timedelta = START_UP


def setup_of(workload: Workload, policy: HorizontalPolicy) -> Setup | str:
    """The replay of this workload, or why there is none.

    A pod is full when it uses its CPU request: more is not promised to it, and the HPA's target below the request is
    the headroom that its owner chose.
    """
    hpa, cores = workload.autoscaler, workload.resources.cpu_request
    if hpa is None:
        return "no HPA scales it, so there is nothing to compare with"
    if not cores:
        return "it requests no CPU, so nothing says when a pod is full"
    usable, unusable = _divided(targets_of(workload, policy))
    if unusable:
        return "; ".join(f"{one.metric}: {one.note}" for one in unusable)
    return Setup(Scaler(usable, Bounds(max(1, hpa.min_replicas), hpa.max_replicas)), cores)


def _divided(targets: tuple[PodTarget | Unusable, ...]) -> tuple[tuple[PodTarget, ...], list[Unusable]]:
    usable = tuple(one for one in targets if not isinstance(one, Unusable))
    return usable, [one for one in targets if isinstance(one, Unusable)]
