"""The decision about replicas, called by service, gate, replay, what-if, notebooks and tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from forecaster.domain.decision import Reason
from forecaster.horizontal.checked import Checked, check
from forecaster.horizontal.clamps import RECOMMENDATION, ClampContext, clamped, clamped_for_hpa
from forecaster.horizontal.columns import Codes, Counts, Flags
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.proposals import Proposals, combined, proposals_of
from forecaster.horizontal.row import INCOMPLETE, REASONS, STALE, UNKNOWN
from forecaster.horizontal.state import State, observed

REACTIVE, FORECAST, GATED, FALLBACK, NO_DATA, STALE_DATA, FROZEN, NO_TARGET, NO_PODS, NO_REPLICAS = (
    np.int8(code) for code in range(REASONS.index(Reason.NO_REPLICAS) + 1)
)
FAILED = np.int8(REASONS.index(Reason.FAILED))


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One group of rows, decided. Counts are replicas; `UNKNOWN` where a side has no answer."""

    inputs: Inputs
    now: float
    """Epoch seconds."""
    replicas: Counts
    """[row] the recommended count; the current one where it is held."""
    reason: Codes
    """[row] a position in `REASONS`."""
    failed: Codes
    """[row] code of the impossible value, 0 where all are possible (`Checked.failed`)."""
    unseen: Codes
    """[target, row] why there is no measurement; `KNOWN` where there is one."""
    proposals: Proposals
    """[target][row]."""
    reactive: Counts
    """[row] by measured demand, before any clamp."""
    forecast: Counts
    """[row] by the forecast, before any clamp; `UNKNOWN` where it had no say."""
    counts: tuple[Counts, ...]
    """[clamp][row] after each of `clamps.CLAMPS`; without meaning where the count is held."""
    offered: Counts
    """[row] after every clamp but those that an HPA applies itself; without meaning where the count is held."""
    state: State
    """State to be passed to the next decision."""

    @property
    def scales(self) -> Flags:
        """[row] whether a count is given."""
        return np.asarray(self.reason <= FALLBACK)


def decide(inputs: Inputs, state: State, now: float) -> tuple[Decisions, State]:
    """Return the count of each row at `now`, in epoch seconds, with every intermediate step, and the next state.

    Pure, and never raises for a value in a row: an impossible value masks its own row and changes no other row.
    """
    checked = check(inputs)
    state = state.opened(now, checked.policy.keep, inputs.rules.signals)
    proposals = proposals_of(checked, state.ready)
    desired = desired_of(checked, proposals, inputs.acting)
    reason = refusals(inputs, checked, desired)
    scales, silent = reason == REACTIVE, (reason == NO_DATA) | (reason == STALE_DATA)
    state = observed(state, checked, inputs, now, scales=scales, silent=silent)
    at = ClampContext(checked, desired, state, now)
    counts = clamped(desired.reactive, at)
    offered = clamped_for_hpa(counts[RECOMMENDATION], at)
    if not inputs.rules.comes_back:
        offered = np.maximum(offered, 1)
    replicas = np.where(scales, counts[-1], inputs.current)
    state = with_recommendations(state, checked, counts, scales=scales)
    reason = np.where(scales, credited(desired, counts[RECOMMENDATION]), reason)
    decisions = Decisions(
        inputs=inputs,
        now=now,
        replicas=replicas,
        reason=reason,
        failed=checked.failed,
        unseen=checked.unseen,
        proposals=proposals,
        reactive=desired.reactive,
        forecast=desired.forecast,
        counts=counts,
        offered=offered,
        state=state,
    )
    return decisions, state


def refusals(inputs: Inputs, checked: Checked, desired: Desired) -> Codes:
    """Return the reason for refusing a count [row]; the weightiest reason wins, and `REACTIVE` means no refusal."""
    stale = (checked.unseen == STALE).any(axis=0)
    reason = np.where(desired.blocked, np.where(stale, STALE_DATA, NO_DATA), REACTIVE)
    asleep, podless = checked.current == 0, checked.ready < 1
    if checked.rules.wakes and checked.policy.may_wake is not None:
        asleep, podless = asleep & ~checked.policy.may_wake, podless & ~checked.policy.may_wake
    if checked.rules.woken:
        woken = asleep & (desired.forecast > 0)
        asleep, podless = asleep & ~woken, podless & ~woken
    if not checked.rules.kinds:
        reason, podless = np.full_like(reason, NO_TARGET), np.zeros_like(podless)
    weightier = (
        (podless, NO_PODS),
        (inputs.events.frozen, FROZEN),
        (asleep, NO_REPLICAS),
        (checked.failed > 0, FAILED),
    )
    for mask, code in weightier:
        if mask.any():
            reason = np.where(mask, code, reason)
    return reason


