"""An HPA manifest, as written, to the spec the controller would see (HPA rules §12, §13).

`read_manifest` does what the API server does on create: convert, decode, fill in defaults, validate. It works on plain
mappings; reading YAML is the caller's.

v1 knows one number, `targetCPUUtilizationPercentage`. Everything else travels as JSON in annotations: other metrics in
the fields of v1, `behavior` with its tolerances under capital letters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from forecaster.domain.quantity import parse_quantity
from forecaster.hpa.behavior import Behavior, ScalingPolicy, ScalingRules
from forecaster.hpa.faults import METADATA, SPEC, SPEC_V1, FieldFault, invalid, not_supported, required, shape_faults
from forecaster.hpa.selectors import selector_text
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec
from forecaster.hpa.validate import validate

Wire = Mapping[str, Any]

KIND = "HorizontalPodAutoscaler"
VERSIONS = ("autoscaling/v1", "autoscaling/v2")


@dataclass(frozen=True, slots=True)
class RefusedManifest:
    """The API server would not take this manifest, and every reason."""

    faults: tuple[FieldFault, ...]

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


def read_manifest(manifest: Any, *, scale_to_zero: bool = False) -> HpaSpec | RefusedManifest:
    """HPA rules §12, §13: the spec of an autoscaling/v1 or v2 manifest, or everything that is wrong with it."""
    faults = tuple(_envelope_faults(manifest))
    if faults:
        return RefusedManifest(faults)
    metadata = manifest.get("metadata") or {}
    spec, faults = _decoded(manifest, metadata)
    if faults:
        return RefusedManifest(faults)
    filled = fill_in(spec)
    faults = validate(filled, scale_to_zero=scale_to_zero)
    if faults:
        return RefusedManifest(faults)
    return spec_from_wire(filled, metadata.get("name") or "", metadata.get("namespace") or "")


def fill_in(spec: Wire) -> dict[str, Any]:
    """HPA rules §12: the defaults of the API server, in wire form."""
    filled = {key: value for key, value in spec.items() if value is not None}
    filled.setdefault("minReplicas", MIN_REPLICAS)
    if not filled.get("metrics"):
        filled["metrics"] = [cpu_metric()]
    if "behavior" in filled:
        behavior = filled["behavior"]
        filled["behavior"] = {
            "scaleUp": filled_rules(behavior.get("scaleUp"), SCALE_UP),
            "scaleDown": filled_rules(behavior.get("scaleDown"), SCALE_DOWN),
        }
    return filled


def spec_from_wire(spec: Wire, name: str = "", namespace: str = "") -> HpaSpec:
    """The typed spec of a valid wire spec."""
    return HpaSpec(
        scale_target=_reference(spec.get("scaleTargetRef") or {}),
        max_replicas=spec["maxReplicas"],
        metrics=tuple(_metric(metric) for metric in spec.get("metrics") or ()),
        min_replicas=spec.get("minReplicas"),
        behavior=behavior_of(spec.get("behavior")),
        name=name,
        namespace=namespace,
    )


def _envelope_faults(manifest: Any) -> list[FieldFault]:
    if not isinstance(manifest, Mapping):
        return [invalid("", type(manifest).__name__, "a manifest is a mapping with apiVersion, kind, metadata, spec")]
    faults = []
    if manifest.get("kind") != KIND:
        faults.append(not_supported("kind", manifest.get("kind"), (KIND,)))
    if manifest.get("apiVersion") not in VERSIONS:
        faults.append(not_supported("apiVersion", manifest.get("apiVersion"), VERSIONS))
    if not isinstance(manifest.get("spec"), Mapping):
        faults.append(required("spec"))
    return [*faults, *shape_faults("metadata", manifest.get("metadata"), METADATA)]


def _decoded(manifest: Wire, metadata: Wire) -> tuple[Wire, tuple[FieldFault, ...]]:
    """The spec in v2 fields, and what is wrong with its shape."""
    spec = manifest["spec"]
    if manifest["apiVersion"] == "autoscaling/v2":
        return spec, tuple(shape_faults("spec", spec, SPEC))
    faults = list(shape_faults("spec", spec, SPEC_V1))
    converted, annotation_faults = spec_from_v1(spec, metadata.get("annotations") or {})
    return converted, (*faults, *annotation_faults, *(shape_faults("spec", converted, SPEC) if not faults else ()))


def _reference(reference: Wire) -> CrossVersionObjectReference:
    return CrossVersionObjectReference(
        reference.get("kind") or "", reference.get("name") or "", reference.get("apiVersion") or ""
    )


def _metric(metric: Wire) -> MetricSpec:
    source = metric["type"]
    block = metric[source[0].lower() + source[1:]]
    identifier, described = block.get("metric") or {}, block.get("describedObject")
    return MetricSpec(
        source=source,
        name=block.get("name") or identifier.get("name") or "",
        target=_target(block.get("target") or {}),
        container=block.get("container") or "",
        described_object=None if described is None else _reference(described),
        selector=selector_text(identifier.get("selector") or {}),
    )


def _target(target: Wire) -> HpaMetricTarget:
    return HpaMetricTarget(
        target.get("type") or "",
        target.get("averageUtilization"),
        _milli(target, "averageValue"),
        _milli(target, "value"),
    )


def _milli(fields: Wire, key: str) -> int | None:
    return None if fields.get(key) is None else parse_quantity(str(fields[key])).milli


def behavior_of(behavior: Wire | None) -> Behavior | None:
    """HPA rules §12: a `behavior` that is present, even empty, has both directions filled in."""
    if behavior is None:
        return None
    return Behavior(rules_of(behavior.get("scaleUp"), SCALE_UP), rules_of(behavior.get("scaleDown"), SCALE_DOWN))


def rules_of(rules: Wire | None, default: Wire) -> ScalingRules:
    """One direction of `behavior`, filled in."""
    filled = filled_rules(rules, default)
    window, tolerance = filled.get("stabilizationWindowSeconds"), filled.get("tolerance")
    return ScalingRules(
        policies=tuple(_policy(policy) for policy in filled["policies"]),
        stabilization_window=None if window is None else timedelta(seconds=window),
        select_policy=filled["selectPolicy"],
        tolerance=None if tolerance is None else parse_quantity(str(tolerance)).as_float(),
    )


def _policy(policy: Wire) -> ScalingPolicy:
    return ScalingPolicy(policy["type"], policy["value"], timedelta(seconds=policy["periodSeconds"]))


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
    metrics = [_metric_of_v1(metric) if isinstance(metric, Mapping) else metric for metric in others or []]
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


def _metric_of_v1(metric: Wire) -> dict[str, Any]:
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
