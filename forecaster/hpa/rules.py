"""`spec.behavior` as the controller sees it, defaults filled in (HPA rules §11, §12)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

PolicyType = Literal["Pods", "Percent"]
SelectPolicy = Literal["Max", "Min", "Disabled"]


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most this change within one period: `value` pods, or `value` percent of the size at its beginning."""

    type: PolicyType
    value: int
    period: timedelta


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """One direction of `spec.behavior`.

    `stabilization_window` None means the controller's flag; `tolerance` None means the controller's tolerance (a
    ratio).
    """

    policies: tuple[ScalingPolicy, ...]
    stabilization_window: timedelta | None = None
    select_policy: SelectPolicy = "Max"
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Behavior:
    """Both directions; a manifest that names one gets the defaults of the other."""

    scale_up: ScalingRules
    scale_down: ScalingRules
