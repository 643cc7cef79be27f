"""What the API server fills in before the controller sees an object (HPA rules §12)."""

from dataclasses import dataclass
from datetime import timedelta

from forecaster.hpa.rules import Behavior, ScalingPolicy, ScalingRules, SelectPolicy
from forecaster.hpa.spec import MetricSpec, MetricTarget

_PERIOD = timedelta(seconds=15)

MIN_REPLICAS = 1
METRICS = (MetricSpec("Resource", "cpu", MetricTarget("Utilization", average_utilization_percent=80)),)
SCALE_UP = ScalingRules(
    policies=(ScalingPolicy("Pods", 4, _PERIOD), ScalingPolicy("Percent", 100, _PERIOD)),
    stabilization_window=timedelta(),
)
SCALE_DOWN = ScalingRules(policies=(ScalingPolicy("Percent", 100, _PERIOD),))


@dataclass(frozen=True, slots=True)
class GivenRules:
    """One direction as written; None where nothing is written. An empty list of policies is not nothing."""

    stabilization_window: timedelta | None = None
    select_policy: SelectPolicy | None = None
    policies: tuple[ScalingPolicy, ...] | None = None
    tolerance: float | None = None


def fill_behavior(*, scale_up: GivenRules | None = None, scale_down: GivenRules | None = None) -> Behavior:
    """HPA rules §12: a `behavior` that is present, even empty, has both directions filled field by field."""
    return Behavior(fill(scale_up, SCALE_UP), fill(scale_down, SCALE_DOWN))


def fill(given: GivenRules | None, default: ScalingRules) -> ScalingRules:
    """HPA rules §12: one direction; a list of policies replaces the default list whole."""
    if given is None:
        return default
    window, selected, policies = given.stabilization_window, given.select_policy, given.policies
    return ScalingRules(
        policies=default.policies if policies is None else policies,
        stabilization_window=default.stabilization_window if window is None else window,
        select_policy=default.select_policy if selected is None else selected,
        tolerance=given.tolerance,
    )
