"""What the API server refuses in an HPA (HPA rules §12).

Works on `spec` in its wire form, defaults already filled in, of the right shape (see `shape`). Faults come in the API
server's order, every one of them.
"""

from collections.abc import Mapping
from typing import Any

from forecaster.domain.quantity import parse_quantity
from forecaster.hpa.faults import Fault, Faults, forbidden, invalid, not_supported, required
from forecaster.hpa.validate_metrics import metric_faults, reference_faults

Wire = Mapping[str, Any]

LONGEST_PERIOD_S = 1800
LONGEST_WINDOW_S = 3600
POLICY_TYPES = ("Percent", "Pods")
SELECT_POLICIES = ("Disabled", "Max", "Min")


def validate(spec: Wire, *, scale_to_zero: bool = False, target_unchanged: bool = False) -> tuple[Fault, ...]:
    """HPA rules §12: every fault of a spec; none means that the API server takes it.

    `scale_to_zero` is the gate, or a stored object that already had `minReplicas: 0`. `target_unchanged` marks an
    update that leaves the target's kind and version alone; they are not checked again then.
    """
    return (
        *_replica_faults(spec, least=0 if scale_to_zero else 1),
        *_target_faults(spec.get("scaleTargetRef") or {}, target_unchanged=target_unchanged),
        *_metrics_faults(spec),
        *_behavior_faults(spec.get("behavior")),
    )


def _replica_faults(spec: Wire, least: int) -> Faults:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < least:
        yield invalid("spec.minReplicas", low, f"must be greater than or equal to {least}")
    if high < 1:
        yield invalid("spec.maxReplicas", high, "must be greater than 0")
    if low is not None and high < low:
        yield invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")


def _target_faults(target: Wire, *, target_unchanged: bool) -> Faults:
    for fault in reference_faults("spec.scaleTargetRef", target, needs_group=True):
        if not (target_unchanged and fault.path.endswith((".kind", ".apiVersion"))):
            yield fault


def _metrics_faults(spec: Wire) -> Faults:
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        yield from metric_faults(f"spec.metrics[{index}]", metric)
    from_outside = any(metric.get("type") in {"Object", "External"} for metric in metrics)
    if spec.get("minReplicas") == 0 and not from_outside:
        yield forbidden(
            "spec.metrics", "must specify at least one Object or External metric to support scaling to zero replicas"
        )


def _behavior_faults(behavior: Wire | None) -> Faults:
    for direction in ("scaleUp", "scaleDown"):
        rules = (behavior or {}).get(direction)
        if rules is not None:
            yield from _rules_faults(f"spec.behavior.{direction}", rules)


def _rules_faults(path: str, rules: Wire) -> Faults:
    window, selected, policies = (
        rules.get("stabilizationWindowSeconds"),
        rules.get("selectPolicy"),
        rules.get("policies") or [],
    )
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


def _policy_faults(path: str, policy: Wire) -> Faults:
    type_, value, period = policy.get("type") or "", policy.get("value") or 0, policy.get("periodSeconds") or 0
    if type_ not in POLICY_TYPES:
        yield not_supported(f"{path}.type", type_, POLICY_TYPES)
    if value <= 0:
        yield invalid(f"{path}.value", value, "must be greater than zero")
    if period <= 0:
        yield invalid(f"{path}.periodSeconds", period, "must be greater than zero")
    if period > LONGEST_PERIOD_S:
        yield invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {LONGEST_PERIOD_S}")
