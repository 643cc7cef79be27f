"""A decision from its public form: what the serving process explains was decided in another one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec.structs import asdict, astuple

from forecaster.domain.decision import (
    NO_FORECAST,
    Clamp,
    ForecastState,
    Hold,
    LeadTime,
    Reason,
    Recommendation,
    Resize,
    Scale,
    SignalView,
)
from forecaster.domain.outlook import PeakForecast
from forecaster.domain.workload import ContainerSize, Resources, Risk, Target, TargetType, WorkloadId

if TYPE_CHECKING:
    from forecaster.publish.views import (
        AmountsView,
        ContainerView,
        ForecastStateView,
        LeadTimeView,
        RecommendationView,
        ReplicasView,
        ResourcesView,
        RiskView,
        SignalItem,
    )


def recommendation_of(view: RecommendationView) -> Recommendation:
    """The decision behind a public form, all but the targets of its HPA: what explains it to people."""
    return Recommendation(
        id=WorkloadId(view.namespace, view.kind, view.name),
        at=view.at,
        replicas_now=view.replicas.now,
        replicas=_decided(view.replicas),
        resources_now=_resources_of(view.resources.now),
        resources=_sized(view.resources),
        signals=tuple(map(_signal_of, view.signals)),
        clamps=tuple(Clamp(clamp.rule, clamp.before, clamp.after, clamp.why) for clamp in view.clamps),
        autoscaler=view.autoscaler or "",
        shut=_shut(view.forecast),
        lead_time=_lead_time_of(view.lead_time),
    )


def _shut(view: ForecastStateView | None) -> str:
    if view is None or view.state == ForecastState.ACTING or view.why == NO_FORECAST:
        return ""
    return f"{view.state}: {view.why}"


def _lead_time_of(view: LeadTimeView | None) -> LeadTime | None:
    return None if view is None else LeadTime(timedelta(seconds=view.seconds), view.origin)


def _decided(view: ReplicasView) -> Scale | Hold:
    reason = Reason(view.reason)
    return Hold(reason, view.message) if view.recommended is None else Scale(view.recommended, reason, view.message)


def _sized(view: ResourcesView) -> Resize | Hold:
    reason, wanted = Reason(view.reason), view.recommended
    if wanted is None:
        return Hold(reason, view.message)
    targets = tuple(Target(name, TargetType.UTILIZATION, value) for name, value in view.utilization_targets.items())
    containers = tuple(map(_container_of, view.containers))
    return Resize(_resources_of(wanted), reason, view.message, containers, targets)


def _container_of(view: ContainerView) -> ContainerSize:
    now, wanted = _resources_of(view.now), _resources_of(view.recommended)
    return ContainerSize(view.name, now, wanted, _risk_of(view.cpu), _risk_of(view.memory), view.message)


def _risk_of(view: RiskView | None) -> Risk | None:
    return None if view is None else Risk(view.over_request, view.over_limit, view.slack_hours)


def _resources_of(view: AmountsView) -> Resources:
    return Resources(view.cpu_request, view.cpu_limit, view.memory_request, view.memory_limit)


def _signal_of(item: SignalItem) -> SignalView:
    ahead = None if item.forecast is None else PeakForecast(*astuple(item.forecast))
    return SignalView(**{**asdict(item), "forecast": ahead})
