"""The one pure decision of service, demo, replay and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.decisions.horizontal import decide_replicas
from forecaster.domain.decision import Recommendation
from forecaster.vertical.sizing import NO_USAGE, PodUsage, size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.decisions.state import ScalingState
    from forecaster.domain.outlook import Outlook
    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload


def decide(
    workload: Workload,
    outlooks: Mapping[Signal, Outlook],
    policy: Policy,
    state: ScalingState,
    now: datetime,
    *,
    usage: PodUsage = NO_USAGE,
) -> tuple[Recommendation, ScalingState]:
    """What this workload should have at `now`, with every step on the way, and what to remember.

    `outlooks` holds demand now and ahead per signal, `usage` what one pod used; both say so where they do not know.
    """
    horizontal = decide_replicas(workload, outlooks, policy.horizontal, state, now)
    recommendation = Recommendation(
        id=workload.id,
        at=now,
        replicas_now=workload.replicas,
        replicas=horizontal.verdict,
        resources_now=workload.resources,
        resources=size(workload, usage, policy.vertical),
        signals=horizontal.signals,
        clamps=horizontal.clamps,
        autoscaler=workload.autoscaler.name if workload.autoscaler else "",
    )
    return recommendation, horizontal.state
