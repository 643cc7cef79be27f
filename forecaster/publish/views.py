"""The public form of a recommendation: what `/api/v1` answers, field by field.

A number that is not known is null, and a text beside it says why; it is never 0. CPU is in cores, memory in bytes,
ratios 0-1, instants RFC 3339 in UTC.
"""

from __future__ import annotations

import math
from datetime import datetime

import msgspec

from forecaster.domain.decision import Clamp, Hold, Recommendation, Resize, Scale, SignalView, forecast_state
from forecaster.domain.signal import StepForecast
from forecaster.domain.workload import ContainerSize, Resources, Risk
from forecaster.publish.record import verdict_of


class ReplicasView(msgspec.Struct, frozen=True, gc=False):
    """The count: how many there are, how many there should be, and why."""

    now: int
    recommended: int | None
    verdict: str
    """keep, up or down; hold where no count is recommended."""
    reason: str
    message: str


AMOUNT_FIELDS = {
    "cpu_request": "cpu_request_cores",
    "cpu_limit": "cpu_limit_cores",
    "memory_request": "memory_request_bytes",
    "memory_limit": "memory_limit_bytes",
}
"""Amounts of `Resources` by their public names."""


class AmountsView(msgspec.Struct, frozen=True, gc=False, rename=AMOUNT_FIELDS):
    """Requests and limits of one pod, in cores and whole bytes; null where none is set."""

    cpu_request: float | None
    cpu_limit: float | None
    memory_request: int | None
    memory_limit: int | None


class RiskView(msgspec.Struct, frozen=True, gc=False):
    """Expected loss and waste of a size until the next change.

    Of CPU the shares of time above request and limit, of memory the chances that a peak exceeds them; core-hours or
    byte-hours that are requested and not used.
    """

    over_request: float | None
    over_limit: float | None
    slack_hours: float


class ContainerView(msgspec.Struct, frozen=True):
    """One container: its present size, its recommended size, and the risk; null where not known."""

    name: str
    now: AmountsView
    recommended: AmountsView
    cpu: RiskView | None
    memory: RiskView | None
    message: str


class ResourcesView(msgspec.Struct, frozen=True):
    """Requests and limits: the present ones, the recommended ones, and the reason.

    `containers` is empty while holding; it has one element without a name where the source reports pods and not
    containers.
    """

    now: AmountsView
    recommended: AmountsView | None
    verdict: str
    reason: str
    message: str
    containers: tuple[ContainerView, ...] = ()
    utilization_targets: dict[str, float] = {}
    """Ratios by resource, with which the HPA acts at the same load per pod as before; empty: they stay."""


class ForecastView(msgspec.Struct, frozen=True, gc=False):
    """Demand within the window that a scaling decision can still reach."""

    model: str
    quantile: float
    peak: float
    low: float
    median: float
    high: float
    begin: datetime
    until: datetime
    note: str


class SignalItem(msgspec.Struct, frozen=True):
    """One signal as the decision saw it, totals over all pods."""

    signal: str
    unit: str
    target: str
    measured: float | None
    measured_at: datetime | None
    reactive_replicas: int | None
    forecast: ForecastView | None
    forecast_replicas: int | None
    note: str


class QuantileView(msgspec.Struct, frozen=True, gc=False):
    """One quantile of a demand."""

    quantile: float
    value: float


class StepView(msgspec.Struct, frozen=True, gc=False):
    """The mean demand from `begin` to `until`."""

    begin: datetime
    until: datetime
    quantiles: tuple[QuantileView, ...]


class PathView(msgspec.Struct, frozen=True, gc=False):
    """The coming hour step by step. It is made every few cycles, so it has an age of its own."""

    made_at: datetime
    age_seconds: float
    model: str
    steps: tuple[StepView, ...]


class LeadTimeView(msgspec.Struct, frozen=True, gc=False):
    """Time from asking for a pod until it serves, and the origin of this duration."""

    seconds: float
    origin: str


