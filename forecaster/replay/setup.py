"""Constants of a replay of one workload: HPA, pod capacity, start-up time; or why there is no replay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from forecaster.domain.amounts import duration_text
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, PODS, Signal
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import Autoscaler, Target, TargetType, Workload
from forecaster.horizontal.lead_time import MIN_SCALE_UPS, lead_time
from forecaster.horizontal.targets import PodTarget, Unusable, stated_pod, targets_of, usable
from forecaster.hpa.behavior import Behavior
from forecaster.hpa.limits import ReplicaBounds
from forecaster.hpa.numbers import MAX_INT32
from forecaster.hpa.spec import HpaSpec, MetricSpec
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions, Feedback, StartUp, Timing
from forecaster.replay.traces import Measurements

IMPLAUSIBLE = 20
"""A typical demand that needs this multiple of the largest count is stated in another unit, e.g. millicores."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Full load of one pod: an amount of this signal."""

    amount: float
    signal: Signal = CPU


@dataclass(frozen=True, slots=True)
class Setup:
    """The HPA, what fills one pod, the time from asking for a pod until it serves, and the clocks."""

    targets: tuple[PodTarget, ...]
    bounds: ReplicaBounds
    capacity: Capacity
    behavior: Behavior | None
    """None: the limits of HPA rules §10."""
    start_up: StartUp
    timing: Timing
    feedback: Feedback


def setup_of(workload: Workload, policy: HorizontalPolicy, assumed: Assumptions = USUAL_ASSUMPTIONS) -> Setup | str:
    """Return the replay of this workload, or why there is none.

    Unless a capacity is assumed a pod is full when it uses its CPU request: more is not promised to it, and the
    HPA's target below the request is the headroom that its owner chose.
    """
    hpa, cores, capacity = workload.autoscaler, workload.resources.cpu_request, assumed.capacities.get(workload.id)
    if hpa is None:
        return "no HPA scales it, so there is nothing to compare with"
    if not hpa.targets:
        return f"HPA {hpa.name} has no metrics, so its count is not known"
    if not all(0 < target.value < math.inf for target in hpa.targets):
        return f"HPA {hpa.name} has a target that is not above 0, so its count is not known"
    if capacity is None and not (cores and cores > 0):
        return "it requests no CPU, so nothing says when a pod is full"
    targets = targets_of(workload, policy)
    unusable = [target for target in targets if isinstance(target, Unusable)]
    if unusable:
        return "; ".join(f"{target.metric}: {target.note}" for target in unusable)
    return Setup(
        targets=usable(targets),
        bounds=ReplicaBounds(max(1, hpa.min_replicas), hpa.max_replicas),
        capacity=capacity or Capacity(cores or 0.0),
        behavior=assumed.behaviors.get(workload.id),
        start_up=assumed.start_up_of(workload),
        timing=assumed.timing,
        feedback=assumed.feedback,
    )


def setup_or_reason(
    series: int,
    workload: Workload,
    policy: Policy,
    measurements: Measurements,
    assumed: Assumptions,
    *,
    forecasts: bool = True,
) -> Setup | str:
    """Return the replay of this workload on measurements, or why not; without `forecasts` spans may be shorter."""
    setup = setup_of(workload, policy.horizontal, assumed)
    if isinstance(setup, str):
        return setup
    return (
        _contradiction(workload, policy)
        or (_too_short(policy, measurements, assumed) if forecasts else "")
        or _unfit(series, setup, measurements)
        or setup
    )


def first_pods(series: int, setup: Setup, measurements: Measurements) -> int:
    """Return the ready pods at the beginning; if they were not recorded, the count at which the HPA rests then."""
    ready, stated = measurements.past(PODS, 0, 1)[0, series], measurements.traces.workloads[series].replicas
    if stated or not math.isnan(ready):
        return max(1, stated if math.isnan(ready) else round(float(ready)))
    loads = [(float(measurements.latest[target.signal].values[0, series]), target) for target in setup.targets]
    counts = [math.ceil(load / stated_pod(target)) for load, target in loads if not math.isnan(load)]
    return int(np.clip(max(counts, default=0), setup.bounds.min_replicas, setup.bounds.max_replicas))


