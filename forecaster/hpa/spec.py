"""An autoscaling/v2 HPA as the controller sees it, and the controller's own settings (HPA rules §4, §12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from forecaster.hpa.behavior import Behavior
from forecaster.hpa.limits import DOUBLING, DOWNSCALE_STABILIZATION, Growth, ReplicaBounds
from forecaster.hpa.proposals import Tolerance

OUTSIDE_SOURCES = frozenset({"Object", "External"})


@dataclass(frozen=True, slots=True)
class CrossVersionObjectReference:
    """A named object of some API: the scale target, or what an Object metric describes."""

    kind: str
    name: str
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class HpaMetricTarget:
    """Target of a metric: whole percent of the request, or integer milli-units.

    `type` is Utilization, Value or AverageValue as written; it need not match the field that is set.
    """

    type: str = ""
    average_utilization_percent: int | None = None
    average_value_milli: int | None = None
    value_milli: int | None = None


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One entry of `spec.metrics`.

    `source` is Resource, ContainerResource, Pods, Object or External. `name` is the resource (cpu, memory, ...) of the
    first two and the metric of the others; `container` belongs to ContainerResource, `described_object` to Object, and
    `selector`, the metric's own labels, to the last three.
    """

    source: str
    name: str
    target: HpaMetricTarget
    container: str = ""
    described_object: CrossVersionObjectReference | None = None
    selector: str = ""


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """The spec; `min_replicas` None means 1, `behavior` None means the limits of §10."""

    scale_target: CrossVersionObjectReference
    max_replicas: int
    metrics: tuple[MetricSpec, ...]
    min_replicas: int | None = None
    behavior: Behavior | None = None
    name: str = ""
    namespace: str = ""
    bounds: ReplicaBounds = field(init=False, repr=False, compare=False)
    has_outside_metric: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least = 1 if self.min_replicas is None else self.min_replicas
        object.__setattr__(self, "bounds", ReplicaBounds(least, self.max_replicas))
        object.__setattr__(self, "has_outside_metric", any(m.source in OUTSIDE_SOURCES for m in self.metrics))


TELLS_ZERO = 36
"""Minor version from which on condition ScaledToZero says whether the HPA itself scaled its target to zero."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Gates of Kubernetes 1.36 at their defaults."""

    scale_to_zero: bool = False
    configurable_tolerance: bool = True
    pod_level_resources: bool = True

    @classmethod
    def of(cls, minor: int) -> FeatureGates:
        """The defaults of Kubernetes 1.`minor`: each gate is on from one version on."""
        since = {"scale_to_zero": 37, "configurable_tolerance": 35, "pod_level_resources": 34}
        return cls(**{gate: minor >= first for gate, first in since.items()})


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller's settings, at the shipped defaults. `tolerance` is a ratio."""

    tolerance: float = 0.1
    downscale_stabilization: timedelta = DOWNSCALE_STABILIZATION
    cpu_initialization_period: timedelta = timedelta(minutes=5)
    initial_readiness_delay: timedelta = timedelta(seconds=30)
    sync_period: timedelta = timedelta(seconds=15)
    growth: Growth = DOUBLING
    gates: FeatureGates = FeatureGates()
    minor: int = 36
    """Minor version of Kubernetes whose wording is used."""

    @property
    def tells_zero(self) -> bool:
        """Whether condition ScaledToZero is kept (HPA rules §3, step 10)."""
        return self.gates.scale_to_zero and self.minor >= TELLS_ZERO


SHIPPED = Controller()


def tolerance_of(behavior: Behavior | None, controller: Controller) -> Tolerance:
    """HPA rules §8: each direction's own tolerance where set and the gate allows it, else the controller's flag."""
    up = down = controller.tolerance
    if behavior is not None and controller.gates.configurable_tolerance:
        up = up if behavior.scale_up.tolerance is None else behavior.scale_up.tolerance
        down = down if behavior.scale_down.tolerance is None else behavior.scale_down.tolerance
    return Tolerance(up, down)
