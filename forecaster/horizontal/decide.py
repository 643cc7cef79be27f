"""The one decision about replicas: of service, gate, replay, what-if, notebooks and tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal import decisions as codes
from forecaster.horizontal.checked import checked
from forecaster.horizontal.clamps import RECOMMENDATION, clamped, clamped_for_hpa, outage_hold
from forecaster.horizontal.clamps.clamp import ClampContext
from forecaster.horizontal.codes import STALE, UNKNOWN
from forecaster.horizontal.decisions import Decisions
from forecaster.horizontal.desired import desired_of
from forecaster.horizontal.propose import proposals_of

if TYPE_CHECKING:
    from forecaster.horizontal.checked import Checked
    from forecaster.horizontal.desired import Desired
    from forecaster.horizontal.inputs import Inputs
    from forecaster.horizontal.numbers import Codes, Counts, Flags
    from forecaster.horizontal.state import State


def decide(inputs: Inputs, state: State, now: float) -> tuple[Decisions, State]:
    """What each row should have at `now`, in epoch seconds, with every step on the way, and what to remember.

    Pure, and never raises for a value in a row: what is impossible masks its row, and the others get the very same.
    """
    seen = checked(inputs)
    state = state.opened(now, seen.policy.keep, inputs.rules.signals)
    proposals = proposals_of(seen, state.ready)
    desired = desired_of(seen, proposals, inputs.acting)
    reason = refusals(inputs, seen, desired)
    scales, silent = reason == codes.REACTIVE, (reason == codes.NO_DATA) | (reason == codes.STALE_DATA)
    state = outage_hold.looked_at(state, seen, inputs, now, scales=scales, silent=silent)
    at = ClampContext(seen, desired, state, now)
    counts = clamped(desired.reactive, at)
    offered = clamped_for_hpa(counts[RECOMMENDATION], at)
    if not inputs.rules.comes_back:
        offered = np.maximum(offered, 1)
    replicas = np.where(scales, counts[-1], inputs.current)
    state = remembering(state, seen, counts, scales=scales)
    reason = np.where(scales, credited(desired, counts[RECOMMENDATION]), reason)
    found = Decisions(
        inputs=inputs,
        now=now,
        replicas=replicas,
        reason=reason,
        failed=seen.failed,
        unseen=seen.unseen,
        proposals=proposals,
        reactive=desired.reactive,
        forecast=desired.forecast,
        counts=counts,
        offered=offered,
        state=state,
    )
    return found, state


def refusals(inputs: Inputs, seen: Checked, desired: Desired) -> Codes:
    """Why nothing can be said about a count [row], the weightiest reason last; `REACTIVE` where something can."""
    stale = (seen.unseen == STALE).any(axis=0)
    reason = np.where(desired.blocked, np.where(stale, codes.STALE_DATA, codes.NO_DATA), codes.REACTIVE)
    asleep, podless = seen.current == 0, seen.ready < 1
    if seen.rules.wakes and seen.policy.may_wake is not None:
        asleep, podless = asleep & ~seen.policy.may_wake, podless & ~seen.policy.may_wake
    if not seen.rules.kinds:
        reason, podless = np.full_like(reason, codes.NO_TARGET), np.zeros_like(podless)
    weightier = (
        (podless, codes.NO_PODS),
        (inputs.frozen, codes.FROZEN),
        (asleep, codes.NO_REPLICAS),
        (seen.failed > 0, codes.FAILED),
    )
    for mask, code in weightier:
        if mask.any():
            reason = np.where(mask, code, reason)
    return reason


def credited(desired: Desired, recommendation: Counts) -> Codes:
    """The side that made a count [row] what it is before stabilization."""
    same = np.where(recommendation == desired.reactive, codes.REACTIVE, codes.FORECAST)
    sided = np.where(desired.forecast == UNKNOWN, codes.FALLBACK, same)
    return np.where(desired.shut, codes.GATED, sided) if desired.shut.any() else sided


def remembering(state: State, seen: Checked, counts: tuple[Counts, ...], *, scales: Flags) -> State:
    """The state with this cycle's recommendations and changes; a row that failed leaves no trace."""
    entry = np.where(scales, counts[RECOMMENDATION], UNKNOWN)
    there = seen.failed == 0
    if not state.begun.all():
        entry = np.where(there & ~state.begun, np.maximum(entry, seen.current), entry)
    changed = scales & (counts[-1] != seen.current) & (seen.policy.changes_per_hour > 0)
    return replace(
        state,
        begun=state.begun | there,
        ready=np.where(scales, seen.ready, state.ready),
        recommendations=state.recommendations.marked(entry),
        changes=state.changes.marked(changed) if changed.any() else state.changes,
    )
