"""Objects as the API server stores them: defaults filled in, autoscaling/v1 turned into v2 (HPA rules §12, §13).

v1 knows one number, `targetCPUUtilizationPercentage`. Everything else travels as JSON in annotations: other metrics in
the fields of v1, `behavior` with its tolerances under capital letters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from forecaster.hpa.faults import FieldFault, invalid

Wire = Mapping[str, Any]

METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR_ANNOTATION = "autoscaling.alpha.kubernetes.io/behavior"
DEFAULT_CPU_PERCENT = 80


def spec_from_v1(spec: Wire, annotations: Mapping[str, str]) -> tuple[dict[str, Any], list[FieldFault]]:
    """HPA rules §13: the v2 spec of a v1 object, and the annotations that are not JSON of their form.

    The cpu target comes last; 80 percent stands in where there is no metric at all. A behavior of no direction is none.
    """
    others, metric_faults = _decode(annotations, METRICS_ANNOTATION, list)
    behavior, behavior_faults = _decode(annotations, BEHAVIOR_ANNOTATION, dict, _lowered)
    percent = spec.get("targetCPUUtilizationPercentage")
    metrics = [_metric(metric) if isinstance(metric, Mapping) else metric for metric in others or []]
    metrics += [cpu_metric(percent)] if percent is not None else []
    converted = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    converted["metrics"] = metrics or [cpu_metric()]
    if _present(behavior or {}):
        converted["behavior"] = behavior
    return converted, [*metric_faults, *behavior_faults]


def _decode(
    annotations: Mapping[str, str], key: str, form: type, mapping: Callable[[dict[str, Any]], Wire] = dict
) -> tuple[Any, list[FieldFault]]:
    text = annotations.get(key)
    if text is None:
        return None, []
    path = f"metadata.annotations[{key}]"
    try:
        value = json.loads(text, object_hook=mapping)
    except (ValueError, RecursionError) as error:
        return None, [invalid(path, text[:80], f"not JSON: {error}")]
    if isinstance(value, form):
        return value, []
    return None, [invalid(path, text[:80], f"must be a JSON {form.__name__}")]


def cpu_metric(percent: int = DEFAULT_CPU_PERCENT) -> dict[str, Any]:
    """Return a metric of CPU utilization; without a percentage the API's default where an HPA has no metric."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _metric(metric: Wire) -> dict[str, Any]:
    """One metric in the fields of v1; what v2 does not know is kept, so that the shape check names it."""
    converted: dict[str, Any] = {"type": metric.get("type")}
    for block, convert in _BLOCKS.items():
        if isinstance(metric.get(block), Mapping):
            converted[block] = convert(metric[block])
    unknown = {key: value for key, value in metric.items() if key != "type" and key not in _BLOCKS}
    return converted | unknown


def _object(source: Wire) -> dict[str, Any]:
    per_pod = source.get("averageValue")
    if per_pod is None:
        target = {"type": "Value", "value": source.get("targetValue")}
    else:
        target = {"type": "AverageValue", "averageValue": per_pod}
    return {"describedObject": source.get("target"), "metric": _identifier(source, "selector"), "target": target}


def _external(source: Wire) -> dict[str, Any]:
    total, per_pod = source.get("targetValue"), source.get("targetAverageValue")
    target = {"type": "AverageValue" if total is None else "Value", "value": total, "averageValue": per_pod}
    return {"metric": _identifier(source, "metricSelector"), "target": _present(target)}


def _pods(source: Wire) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": source.get("targetAverageValue")}
    return {"metric": _identifier(source, "selector"), "target": target}


def _resource(source: Wire) -> dict[str, Any]:
    return {"name": source.get("name"), "target": _usage_target(source)}


def _container_resource(source: Wire) -> dict[str, Any]:
    return {"name": source.get("name"), "container": source.get("container"), "target": _usage_target(source)}


def _usage_target(source: Wire) -> dict[str, Any]:
    percent, average = source.get("targetAverageUtilization"), source.get("targetAverageValue")
    type_ = "AverageValue" if percent is None else "Utilization"
    return _present({"type": type_, "averageUtilization": percent, "averageValue": average})


def _identifier(source: Wire, selector: str) -> dict[str, Any]:
    return _present({"name": source.get("metricName"), "selector": source.get(selector)})


def _present(fields: Wire) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _lowered(fields: Wire) -> Wire:
    """Return a mapping with keys that have a small first letter: `ScaleUp` is `scaleUp`."""
    return {key[:1].lower() + key[1:]: value for key, value in fields.items()}


_BLOCKS = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


MIN_REPLICAS = 1
SCALE_UP: Wire = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
SCALE_DOWN: Wire = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def filled_rules(rules: Wire | None, default: Wire) -> Wire:
    """HPA rules §12: one direction of `behavior`, field by field; a list of policies replaces the default one whole."""
    return {**default, **_present(rules or {})}
