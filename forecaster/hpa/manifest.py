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
from forecaster.hpa.convert import MIN_REPLICAS, SCALE_DOWN, SCALE_UP, cpu_metric, filled_rules, spec_from_v1
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
