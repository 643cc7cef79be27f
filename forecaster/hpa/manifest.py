"""An HPA manifest, as written, to the spec the controller would see (HPA rules §12, §13).

`read_manifest` does what the API server does on create: convert, decode, fill in defaults, validate. It works on plain
mappings; reading YAML is the caller's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from forecaster.domain.quantity import parse_quantity
from forecaster.hpa.behavior import Behavior, ScalingPolicy, ScalingRules
from forecaster.hpa.convert import (
    DEFAULT_METRICS,
    MIN_REPLICAS,
    SCALE_DOWN,
    SCALE_UP,
    GivenRules,
    fill_behavior,
    spec_from_v1,
)
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
        filled["metrics"] = [_default_metric(metric) for metric in DEFAULT_METRICS]
    if "behavior" in filled:
        behavior = filled["behavior"]
        filled["behavior"] = {
            "scaleUp": _fill_rules(behavior.get("scaleUp") or {}, SCALE_UP),
            "scaleDown": _fill_rules(behavior.get("scaleDown") or {}, SCALE_DOWN),
        }
    return filled


def spec_from_wire(spec: Wire, name: str = "", namespace: str = "") -> HpaSpec:
    """The typed spec of a valid wire spec."""
    return HpaSpec(
        scale_target=_reference(spec.get("scaleTargetRef") or {}),
        max_replicas=spec["maxReplicas"],
        metrics=tuple(_metric(metric) for metric in spec.get("metrics") or ()),
        min_replicas=spec.get("minReplicas"),
        behavior=_behavior(spec.get("behavior")),
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


def _default_metric(metric: MetricSpec) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": metric.target.average_utilization_percent}
    return {"type": metric.source, "resource": {"name": metric.name, "target": target}}


def _fill_rules(rules: Wire, default: ScalingRules) -> dict[str, Any]:
    filled = {key: value for key, value in rules.items() if value is not None}
    filled.setdefault("selectPolicy", default.select_policy)
    filled.setdefault("policies", [_policy_wire(policy) for policy in default.policies])
    if default.stabilization_window is not None:
        filled.setdefault("stabilizationWindowSeconds", int(default.stabilization_window.total_seconds()))
    return filled


def _policy_wire(policy: ScalingPolicy) -> dict[str, Any]:
    return {"type": policy.type, "value": policy.value, "periodSeconds": int(policy.period.total_seconds())}


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


def _behavior(behavior: Wire | None) -> Behavior | None:
    if behavior is None:
        return None
    return fill_behavior(scale_up=_given(behavior.get("scaleUp")), scale_down=_given(behavior.get("scaleDown")))


def _given(rules: Wire | None) -> GivenRules | None:
    if rules is None:
        return None
    window, policies, tolerance = rules.get("stabilizationWindowSeconds"), rules.get("policies"), rules.get("tolerance")
    return GivenRules(
        stabilization_window=None if window is None else timedelta(seconds=window),
        select_policy=rules.get("selectPolicy"),
        policies=None if policies is None else tuple(_policy(policy) for policy in policies),
        tolerance=None if tolerance is None else parse_quantity(str(tolerance)).as_float(),
    )


def _policy(policy: Wire) -> ScalingPolicy:
    return ScalingPolicy(policy["type"], policy["value"], timedelta(seconds=policy["periodSeconds"]))
