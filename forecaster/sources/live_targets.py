"""Targets of an HPA, read from the object itself: metrics, and the signals that selectors name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from forecaster.domain.published import DEMAND_METRIC, OwnMetric, own_metric
from forecaster.domain.workload import LONGEST_NAME, Target, TargetType, WorkloadId
from forecaster.hpa.selectors import SELECTOR_MAX, SelectorError, parse_selector

if TYPE_CHECKING:
    from forecaster.hpa.spec import HpaSpec, MetricSpec

MAX_TARGETS = 32
"""Metrics of an HPA that are read: each takes 50 bytes in every row of the fleet, and an owner can write thousands."""


def bounded_name(text: str) -> str:
    """Return a name, or the beginning of one that no object has."""
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def read_in_part(hpa: str, metrics: int) -> str:
    """Return the sentence about an HPA with more metrics than are read."""
    return f"HPA {hpa}: of its {metrics} metrics the first {MAX_TARGETS} by name are read"


def targets_of_hpa(spec: HpaSpec, id_: WorkloadId) -> tuple[Target, ...]:
    """The targets of an HPA, at most `MAX_TARGETS`, in the order of the inventory: by metric and type.

    A target on one of our metrics has the signal that its selector names. One that reads our number of another
    workload is a metric like any other; its selector is a part of its name.
    """
    targets = [target for metric in spec.metrics if (target := _target(metric, id_))]
    return tuple(sorted(targets, key=attrgetter("metric", "type", "container", "signal"))[:MAX_TARGETS])


def _target(metric: MetricSpec, id_: WorkloadId) -> Target | None:
    """HPA rules §4: of several amounts the one that the controller reads; the API server admits others beside it."""
    name, signal = _named(metric, id_)
    stated, container = metric.target, bounded_name(metric.container)
    by_type = stated.type if metric.source == "Object" else ""
    if stated.average_value_milli is not None and by_type in {"", "AverageValue"}:
        return Target(name, TargetType.AVERAGE_VALUE, stated.average_value_milli / 1000, container, signal)
    if stated.average_utilization_percent is not None and metric.source in {"Resource", "ContainerResource"}:
        return Target(name, TargetType.UTILIZATION, stated.average_utilization_percent / 100, container, signal)
    if stated.value_milli is not None and (metric.source == "External" or by_type == "Value"):
        return Target(name, TargetType.VALUE, stated.value_milli / 1000, container, signal)
    return None


def _named(metric: MetricSpec, id_: WorkloadId) -> tuple[str, str]:
    """The name of a metric, and of our demand the signal that its selector names."""
    name = bounded_name(metric.name)
    own = own_metric(name)
    if own is None or own.metric != name:  # KEDA's names say the signal; its selectors are about itself
        return name, ""
    try:
        requirements = parse_selector(metric.selector).requirements if len(metric.selector) <= SELECTOR_MAX else ()
    except SelectorError:
        requirements = ()
    labels = {"namespace": id_.namespace, "kind": id_.kind, "workload": id_.name}
    signals = [requirement for requirement in requirements if requirement.key == "signal"]
    others = [requirement for requirement in requirements if requirement.key != "signal"]
    described = metric.described_object
    elsewhere = described is not None and (described.kind, described.name) != (id_.kind, id_.name)
    if elsewhere or not all(requirement.matches(labels) for requirement in others):
        return f"{name}{{{bounded_name(metric.selector)}}}", ""
    named = [requirement.values for requirement in signals if requirement.operator == "in"]
    return name, next(iter(named[0])) if name == DEMAND_METRIC and named and len(named[0]) == 1 else ""


def misread(targets: Sequence[Target], signals: Collection[str]) -> str:
    """Say why the HPA's targets on our demand metric have no answer, and the remedy; empty where they have one."""
    demands = [target for target in targets if own_metric(target.metric) == OwnMetric(DEMAND_METRIC)]
    unknown = [target.signal for target in demands if target.signal and target.signal not in signals]
    named = Counter(target.signal for target in demands)
    if unknown:
        return f"its selector names signal {unknown[0]}, which is not measured; there are {', '.join(sorted(signals))}"
    if (named and max(named.values()) > 1) or (len(named) > 1 and "" in named):
        return (
            f"{len(demands)} targets of {DEMAND_METRIC} of which a selector names no signal, or the same; "
            "name one in each"
        )
    return ""
