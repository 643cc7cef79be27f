"""An HPA manifest as the replay needs it: its targets as the workload states them, and its behavior."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.workload import Autoscaler, Target, TargetType

if TYPE_CHECKING:
    from forecaster.hpa.spec import HpaSpec, MetricSpec


def autoscaler_of(spec: HpaSpec) -> Autoscaler:
    """The autoscaler that this spec describes; a metric that is not read by pod and resource keeps its own name."""
    bounds = spec.bounds
    targets = tuple(target for metric in spec.metrics if (target := _target(metric)))
    return Autoscaler(spec.name or "hpa", bounds.min_replicas, bounds.max_replicas, targets)


def _target(metric: MetricSpec) -> Target | None:
    """A container's metric is not what is recorded of its pod: it gets a name that nothing answers to."""
    name = f"{metric.container}/{metric.name}" if metric.source == "ContainerResource" else metric.name
    stated = metric.target
    if stated.average_utilization_percent is not None:
        return Target(name, TargetType.UTILIZATION, stated.average_utilization_percent / 100)
    if stated.average_value_milli is not None:
        return Target(name, TargetType.AVERAGE_VALUE, stated.average_value_milli / 1000)
    if stated.value_milli is not None:
        return Target(name, TargetType.VALUE, stated.value_milli / 1000)
    return None
