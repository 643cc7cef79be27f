"""The one pure decision of service, demo, replay and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.decisions.horizontal import decide_replicas
from forecaster.decisions.lead_time import lead_time
from forecaster.decisions.wanted import shut_by
from forecaster.domain.decision import Recommendation
from forecaster.vertical.sizing.containers import NO_SIZING, PodSizing
from forecaster.vertical.sizing.pod import size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from forecaster.decisions.gate import Gate
    from forecaster.decisions.state import ScalingState
    from forecaster.domain.decision import Hold, LeadTime, Resize
    from forecaster.domain.outlook import SignalForecast
    from forecaster.domain.policy import Policy, VerticalPolicy
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload


def decide(
    workload: Workload,
    outlooks: Mapping[Signal, SignalForecast],
    policy: Policy,
    state: ScalingState,
    now: datetime,
    *,
    sizing: PodSizing = NO_SIZING,
    sized: Callable[[Workload, PodSizing, VerticalPolicy], Resize | Hold] = size,
    gate: Gate | None = None,
    lead: LeadTime | None = None,
) -> tuple[Recommendation, ScalingState]:
    """What this workload should have at `now`, with every step on the way, and what to remember.

    `outlooks` holds demand now and ahead per signal, `sizing` what was chosen for its containers; both say so where
    they do not know. `sized` puts that into requests and limits.
    `gate` is where the forecast stands on this workload; without one it has its say.
    `lead` is where the lead time of the policy comes from, if it was measured.
    """
    horizontal = decide_replicas(workload, outlooks, policy.horizontal, state, now, gate=gate)
    recommendation = Recommendation(
        id=workload.id,
        at=now,
        replicas_now=workload.replicas,
        replicas=horizontal.verdict,
        resources_now=workload.resources,
        resources=sized(workload, sizing, policy.vertical),
        signals=horizontal.signals,
        clamps=horizontal.clamps,
        autoscaler=workload.autoscaler.name if workload.autoscaler else "",
        targets=workload.autoscaler.targets if workload.autoscaler else (),
        lead_time=lead or lead_time(policy.horizontal),
        watched=bool(shut_by(policy.horizontal, gate)),
        offered=horizontal.offered,
    )
    return recommendation, horizontal.state
