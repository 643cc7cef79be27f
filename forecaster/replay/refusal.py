"""Why a workload cannot be replayed, in a sentence each; nothing is made up in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.lead_time import lead_time
from forecaster.decisions.targets import stated_pod
from forecaster.domain.amounts import duration_text
from forecaster.domain.window import MINUTE
from forecaster.replay.setup import Setup, setup_of

if TYPE_CHECKING:
    from datetime import timedelta

    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.policy import HorizontalPolicy, Policy
    from forecaster.domain.workload import Workload
    from forecaster.replay.sight import Sight
    from forecaster.replay.terms import Terms

IMPLAUSIBLE = 20
"""A typical demand that asks for so many times the largest count is stated in another unit, e.g. millicores."""
ENOUGH = 5
"""`lead_time` asks for as many measured start-ups; those of the terms are as good as measured."""


def setup_or_reason(row: int, workload: Workload, policy: Policy, sight: Sight, terms: Terms) -> Setup | str:
    """The replay of this workload, or why there is none."""
    setup = setup_of(
        workload,
        policy.horizontal,
        capacity=terms.capacities.get(workload.id),
        start_up=terms.start_up_of(workload),
        timing=terms.timing,
        behavior=terms.behaviors.get(workload.id),
    )
    if isinstance(setup, str):
        return setup
    return _contradiction(workload, policy) or _too_short(policy, sight, terms) or _unfit(row, setup, sight) or setup


def lead_time_of(policy: HorizontalPolicy, terms: Terms) -> timedelta:
    """The lead time that the service would have measured under these terms, unless the policy states one."""
    return lead_time(policy, terms.start_ups * ENOUGH).value


def _contradiction(workload: Workload, policy: Policy) -> str:
    hpa, stated = workload.autoscaler, policy.horizontal
    if hpa is None or hpa.min_replicas <= hpa.max_replicas:
        lowest = stated.min_replicas
        if hpa is None or lowest is None or lowest <= hpa.max_replicas:
            return ""
        return f"policy min_replicas {lowest} is above the HPA's maxReplicas {hpa.max_replicas}; lower one of them"
    return f"HPA {hpa.name} has minReplicas {hpa.min_replicas} above maxReplicas {hpa.max_replicas}"


def _too_short(policy: Policy, sight: Sight, terms: Terms) -> str:
    lead = lead_time_of(policy.horizontal, terms)
    ahead, length = lead + policy.horizontal.window, sight.minutes * MINUTE
    past = sight.begin - sight.traces.start + MINUTE
    if length <= ahead:
        return (
            f"{duration_text(length)} are replayed, and a decision looks {duration_text(ahead)} ahead "
            "(lead_time + window); replay a longer time"
        )
    if past < max(lead, policy.min_history):
        return (
            f"{duration_text(past)} of history before the replay is less than "
            f"{duration_text(max(lead, policy.min_history))} (the larger of lead_time and min_history)"
        )
    return ""


def _unfit(row: int, setup: Setup, sight: Sight) -> str:
    """Whether there is demand to go by, in units that fit the targets."""
    for signal in {setup.capacity.signal, *(target.signal for target in setup.scaler.targets)}:
        demand = sight.seen(signal, 0, sight.minutes)[:, row]
        if np.isnan(demand).all():
            have = ", ".join(sight.known) or "nothing"
            return f"its HPA goes by {signal}, of which nothing was recorded in that time; recorded: {have}"
    return next((fault for target in setup.scaler.targets if (fault := _other_unit(row, target, setup, sight))), "")


def _other_unit(row: int, target: PodTarget, setup: Setup, sight: Sight) -> str:
    per_pod = stated_pod(target)
    usual = float(np.nanmedian(sight.seen(target.signal, 0, sight.minutes)[:, row]))
    most = setup.scaler.bounds.max_replicas
    if usual <= IMPLAUSIBLE * most * per_pod:
        return ""
    return (
        f"half of the time its {target.signal} is above {usual:g} {target.signal.unit}, {usual / per_pod:.0f} pods' "
        f"worth with {most} as the most: is it in another unit than the target, {target}?"
    )
