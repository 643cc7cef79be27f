"""From a recommendation to what is published of it: the computing side of `values`. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.decision import Scale
from forecaster.domain.published import OURS
from forecaster.domain.signal import DEMAND as DEMAND_SIGNALS
from forecaster.serving.values import MetricTarget, OfferedNumber, WorkloadOffer

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.decision import Recommendation, SignalView
    from forecaster.domain.policy import Policy

SHAPED = frozenset({"stabilization", "bounds"})
"""Clamps that an HPA applies itself to whatever it reads; applied twice, they would delay twice."""


def offer(one: Recommendation, policy: Policy, before: WorkloadOffer | None = None) -> WorkloadOffer | None:
    """What this cycle publishes of a workload; None where its policy says that nothing is.

    `before` is what the last cycle published: where knowledge ends, its numbers stay, marked as no longer known.
    """
    if policy.mode == "observe":
        return None
    one = _without_say(one) if one.watched else one
    demands = _demands(one, lowers=policy.horizontal.scale_in_by_forecast)
    replicas, floor = _replicas(one), _floor(one)
    known = replicas is not None
    least = one.at - policy.publish.last_for
    return WorkloadOffer(
        replicas_now=one.replicas_now,
        replicas_held=one.replicas_now if known or before is None else before.replicas_held,
        demands=tuple(sorted((*demands.values(), *_gone(demands, before, least)), key=lambda sample: sample.signal)),
        replicas=replicas or _last(before.replicas if before else None, least),
        floor=floor or _last(before.floor if before else None, least),
        consumers=tuple(
            MetricTarget(target.metric, target.type.value, target.value)
            for target in one.targets
            if target.metric in OURS
        ),
        abstain=policy.publish.abstain,
        last_for_seconds=policy.publish.last_for.total_seconds(),
        why="" if known else str(one.replicas.reason),
    )


def _without_say(one: Recommendation) -> Recommendation:
    """As the measured demand alone would have it: nobody may act on a forecast that is only watched."""
    views = (
        replace(view, forecast=None, forecast_replicas=None if view.forecast is None else view.reactive_replicas)
        for view in one.signals
    )
    return replace(one, signals=tuple(views))


def _demands(one: Recommendation, *, lowers: bool) -> dict[str, OfferedNumber]:
    found: dict[str, OfferedNumber] = {}
    for view in one.signals:
        sample = _demand(view, one.at, lowers=lowers) if view.signal in DEMAND_SIGNALS else None
        if sample is not None:
            found.setdefault(view.signal, sample)
    return found


def _demand(view: SignalView, at: datetime, *, lowers: bool) -> OfferedNumber | None:
    """The forecast peak, no less than what is measured unless the policy lets a forecast lower the count."""
    at, measured, ahead = view.measured_at or at, view.measured, view.forecast
    if ahead is not None and (lowers or measured is None or ahead.peak >= measured):
        return OfferedNumber(ahead.peak, at, "forecast", signal=view.signal, quantile=ahead.quantile)
    return None if measured is None else OfferedNumber(measured, at, "measured", signal=view.signal)


def _replicas(one: Recommendation) -> OfferedNumber | None:
    """The count before the clamps that an HPA applies itself."""
    if not isinstance(one.replicas, Scale):
        return None
    shaped = (clamp.before for clamp in one.clamps if clamp.rule in SHAPED)
    forecast = not one.watched and any(view.forecast_replicas is not None for view in one.signals)
    return OfferedNumber(next(shaped, one.replicas.replicas), sampled_at(one), "forecast" if forecast else "measured")


def _floor(one: Recommendation) -> OfferedNumber | None:
    asked = [view.forecast_replicas for view in one.signals if view.forecast_replicas is not None]
    return OfferedNumber(max(asked), sampled_at(one), "measured" if one.watched else "forecast") if asked else None


def sampled_at(one: Recommendation) -> datetime:
    """The oldest of the newest samples that a decision is made of."""
    return min((view.measured_at for view in one.signals if view.measured_at is not None), default=one.at)


def _gone(demands: dict[str, OfferedNumber], before: WorkloadOffer | None, least: datetime) -> list[OfferedNumber]:
    """What was known of the signals of which nothing is known now."""
    past = before.demands if before else ()
    return [last for sample in past if sample.signal not in demands and (last := _last(sample, least))]


def _last(sample: OfferedNumber | None, least: datetime) -> OfferedNumber | None:
    """A sample of an earlier cycle; None once it is older than anybody may repeat it."""
    if sample is None or sample.at < least:
        return None
    return msgspec.structs.replace(sample, known=False)
