"""Intended load of one pod: the HPA's own targets, or the policy's where no HPA states any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from forecaster.domain.amounts import amount
from forecaster.domain.policy import HorizontalPolicy, PodCapacity
from forecaster.domain.published import COUNTS, DEMAND_METRIC, OwnMetric, is_unnamed_by_keda, own_metric
from forecaster.domain.signal import BUILT_IN, CPU, OF_CONTAINER, REQUESTS, Signal
from forecaster.domain.workload import Resources, Target, TargetType, Workload
from forecaster.horizontal.inputs import Kind

TARGET_SHARE = 0.8
"""Target as a share of a pod's capacity, where none is stated: the default of the HPA for CPU."""
MAX_CACHED_TARGETS = 1 << 16
"""Targets that are kept ready: they stand for weeks, and every cycle has them."""


@dataclass(frozen=True, slots=True)
class UtilizationTarget:
    """A share of the request: `percent` of `request` per pod, in the signal's unit."""

    signal: Signal
    percent: int
    request: float
    full: PodCapacity | None = None

    def __str__(self) -> str:
        text = f"{self.percent} % of {amount(self.request, self.signal.unit)} a pod"
        return text + _capacity_words(self.full, self.signal)


@dataclass(frozen=True, slots=True)
class AmountTarget:
    """An amount per pod, in the signal's unit."""

    signal: Signal
    amount: float
    full: PodCapacity | None = None

    def __str__(self) -> str:
        return f"{amount(self.amount, self.signal.unit)} a pod" + _capacity_words(self.full, self.signal)


@dataclass(frozen=True, slots=True)
class Unusable:
    """A target that cannot be computed, and the reason."""

    metric: str
    note: str


SEVERAL_DEMANDS = (
    "several targets of this metric: which signal each of them means is in its selector, which is not known here; "
    "leave one, and read the other signals through KEDA, or as they are measured"
)
NOT_FORECAST = "this metric is not forecast; the HPA goes on reading it itself"
UNNAMED_BY_KEDA = (
    "KEDA's name for this metric does not say what it reads, and nothing else says what a pod should carry; "
    "state valueLocation forecaster.SIGNAL in a metrics-api trigger, leave out scalingModifiers, or add a cpu trigger"
)
SEVERAL_CONTAINERS = (
    "targets of several containers on this resource, of which one can be forecast; leave one, the HPA reads them itself"
)
PodTarget = UtilizationTarget | AmountTarget


def _capacity_words(full: PodCapacity | None, signal: Signal) -> str:
    return f", full at {amount(full.amount, signal.unit)} ({full.why})" if full else ""


def kind_of(target: PodTarget) -> Kind:
    """Return how a target divides a demand."""
    return Kind(
        str(target.signal),
        isinstance(target, UtilizationTarget),
        target.signal.of_all_pods,
        target.signal.survives_zero,
    )


def stated_pod(target: PodTarget) -> float:
    """The demand at which a pod is at its target, in the signal's unit."""
    return target.amount if isinstance(target, AmountTarget) else target.request * target.percent / 100


def full_pod(target: PodTarget, peak_target: float | None) -> float:
    """Return the demand that fills one pod, in the signal's unit: `peak_target` of its target.

    Without `peak_target` it is the learned capacity, else the whole request, or the target amount.
    """
    stated = stated_pod(target)
    if peak_target is not None:
        return stated * peak_target
    if target.full is not None:
        return target.full.amount
    return stated if isinstance(target, AmountTarget) else max(stated, target.request)


def targets_of(workload: Workload, policy: HorizontalPolicy) -> tuple[PodTarget | Unusable, ...]:
    """Return all targets that decide this workload's replicas, in the HPA's order; empty where none is stated.

    An HPA that only follows the counts published here states no load per pod: the policy's targets are used instead.
    """
    stated = workload.autoscaler.targets if workload.autoscaler else ()
    of_hpa = tuple(_of_hpa(target, workload, policy) for target in stated)
    if sum(map(_is_unnamed_demand, stated)) > 1:
        of_hpa = tuple(map(_ambiguous, stated, of_hpa))
    targets = of_hpa
    if all(_is_count(target.metric) for target in stated):
        targets = (*of_hpa, *_of_policy(workload.resources, policy))
    return tuple(_with_capacity(target, policy.filled) for target in targets) if policy.filled else targets


