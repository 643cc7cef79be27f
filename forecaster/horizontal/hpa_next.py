"""The next action of the workload's own HPA at its next sync, by the exact rules, from the metrics that it reads.

Its inputs are measured demand, and for metrics of forecaster the offered values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forecaster.domain.amounts import listed
from forecaster.domain.decision import Reason
from forecaster.domain.published import own_metric
from forecaster.domain.workload import NO_RESOURCES, Autoscaler, Resources, Target, TargetType, Workload
from forecaster.hpa.cautions import counts_out_of_reach
from forecaster.hpa.explain import explain
from forecaster.hpa.numbers import milli
from forecaster.hpa.observation import observe_totals
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.spec import SHIPPED, CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec, tolerance_of
from forecaster.hpa.state import HpaState

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation
    from forecaster.hpa.behavior import Behavior

UNSEEN = HpaState(history=())
"""HPA without history: its last recommendations are known to the controller alone, so none is assumed."""
UNSEEN_HISTORY = "its own recommendations within its scale-down window are not known here: they may hold the count"
RESOURCES = ("cpu", "memory")
ASSUMED_BEHAVIOR = "behavior: the default is assumed; what the HPA states is not known here"


def next_sync(
    workload: Workload,
    recommendation: Recommendation,
    offered: Mapping[str, float],
    mode: str,
    least: int | None = None,
    behavior: Behavior | None = None,
    scalers: Sequence[str] = (),
) -> list[str]:
    """Return sentences; empty for a workload without an HPA.

    The HPA reads its metrics itself, so if one of them is not measured here its action is not known. `offered` are our
    values that it reads, by its own names for them, in this mode of the policy. `scalers` are the HPAs that scale the
    workload now, `least` the minimum of the only one, with our floor, and `behavior` what it states; without a minimum
    neither is known.
    """
    if len(scalers) > 1:
        return [f"HPAs {listed(scalers)} all scale it: Kubernetes follows none of them until only one does."]
    hpa = workload.autoscaler
    if hpa is None or not hpa.targets:
        return []
    return [*_unread(hpa, recommendation, mode), *_next(workload, hpa, recommendation, offered, least, behavior)]


def _unread(hpa: Autoscaler, recommendation: Recommendation, mode: str) -> list[str]:
    """Say why the HPA cannot know the recommendation and so will not follow it; in mode floor its minimum does."""
    follows = mode == "floor" or any(own_metric(target.metric) for target in hpa.targets)
    if follows or recommendation.replicas.reason is not Reason.FORECAST:
        return []
    alone = f"HPA {hpa.name} reads no metric of ours and goes by measured demand alone"
    return [f"This is a recommendation: {alone}; docs/integrate.md lets it read the forecast."]


def _next(
    workload: Workload,
    hpa: Autoscaler,
    recommendation: Recommendation,
    offered: Mapping[str, float],
    least: int | None,
    behavior: Behavior | None,
) -> list[str]:
    totals, lost = _totals(hpa, recommendation, offered), _lost(hpa, recommendation, behavior)
    views = zip(hpa.targets, recommendation.signals, strict=False)  # a hold of the whole cycle lists none
    partly = [target.metric for target, view in views if view.partly and not own_metric(target.metric)]
    unread = [target.metric for target in hpa.targets if target.metric not in totals]
    unknown = [f"{metric} is not {'offered' if own_metric(metric) else 'measured here'}" for metric in unread]
    unknown += [f"{metric} is measured in part" for metric in partly]
    names = Counter(target.metric for target in hpa.targets)
    unknown += [f"{name} is read {count} times" for name, count in names.items() if count > 1 and own_metric(name)]
    if unknown:
        return [f"What HPA {hpa.name} does next is not known: {', '.join(unknown)}.", *lost]
    containers = {target.container for target in hpa.targets if target.metric in RESOURCES}
    if len(containers) > 1:
        mixed = " and ".join(f"container {name}" if name else "the pod" for name in sorted(containers))
        return [f"What HPA {hpa.name} does next is not known: it reads {mixed}.", *lost]
    stated = _stated(workload, containers.pop() if containers else "")
    bounded = hpa.min_replicas if least is None else least
    spec = replace(_spec(workload, hpa), min_replicas=bounded, behavior=behavior)
    requests, at = _requests(stated), recommendation.at
    look = observe_totals(spec, workload.replicas, totals, requests, at, ready=workload.ready_replicas)
    reconciled = reconcile(spec, look, UNSEEN, at)
    next_step, desired = explain(spec, look, UNSEEN, reconciled, at), reconciled.desired
    assumed = [ASSUMED_BEHAVIOR] if least is None else []
    falls = [UNSEEN_HISTORY] if desired.written and desired.replicas < workload.replicas else []
    return [next_step.summary, *next_step.steps, *assumed, *falls, *lost]


def _spec(workload: Workload, hpa: Autoscaler) -> HpaSpec:
    return HpaSpec(
        scale_target=CrossVersionObjectReference(workload.id.kind, workload.id.name, "apps/v1"),
        max_replicas=hpa.max_replicas,
        metrics=tuple(_metric_spec(target) for target in hpa.targets),
        name=hpa.name,
        namespace=workload.id.namespace,
    )


def _metric_spec(target: Target) -> MetricSpec:
    """kube-state-metrics does not distinguish Pods from External metrics; both divide a total by the pods."""
    source = "External" if target.metric not in RESOURCES else "ContainerResource" if target.container else "Resource"
    return MetricSpec(source, target.metric, _metric_target(target), target.container)


def _metric_target(target: Target) -> HpaMetricTarget:
    if target.type is TargetType.UTILIZATION:
        return HpaMetricTarget("Utilization", average_utilization_percent=round(target.value * 100))
    if target.type is TargetType.VALUE:
        return HpaMetricTarget("Value", value_milli=milli(target.value))
    return HpaMetricTarget("AverageValue", average_value_milli=milli(target.value))


def _stated(workload: Workload, container: str) -> Resources:
    """Requests and limits of a pod, or of one of its containers."""
    named = {container.name: container.resources for container in workload.containers}
    return named.get(container, NO_RESOURCES) if container else workload.resources


def _totals(hpa: Autoscaler, recommendation: Recommendation, offered: Mapping[str, float]) -> dict[str, int]:
    """Return the totals that the HPA reads, by its metric names, in milli-units, in the order of its targets."""
    views = zip(hpa.targets, recommendation.signals, strict=False)  # a hold of the whole cycle lists none
    readings = {target.metric: view.measured for target, view in views if not own_metric(target.metric)}
    readings |= {target.metric: offered.get(target.metric) for target in hpa.targets if own_metric(target.metric)}
    return {metric: milli(value) for metric, value in readings.items() if value is not None}


def _lost(hpa: Autoscaler, recommendation: Recommendation, behavior: Behavior | None) -> list[str]:
    """A count that no value can lead to: the tolerance holds for the metrics that are read from here, too."""
    now, desired = recommendation.replicas_now, recommendation.recommended_replicas
    reads = [target.metric for target in hpa.targets if own_metric(target.metric)]
    if not reads or desired == now or desired not in counts_out_of_reach(now, tolerance_of(behavior, SHIPPED)):
        return []
    stuck = f"HPA {hpa.name} keeps {now} replicas where {desired} are wanted, whatever {reads[0]} says"
    remedy = "Set behavior.scaleUp.tolerance and scaleDown.tolerance lower where the cluster has it."
    which = "the default tolerance of 10 %" if behavior is None else "its tolerance"
    return [f"{stuck}: that is within {which}. {remedy}"]


def _requests(resources: Resources) -> dict[str, int]:
    stated = {"cpu": resources.cpu_request, "memory": resources.memory_request}
    return {resource: milli(amount) for resource, amount in stated.items() if amount}