def lead_time_of(policy: HorizontalPolicy, assumed: Assumptions) -> timedelta:
    """The lead time that the service would have measured on these start-ups, unless the policy states one."""
    return lead_time(policy, assumed.start_ups * MIN_SCALE_UPS).value


def _contradiction(workload: Workload, policy: Policy) -> str:
    hpa, lowest = workload.autoscaler, policy.horizontal.min_replicas
    if hpa is None:
        return ""
    if hpa.max_replicas > MAX_INT32:
        return f"HPA {hpa.name} has maxReplicas {hpa.max_replicas}, and {MAX_INT32} is the most"
    if hpa.min_replicas > hpa.max_replicas:
        return f"HPA {hpa.name} has minReplicas {hpa.min_replicas} above maxReplicas {hpa.max_replicas}"
    if lowest is not None and lowest > hpa.max_replicas:
        return f"policy min_replicas {lowest} is above the HPA's maxReplicas {hpa.max_replicas}; lower one of them"
    return ""


def _too_short(policy: Policy, measurements: Measurements, assumed: Assumptions) -> str:
    reach = lead_time_of(policy.horizontal, assumed) + policy.horizontal.window
    length = measurements.minutes * MINUTE
    past = measurements.begin - measurements.traces.start + MINUTE
    if length <= reach:
        return (
            f"{duration_text(length)} are replayed, and a decision looks {duration_text(reach)} ahead "
            "(lead_time + window); replay a longer time"
        )
    if past < policy.min_history:
        rest = past + length - policy.min_history
        remedy = f"replay the last {duration_text(rest)}" if rest > reach else "record a longer time"
        return (
            f"{duration_text(past)} of history before the replay is less than {duration_text(policy.min_history)} "
            f"(min_history); {remedy}"
        )
    return ""


def _unfit(series: int, setup: Setup, measurements: Measurements) -> str:
    """Say why there is no usable demand, in units that fit the targets; empty where there is."""
    aims = {target.signal for target in setup.targets}
    have = [signal for signal in measurements.latest if not np.isnan(measurements.of(signal, 0, series)).all()]
    for signal in sorted({setup.capacity.signal, *aims}):
        if signal not in have:
            clause, known = "its HPA goes" if signal in aims else "a pod is filled", ", ".join(have) or "nothing"
            return f"{clause} by {signal}, of which nothing was recorded in that time; recorded: {known}"
    return next((fault for target in setup.targets if (fault := _other_unit(series, target, setup, measurements))), "")


def _other_unit(series: int, target: PodTarget, setup: Setup, measurements: Measurements) -> str:
    per_pod = stated_pod(target)
    usual = float(np.nanmedian(measurements.of(target.signal, 0, series)))
    if usual <= IMPLAUSIBLE * setup.bounds.max_replicas * per_pod:
        return ""
    return (
        f"half of the time its {target.signal} is above {usual:g} {target.signal.unit}, {usual / per_pod:.0f} pods' "
        f"worth with {setup.bounds.max_replicas} as the most: is it in another unit than the target, {target}?"
    )


def autoscaler_of(spec: HpaSpec) -> Autoscaler:
    """The autoscaler that this spec describes; a metric that is not read by pod and resource keeps its own name."""
    bounds = spec.bounds
    targets = tuple(target for metric in spec.metrics if (target := _target(metric)))
    return Autoscaler(spec.name or "hpa", bounds.min_replicas, bounds.max_replicas, targets)


def _target(metric: MetricSpec) -> Target | None:
    """Rename a container's metric, which the recording of its pod does not have, so that it has no values."""
    name = f"{metric.container}/{metric.name}" if metric.source == "ContainerResource" else metric.name
    stated = metric.target
    if stated.average_utilization_percent is not None:
        return Target(name, TargetType.UTILIZATION, stated.average_utilization_percent / 100)
    if stated.average_value_milli is not None:
        return Target(name, TargetType.AVERAGE_VALUE, stated.average_value_milli / 1000)
    if stated.value_milli is not None:
        return Target(name, TargetType.VALUE, stated.value_milli / 1000)
    return None