def credited(desired: Desired, recommendation: Counts) -> Codes:
    """Return the side that determines a count [row] before stabilization, unless a limit does."""
    reactive = (recommendation == desired.reactive) | (desired.joined == desired.reactive)
    sided = np.where(desired.forecast == UNKNOWN, FALLBACK, np.where(reactive, REACTIVE, FORECAST))
    return np.where(desired.gated, GATED, sided) if desired.gated.any() else sided


def with_recommendations(state: State, checked: Checked, counts: tuple[Counts, ...], *, scales: Flags) -> State:
    """The state with this cycle's recommendations; a row that failed leaves no trace."""
    entry = np.where(scales, counts[RECOMMENDATION], UNKNOWN)
    there = checked.failed == 0
    if not state.begun.all():
        entry = np.where(there & ~state.begun, np.maximum(entry, checked.current), entry)
    ready = np.where(scales, checked.ready, state.ready)
    return replace(state.recommended(entry), begun=state.begun | there, ready=ready)


class Desired(NamedTuple):
    """Reactive and forecast replicas, and the two joined, [row] each."""

    reactive: Counts
    """Replicas by measured demand; the current ones where a missing target blocks going down."""
    forecast: Counts
    """Replicas by the forecast, `UNKNOWN` where it may not act."""
    joined: Counts
    """Replicas by both."""
    blocked: Flags
    """Whether nothing may be said: a target is missing or incomplete, and no forecast raises the count."""
    gated: Flags
    """Whether there is a forecast and the gate does not let it act."""


def desired_of(checked: Checked, proposals: Proposals, acting: Flags) -> Desired:
    """Join both sides; a target that is missing or incomplete blocks going down, as in the HPA (HPA rules §9)."""
    incomplete = checked.unseen == INCOMPLETE
    recommended = combined(proposals.reactive, checked.current, incomplete.any(axis=0) if incomplete.any() else None)
    highest = _highest(proposals.forecast, checked.current)
    there = highest != UNKNOWN
    says = there & acting
    reactive = np.where(recommended.valid, recommended.replicas, checked.current)
    forecast = np.where(says, highest, UNKNOWN)
    replaced = None
    if checked.rules.scale_in_by_forecast:
        replaced = says & recommended.valid & ~recommended.partial
        forecast = np.where(replaced, _everywhere(proposals, checked.current), forecast)
    keeping = _keeping(proposals, forecast, checked.current)
    joined = np.maximum(reactive, keeping)
    if replaced is not None:
        joined = np.where(replaced, keeping, joined)
    return Desired(
        reactive=reactive,
        forecast=forecast,
        joined=joined,
        blocked=~recommended.valid & (forecast <= checked.current),
        gated=there & ~acting & recommended.valid,
    )


def _highest(counts: list[Counts], current: Counts) -> Counts:
    """The largest of counts [target][row]; `UNKNOWN` where none is known."""
    return reduce(np.maximum, counts, np.full_like(current, UNKNOWN))


def _everywhere(proposals: Proposals, current: Counts) -> Counts:
    """Return the forecast count [row]; a target without a forecast uses its measured demand.

    An unknown value lowers nothing.
    """
    sides = zip(proposals.reactive, proposals.forecast, strict=True)
    return _highest([np.where(forecast == UNKNOWN, now, forecast) for now, forecast in sides], current)


def _keeping(proposals: Proposals, forecast: Counts, current: Counts) -> Counts:
    """Return the forecast count [row] that keeps present pods still worth keeping."""
    if not proposals.keep:
        return forecast
    keep = np.minimum(current, _highest(proposals.keep, current))
    return np.where(forecast == UNKNOWN, UNKNOWN, np.maximum(forecast, keep))