def usable(targets: tuple[PodTarget | Unusable, ...]) -> tuple[PodTarget, ...]:
    """Return the targets that can be computed."""
    return tuple(target for target in targets if not isinstance(target, Unusable))


def signals_of(workload: Workload, policy: HorizontalPolicy) -> set[Signal]:
    """The signals that decide this workload's replicas."""
    return {target.signal for target in usable(targets_of(workload, policy))}


def _with_capacity(target: PodTarget | Unusable, capacities: Mapping[str, PodCapacity]) -> PodTarget | Unusable:
    if isinstance(target, Unusable) or target.signal not in capacities:
        return target
    return _full_at(target, capacities[target.signal])


def _of_hpa(target: Target, workload: Workload, policy: HorizontalPolicy) -> PodTarget | Unusable:
    if _is_count(target.metric):
        return Unusable(target.metric, "it is the answer itself; the HPA reads it from here")
    signal = OF_CONTAINER.get(target.metric) if target.container else _signal(target, policy)
    if signal is None:
        foreign = UNNAMED_BY_KEDA if is_unnamed_by_keda(target.metric) else NOT_FORECAST
        unknown = f"its selector names signal {target.signal}, which is not measured; mend the HPA"
        return Unusable(target.metric, unknown if target.signal else foreign)
    if target.container and not workload.measured_container(target.metric):
        return Unusable(target.metric, SEVERAL_CONTAINERS)
    if target.type is TargetType.AVERAGE_VALUE:
        return _amount(signal, target.value)
    if target.type is TargetType.UTILIZATION and signal.resource:
        return _share_of_request(signal, target, workload.resources_of(signal))
    return Unusable(target.metric, f"a target of type {target.type} says nothing about one pod; use AverageValue")


def _share_of_request(signal: Signal, target: Target, resources: Resources) -> PodTarget | Unusable:
    request = resources.request(signal.resource)
    if not request:
        where = f"container {target.container}" if target.container else "every container"
        return Unusable(target.metric, f"utilization needs a {target.metric} request on {where}; set one")
    return _utilization(signal, round(target.value * 100), request)


def _is_unnamed_demand(target: Target) -> bool:
    """Whether a target reads our demand under a name that does not say of which signal."""
    return own_metric(target.metric) == OwnMetric(DEMAND_METRIC) and not target.signal


def _ambiguous(target: Target, resolved: PodTarget | Unusable) -> PodTarget | Unusable:
    """A target, not to be computed where it is one of several on our demand: their selectors are not known here."""
    return Unusable(target.metric, SEVERAL_DEMANDS) if _is_unnamed_demand(target) else resolved


def _is_count(metric: str) -> bool:
    own = own_metric(metric)
    return own is not None and own.metric in COUNTS


def _signal(target: Target, policy: HorizontalPolicy) -> Signal | None:
    """The signal that a target of an HPA means; None where it is not measured."""
    own, signals = own_metric(target.metric), policy.signals
    if own is not None:
        return signals.by_name.get(own.signal or target.signal or policy.demand_signal)
    return REQUESTS if target.metric == policy.requests_metric else signals.by_metric.get(target.metric)


def _of_policy(resources: Resources, policy: HorizontalPolicy) -> list[PodTarget]:
    targets: list[PodTarget] = []
    if resources.cpu_request:
        targets.append(_utilization(CPU, round(policy.cpu_utilization * 100), resources.cpu_request))
    if policy.requests_per_pod is not None:
        targets.append(_amount(REQUESTS, policy.requests_per_pod))
    amounts = {name: TARGET_SHARE * full.amount for name, full in policy.filled.items() if name not in BUILT_IN.by_name}
    amounts |= {stated.signal: stated.amount for stated in policy.pod_amounts}
    named = ((policy.signals.by_name.get(name), each) for name, each in amounts.items())
    return [*targets, *(_amount(signal, each) for signal, each in named if signal is not None)]


@lru_cache(maxsize=MAX_CACHED_TARGETS)
def _utilization(signal: Signal, percent: int, request: float) -> UtilizationTarget:
    return UtilizationTarget(signal, percent, request)


@lru_cache(maxsize=MAX_CACHED_TARGETS)
def _amount(signal: Signal, amount: float) -> AmountTarget:
    return AmountTarget(signal, amount)


@lru_cache(maxsize=MAX_CACHED_TARGETS)
def _full_at(target: PodTarget, full: PodCapacity) -> PodTarget:
    return replace(target, full=full)
