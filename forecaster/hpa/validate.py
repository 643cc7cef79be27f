"""Refusals of an HPA by the API server (HPA rules §12).

Works on `spec` in its wire form, defaults already filled in, of the right shape (see `shape`). All faults are returned,
in the API server's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from forecaster.domain.quantity import parse_quantity
from forecaster.hpa.faults import (
    FieldFault,
    FieldFaults,
    dns_label_faults,
    forbidden,
    invalid,
    not_supported,
    path_segment_faults,
    qualified_name_faults,
    required,
)

Wire = Mapping[str, Any]

LONGEST_PERIOD_S = 1800
LONGEST_WINDOW_S = 3600
POLICY_TYPES = ("Percent", "Pods")
SELECT_POLICIES = ("Disabled", "Max", "Min")


def validate(spec: Wire, *, scale_to_zero: bool = False) -> tuple[FieldFault, ...]:
    """HPA rules §12: every fault of a spec; none means that the API server takes it.

    `scale_to_zero` is the gate, or a stored object that already had `minReplicas: 0`.
    """
    return (
        *_replica_faults(spec, least=0 if scale_to_zero else 1),
        *reference_faults("spec.scaleTargetRef", spec.get("scaleTargetRef") or {}, needs_group=True),
        *_metrics_faults(spec),
        *_behavior_faults(spec.get("behavior")),
    )


def _replica_faults(spec: Wire, least: int) -> FieldFaults:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < least:
        yield invalid("spec.minReplicas", low, f"must be greater than or equal to {least}")
    if not high:
        yield required("spec.maxReplicas")
    elif high < 1:
        yield invalid("spec.maxReplicas", high, "must be greater than 0")
    if low is not None and high < low:
        yield invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")


def _metrics_faults(spec: Wire) -> FieldFaults:
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        yield from metric_faults(f"spec.metrics[{index}]", metric)
    from_outside = any(metric.get("type") in {"Object", "External"} for metric in metrics)
    if spec.get("minReplicas") == 0 and not from_outside:
        yield forbidden(
            "spec.metrics", "must specify at least one Object or External metric to support scaling to zero replicas"
        )


def _behavior_faults(behavior: Wire | None) -> FieldFaults:
    for direction in ("scaleUp", "scaleDown"):
        rules = (behavior or {}).get(direction)
        if rules is not None:
            yield from _rules_faults(f"spec.behavior.{direction}", rules)


def _rules_faults(path: str, rules: Wire) -> FieldFaults:
    window, selected = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    policies = rules.get("policies") or []
    if window is not None and window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > LONGEST_WINDOW_S:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {LONGEST_WINDOW_S}")
    if selected is not None and selected not in SELECT_POLICIES:
        yield not_supported(f"{path}.selectPolicy", selected, SELECT_POLICIES)
    if not policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _policy_faults(f"{path}.policies[{index}]", policy)
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse_quantity(str(tolerance)).sign < 0:
        yield invalid(f"{path}.tolerance", str(tolerance), "must be greater than or equal to 0")


def _policy_faults(path: str, policy: Wire) -> FieldFaults:
    type_, value, period = policy.get("type") or "", policy.get("value") or 0, policy.get("periodSeconds") or 0
    if type_ not in POLICY_TYPES:
        yield not_supported(f"{path}.type", type_, POLICY_TYPES)
    if value <= 0:
        yield invalid(f"{path}.value", value, "must be greater than zero")
    if period <= 0:
        yield invalid(f"{path}.periodSeconds", period, "must be greater than zero")
    if period > LONGEST_PERIOD_S:
        yield invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {LONGEST_PERIOD_S}")


MetricWire = Mapping[str, Any]

TARGET_TYPES = frozenset({"Utilization", "Value", "AverageValue"})
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = re.compile(
    r"(requests|limits)\.(cpu|memory|ephemeral-storage)|requests\.(storage|hugepages-.*)|services(\.nodeports|\."
    r"loadbalancers)?|pods|storage|secrets|configmaps|replicationcontrollers|resourcequotas|persistentvolumeclaims"
)
"""Resources that only a quota may name."""


def metric_faults(path: str, metric: MetricWire) -> FieldFaults:
    """HPA rules §12: exactly the block that belongs to `type` must be there, and must be right.

    Only the first block that is there is looked into, in the order of `_BLOCKS`.
    """
    type_ = metric.get("type") or ""
    if not type_:
        yield required(f"{path}.type", "must specify a metric source type")
    if type_ not in _TYPES:
        yield not_supported(f"{path}.type", type_, _TYPES)
    present = [block for block in _BLOCKS if metric.get(block) is not None]
    if present:
        yield from _BLOCKS[present[0]](f"{path}.{present[0]}", metric[present[0]])
    own = _TYPES.get(type_)
    if own is None:
        yield not_supported(f"{path}.type", type_, _TYPES)
    elif own not in present:
        yield required(f"{path}.{own}", "must populate information for the given metric source")
    if len(present) > 1:
        for block in present:
            if block != own:
                yield forbidden(f"{path}.{block}", "must populate the given metric source only")


def reference_faults(path: str, reference: MetricWire, *, needs_group: bool = False) -> FieldFaults:
    """HPA rules §12: kind and name are there and usable as one segment of a URL, the API version has one slash at most.

    With `needs_group` every kind but ReplicationController needs a group before that slash.
    """
    for key in ("kind", "name"):
        yield from _stated(f"{path}.{key}", reference.get(key), path_segment_faults)
    version = reference.get("apiVersion") or ""
    group, slash, _ = version.partition("/")
    if version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif needs_group and reference.get("kind") != "ReplicationController" and not (slash and group):
        yield invalid(f"{path}.apiVersion", version, "must specify API group")


def _object_faults(path: str, source: MetricWire) -> FieldFaults:
    described, target = source.get("describedObject") or {}, source.get("target") or {}
    yield from reference_faults(f"{path}.describedObject", described)
    yield from _identifier_faults(f"{path}.metric", source)
    yield from _metric_target_faults(f"{path}.target", target)
    if target.get("value") is None and target.get("averageValue") is None:
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external_faults(path: str, source: MetricWire) -> FieldFaults:
    target = source.get("target") or {}
    yield from _identifier_faults(f"{path}.metric", source)
    yield from _metric_target_faults(f"{path}.target", target)
    value, average = target.get("value"), target.get("averageValue")
    if value is None and average is None:
        yield required(f"{path}.target.averageValue", "must set either a target value for metric or a per-pod target")
    if value is not None and average is not None:
        yield forbidden(f"{path}.target.value", "may not set both a target value for metric and a per-pod target")


def _pods_faults(path: str, source: MetricWire) -> FieldFaults:
    target = source.get("target") or {}
    yield from _identifier_faults(f"{path}.metric", source)
    yield from _metric_target_faults(f"{path}.target", target)
    if target.get("averageValue") is None:
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource_faults(path: str, source: MetricWire) -> FieldFaults:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    yield from _usage_target_faults(f"{path}.target", source.get("target") or {})


def _container_resource_faults(path: str, source: MetricWire) -> FieldFaults:
    name = source.get("name")
    yield from _stated(f"{path}.name", name, _container_resource_name_faults, "must specify a resource name")
    yield from _stated(f"{path}.container", source.get("container"), dns_label_faults, "must specify a container")
    yield from _usage_target_faults(f"{path}.target", source.get("target") or {})


def _container_resource_name_faults(path: str, resource: str) -> FieldFaults:
    """A standard resource of containers, or a qualified name with a slash that a quota can track."""
    unqualified = [*qualified_name_faults(path, resource)]
    yield from unqualified
    if "/" in resource:
        untracked = resource.startswith("requests.") or any(qualified_name_faults(path, f"requests.{resource}"))
        if untracked and "kubernetes.io/" not in resource:
            yield invalid(path, resource, "doesn't follow extended resource name standard")
    elif resource not in _STANDARD and not resource.startswith("hugepages-"):
        if not unqualified and not _COUNTED.fullmatch(resource):
            yield invalid(path, resource, "must be a standard resource type or fully qualified")
        yield invalid(path, resource, "must be a standard resource for containers")


def _usage_target_faults(path: str, target: MetricWire) -> FieldFaults:
    """Targets of Resource and ContainerResource: exactly one of utilisation and average value."""
    yield from _metric_target_faults(path, target)
    percent, average = target.get("averageUtilization"), target.get("averageValue")
    if percent is None and average is None:
        yield required(f"{path}.averageUtilization", "must set either a target raw value or a target utilization")
    if percent is not None and average is not None:
        yield forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")


def _metric_target_faults(path: str, target: MetricWire) -> FieldFaults:
    """HPA rules §12: whatever is set must be positive; the type need not match it."""
    type_ = target.get("type") or ""
    if not type_:
        yield required(f"{path}.type", "must specify a metric target type")
    if type_ not in TARGET_TYPES:
        yield invalid(f"{path}.type", type_, "must be either Utilization, Value, or AverageValue")
    for key in ("value", "averageValue"):
        quantity = target.get(key)
        if quantity is not None and parse_quantity(str(quantity)).sign <= 0:
            yield invalid(f"{path}.{key}", str(quantity), "must be positive")
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        yield invalid(f"{path}.averageUtilization", percent, "must be greater than 0")


def _identifier_faults(path: str, source: MetricWire) -> FieldFaults:
    name = (source.get("metric") or {}).get("name")
    return _stated(f"{path}.name", name, path_segment_faults, "must specify a metric name")


def _stated(path: str, name: str | None, faults: Callable[[str, str], FieldFaults], why: str = "") -> FieldFaults:
    return faults(path, name) if name else iter([required(path, why)])


_BLOCKS: Mapping[str, Callable[[str, MetricWire], FieldFaults]] = {
    "object": _object_faults,
    "external": _external_faults,
    "pods": _pods_faults,
    "resource": _resource_faults,
    "containerResource": _container_resource_faults,
}
_TYPES: Mapping[str, str] = {block[0].upper() + block[1:]: block for block in _BLOCKS}
