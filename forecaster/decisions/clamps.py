"""The clamps in their order: forecast, blast radius, stabilization, price and budget of changes, floors, bounds.

Bounds come last, so that no rule can undo one; floors come after stabilization, so that they end when they end.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.churn import longest, paid_for, with_change, within_budget
from forecaster.decisions.events import floor_at
from forecaster.decisions.lead_time import lead_time
from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.state import ScalingState
from forecaster.domain.decision import Clamp
from forecaster.hpa import limits
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.decisions.events import Floor
    from forecaster.decisions.outage import Expected, Outage
    from forecaster.decisions.wanted import Wanted
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.hpa.behavior import PastRecommendations


class Clamped(NamedTuple):
    """The count, the steps that changed it, and what to remember."""

    replicas: int
    offered: int
    """The count without stabilization and bounds: what an HPA does itself to what it reads."""
    clamps: tuple[Clamp, ...]
    state: ScalingState


STEPS = ("forecast", "blast radius", "stabilization", "churn", "changes", "outage", "event", "bounds")


class _Reasons(NamedTuple):
    """What the sentences of the steps are made of."""

    wanted: Wanted
    policy: HorizontalPolicy
    outage: Outage | None
    event: Floor | None
    bound: tuple[str, int, int, int]
    """By which rule, the count before, the lowest and the highest."""


def clamped(
    wanted: Wanted, workload: Workload, policy: HorizontalPolicy, state: ScalingState, now: datetime
) -> Clamped:
    """Apply every clamp; `state` has this cycle's outage and expectation already."""
    stabilized, history = _stabilized(wanted.replicas, policy, state.history, now)
    event = floor_at(policy.events, now, lead_time(policy).value) if policy.events else None

    def raised_by_ours(replicas: int) -> tuple[int, int, int, int]:
        """The count after each of the clamps between stabilization and bounds."""
        current, price = workload.replicas, policy.churn_price
        paid = paid_for(history, current, replicas, price, now) if price else replicas
        allowed = within_budget(state.changes, current, paid, policy.changes_per_hour, now)
        sheltered = max(allowed, state.outage.floor) if state.outage else allowed
        return paid, allowed, sheltered, max(sheltered, event.replicas) if event else sheltered

    raised_by = raised_by_ours(stabilized)
    raised, offered = raised_by[-1], raised_by_ours(wanted.replicas)[-1]
    lowest, highest = _bounds(workload, policy)
    bounded, rule = limits.bound(raised, lowest, highest, growth=MAX_INT32)
    counts = (wanted.reactive, wanted.unbounded, wanted.replicas, stabilized, *raised_by, bounded)
    reasons = _Reasons(wanted, policy, state.outage, event, (rule, raised, lowest, highest))
    clamps = tuple(
        [
            Clamp(step, before, after, _why(step, reasons))
            for step, (before, after) in zip(STEPS, pairwise(counts), strict=True)
            if before != after
        ]
    )
    changes = with_change(state.changes, now, changed=bounded != workload.replicas) if policy.changes_per_hour else ()
    left = ScalingState(history, changes, state.outage, state.expected, workload.ready_replicas)
    return Clamped(bounded, offered, clamps, left)


def _stabilized(
    replicas: int, policy: HorizontalPolicy, history: PastRecommendations, now: datetime
) -> tuple[int, PastRecommendations]:
    """HPA rules §10; a price of changes reads further back than the window, so it is kept for longer."""
    window = policy.scale_down_stabilization
    if not policy.churn_price:
        return limits.stabilize_down(history, replicas, window, now)
    kept = max(window, longest(policy.churn_price))
    _, remembered = limits.stabilize_down(history, replicas, kept, now)
    recent = tuple(one for one in history if one.at >= now - window)
    return limits.stabilize_down(recent, replicas, window, now)[0], remembered


def _why(step: str, reasons: _Reasons) -> str:
    """The sentence of one step."""
    wanted, policy, outage, event, bound = reasons
    match step:
        case "forecast":
            told = _forecast_clause(wanted, policy)
        case "blast radius":
            told = f"a forecast moves {policy.surge:.0%} at most"
        case "stabilization":
            told = f"highest recommendation of the last {policy.scale_down_stabilization.total_seconds():g} s"
        case "churn":
            told = f"a change costs {policy.churn_price:g} min of a pod, which fewer pods have not saved yet"
        case "changes":
            told = f"{policy.changes_per_hour} changes in the last hour"
        case "outage":
            told = f"{outage.why}; floor until {outage.until:%H:%M} UTC" if outage else ""
        case "event":
            told = f"{event.event} until {event.until:%H:%M} UTC" if event else ""
        case _:
            told = _bound_clause(bound, policy)
    return told


def _forecast_clause(wanted: Wanted, policy: HorizontalPolicy) -> str:
    side = "raises" if wanted.unbounded > wanted.reactive else "lowers"
    if policy.sizing == "newsvendor":
        price = 1 - stated_quantile(policy)
        return f"{side} what the measured demand asks for: each pod is expected to be used for {price:.0%} or more"
    return f"the p{stated_quantile(policy) * 100:g} of the coming peak {side} what the measured demand asks for"


def _bound_clause(bound: tuple[str, int, int, int], policy: HorizontalPolicy) -> str:
    rule, wanted, lowest, highest = bound
    clause = f"{rule}: {lowest} to {'any number of' if highest == MAX_INT32 else highest} replicas"
    breached = wanted > highest and policy.beyond_max == "advise"
    return f"{clause}; the load asks for a maximum of {wanted}" if breached else clause


def _bounds(workload: Workload, policy: HorizontalPolicy) -> tuple[int, int]:
    hpa = workload.autoscaler
    own = max(hpa.min_replicas, 1) if hpa else 1
    lowest = own if policy.min_replicas is None else policy.min_replicas
    highest = policy.max_replicas or (hpa.max_replicas if hpa else MAX_INT32)
    return min(lowest, highest), highest


def expecting(state: ScalingState, outage: Outage | None, expected: Expected) -> ScalingState:
    """The state with what this cycle saw of outages."""
    return replace(state, outage=outage, expected=expected)