class ForecastStateView(msgspec.Struct, frozen=True, gc=False):
    """State of the forecast: learning, observing, acting or held back, and why; empty where it acts."""

    state: str
    why: str


class RecommendationView(msgspec.Struct, frozen=True):
    """Decision about one workload, and its explanation."""

    namespace: str
    kind: str
    name: str
    at: datetime
    autoscaler: str | None
    replicas: ReplicasView
    resources: ResourcesView
    signals: tuple[SignalItem, ...]
    clamps: tuple[Clamp, ...]
    lead_time: LeadTimeView | None = None
    mode: str | None = None
    """Mode of its policy; null where no policy publishes it."""
    forecast: ForecastStateView | None = None


def recommendation_view(recommendation: Recommendation, mode: str | None = None) -> RecommendationView:
    """The public form of a decision about a workload with that mode."""
    now, decided, lead = recommendation.replicas_now, recommendation.replicas, recommendation.lead_time
    recommended = decided.replicas if isinstance(decided, Scale) else None
    state = forecast_state(
        recommendation.gate_reason, foreseen=any(signal.forecast for signal in recommendation.signals)
    )
    return RecommendationView(
        *recommendation.id,
        at=recommendation.at,
        autoscaler=recommendation.autoscaler or None,
        replicas=ReplicasView(now, recommended, verdict_of(now, recommended), str(decided.reason), decided.message),
        resources=resources_view(recommendation.resources_now, recommendation.resources),
        signals=tuple(map(signal_item, recommendation.signals)),
        clamps=recommendation.clamps,
        lead_time=None if lead is None else LeadTimeView(lead.value.total_seconds(), lead.origin),
        mode=mode,
        forecast=None if recommended is None else ForecastStateView(*state),
    )


def resources_view(current: Resources, decided: Resize | Hold) -> ResourcesView:
    """Return the public form of the decision about requests and limits, which are `current`."""
    now, why = amounts_view(current), (str(decided.reason), decided.message)
    if not isinstance(decided, Resize):
        return ResourcesView(now, None, "hold", *why)
    containers = tuple(map(_container, decided.containers))
    targets = {target.metric: target.value for target in decided.targets}
    return ResourcesView(now, amounts_view(decided.resources), "resize", *why, containers, targets)


def _container(size: ContainerSize) -> ContainerView:
    now, recommended = amounts_view(size.now), amounts_view(size.recommended)
    return ContainerView(size.name, now, recommended, risk_view(size.cpu), risk_view(size.memory), size.message)


def risk_view(risk: Risk | None) -> RiskView | None:
    """Return the public form of a risk."""
    return None if risk is None else RiskView(risk.over_request, risk.over_limit, risk.slack_hours)


def amounts_view(resources: Resources) -> AmountsView:
    """Return the public form of requests and limits."""
    return AmountsView(
        resources.cpu_request,
        resources.cpu_limit,
        whole_bytes(resources.memory_request),
        whole_bytes(resources.memory_limit),
    )


def whole_bytes(value: float | None) -> int | None:
    """Whole bytes, rounded up: less than was sized would be another size."""
    return None if value is None else math.ceil(value)


def signal_item(view: SignalView) -> SignalItem:
    """The public form of one target: the fields of the same names."""
    return msgspec.convert(view, SignalItem, from_attributes=True)


def path_view(path: StepForecast, now: datetime) -> PathView:
    """Return the path as it is answered at `now`."""
    steps = (_step(path, path.begin + k * path.step, values) for k, values in enumerate(path.values))
    return PathView(path.made_at, max((now - path.made_at).total_seconds(), 0.0), path.model, tuple(steps))


def _step(path: StepForecast, begin: datetime, values: tuple[float, ...]) -> StepView:
    return StepView(begin, begin + path.step, tuple(map(QuantileView, path.levels, values)))
