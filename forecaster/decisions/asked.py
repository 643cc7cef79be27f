"""What one target of a workload asks for, now and ahead, and the record of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.replicas import proposal
from forecaster.decisions.targets import PodTarget, Unusable, full_pod, stated_pod
from forecaster.decisions.worth import KEEP, pods_worth_having
from forecaster.demand.censored import BEYOND, cut_off
from forecaster.domain.decision import SignalView
from forecaster.domain.outlook import Measured, PeakForecast, SignalForecast
from forecaster.hpa.proposals import MetricProposal, Unmeasured

if TYPE_CHECKING:
    from forecaster.domain.outlook import Unknown
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.hpa.proposals import Tolerance


class Asked(NamedTuple):
    """One target that can be computed: what is known of its signal, and the replicas that follow."""

    target: PodTarget
    outlook: SignalForecast
    now: MetricProposal | Unmeasured
    ahead: MetricProposal | Unmeasured
    keep: int | None = None
    """Sized by newsvendor: how many pods are worth keeping, at least as many as are asked for."""


def ask(
    target: PodTarget,
    outlook: SignalForecast,
    workload: Workload,
    tolerance: Tolerance,
    policy: HorizontalPolicy,
    *,
    served_by: int = 0,
) -> Asked:
    """Measurement and forecast through the same formula.

    `served_by` pods were ready a cycle ago.
    A signal without a usable measurement has no usable forecast either: it would be made of the same stale samples.
    """
    measured, ahead = outlook.measured, outlook.ahead
    if not isinstance(measured, Measured):
        return Asked(target, outlook, _absent(measured), _absent(measured))
    ready, current = workload.ready_replicas, workload.replicas
    if wakes_from_zero(policy) and isinstance(ahead, PeakForecast) and ahead.levels:
        pods = math.ceil(measured.value / full_pod(target, policy.peak_target))
        served = (ready, served_by)
        return _sized_by_worth(target, outlook, MetricProposal(pods, 0.0), ahead, measured.value, served, policy)
    if not (ready and current):
        nobody = Unmeasured("no_pods", "no pod is ready" if current else "no pod is asked for")
        return Asked(target, outlook, nobody, nobody)
    now = proposal(measured.value, target, ready, current, tolerance)
    if not isinstance(ahead, PeakForecast):
        return Asked(target, outlook, now, _absent(ahead))
    if policy.sizing == "newsvendor" and ahead.levels:
        return _sized_by_worth(target, outlook, now, ahead, measured.value, (ready, served_by), policy)
    return Asked(target, outlook, now, proposal(ahead.peak, target, ready, current, tolerance))


def _sized_by_worth(
    target: PodTarget,
    outlook: SignalForecast,
    now: MetricProposal | Unmeasured,
    ahead: PeakForecast,
    measured: float,
    served_by: tuple[int, int],
    policy: HorizontalPolicy,
) -> Asked:
    """The peak is at least what is there now; a pod is full at its capacity, not at the HPA's target."""
    pod, price = full_pod(target, policy.peak_target), 1.0 - stated_quantile(policy)
    least = measured * BEYOND if any(cut_off(measured, ready, pod) for ready in served_by) else measured
    share = (1.0 + policy.headroom) / pod
    peaks, floor = [peak * share for peak in ahead.peaks], least * share
    add = pods_worth_having(ahead.levels, peaks, price, at_least=floor)
    keep = pods_worth_having(ahead.levels, peaks, KEEP * price, at_least=floor)
    return Asked(target, outlook, now, MetricProposal(add, ahead.peak / pod), keep)


def wakes_from_zero(policy: HorizontalPolicy) -> bool:
    """Whether the forecast may take the last pod and bring the first one back."""
    return policy.min_replicas == 0 and policy.sizing == "newsvendor" and policy.scale_in_by_forecast


def _absent(unknown: Unknown) -> Unmeasured:
    return Unmeasured("no_samples", unknown.note)


def view(asked: Asked | Unusable) -> SignalView:
    """The record of one target: every input and both answers."""
    if isinstance(asked, Unusable):
        return SignalView(signal=asked.metric, note=asked.note)
    target, outlook, now, ahead, _ = asked
    measured = outlook.measured if isinstance(outlook.measured, Measured) else None
    forecast = outlook.ahead if isinstance(outlook.ahead, PeakForecast) else None
    return SignalView(
        signal=str(target.signal),
        target=target.words,
        measured=measured.value if measured else None,
        measured_at=measured.at if measured else None,
        reactive_replicas=now.replicas if isinstance(now, MetricProposal) else None,
        forecast=forecast,
        forecast_replicas=ahead.replicas if isinstance(ahead, MetricProposal) else None,
        note=_note(now, ahead, forecast.note if forecast else ""),
        pod=stated_pod(target),
        unit=target.signal.unit,
    )


def _note(now: MetricProposal | Unmeasured, ahead: MetricProposal | Unmeasured, said: str) -> str:
    """What is missing, and what the forecast itself says, each once."""
    if isinstance(now, MetricProposal) and isinstance(ahead, MetricProposal):
        return said
    missing = [side.message for side in (now, ahead) if isinstance(side, Unmeasured)]
    return "; ".join(dict.fromkeys([*missing, said] if said else missing))
