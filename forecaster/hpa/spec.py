"""An autoscaling/v2 HPA as the controller sees it: validated, defaults filled in (HPA rules §4, §12)."""

from dataclasses import dataclass, field

from forecaster.hpa.limits import Bounds
from forecaster.hpa.rules import Behavior

OUTSIDE_SOURCES = frozenset({"Object", "External"})


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A named object of some API: the scale target, or what an Object metric describes."""

    kind: str
    name: str
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """What a metric should be: whole percent of the request, or integer milli-units.

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
    target: MetricTarget
    container: str = ""
    described_object: ObjectReference | None = None
    selector: str = ""


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """The spec; `min_replicas` None means 1, `behavior` None means the limits of §10."""

    scale_target: ObjectReference
    max_replicas: int
    metrics: tuple[MetricSpec, ...]
    min_replicas: int | None = None
    behavior: Behavior | None = None
    name: str = ""
    namespace: str = ""
    bounds: Bounds = field(init=False, repr=False, compare=False)
    has_outside_metric: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least = 1 if self.min_replicas is None else self.min_replicas
        object.__setattr__(self, "bounds", Bounds(least, self.max_replicas))
        object.__setattr__(self, "has_outside_metric", any(m.source in OUTSIDE_SOURCES for m in self.metrics))
