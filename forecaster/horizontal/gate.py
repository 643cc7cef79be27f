"""Who may decide about a workload: judged by what decisions would have cost on its own days, not by forecast errors.

observe -> trial -> acting, up by evidence, down by worse evidence, and not back and forth: what promotes is better by a
margin that what demotes lacks. Where yesterday's load decides better than the model, it speaks instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.policy import HorizontalPolicy

BETTER, WORSE = 0.97, 1.0
"""Promoted below this share of what the measured demand alone left short; demoted from that one on."""
LEAST_SHORT = 1e-4
"""Share of the demand. Where less was short there is no shortage to remove, only pods to save."""
LEAST_SAVING = 0.03
LEAST_DAYS = 1.0


class Standing(StrEnum):
    """How far a forecast has come on one workload."""

    OBSERVE = "observe"
    TRIAL = "trial"
    """Promising; it acts when the next evidence confirms it."""
    ACTING = "acting"


class Voice(StrEnum):
    """Whose forecast it is."""

    MODEL = "model"
    SEASONAL = "seasonal"
    """Yesterday's load at the same time."""


class Record(NamedTuple):
    """One way to decide: demand left short, as a share of it, for the pod-hours that the measured demand alone spends.

    `saving` is the share of those pod-hours that it does without at no more shortage.
    """

    short: float
    saving: float = 0.0


class Evidence(NamedTuple):
    """What came of deciding by each forecast on `days` of the workload's own load, and what measured demand left short.

    A way to decide that cannot spend as little as the reactive rule somewhere has no record, and is None.
    """

    days: float
    reactive: float
    model: Record | None
    seasonal: Record | None = None
    target: str = ""
    """The signal that it is about, where the workload is scaled by several."""

    def of(self, voice: Voice) -> Record | None:
        """What came of deciding by this forecast."""
        return self.model if voice is Voice.MODEL else self.seasonal

    def ratio(self, voice: Voice) -> float:
        """What its decisions left short against the measured demand alone; where nothing was, what they cost."""
        record = self.of(voice)
        if record is None:
            return float("inf")
        if max(self.reactive, record.short) < LEAST_SHORT:
            return 1.0 - record.saving if record.saving >= LEAST_SAVING else 1.0
        return record.short / self.reactive if self.reactive > 0 else float("inf")

    def idle(self, voice: Voice) -> bool:
        """Whether there was nothing to win or lose: nothing short either way, and no pods saved."""
        record = self.of(voice)
        return record is not None and max(self.reactive, record.short) < LEAST_SHORT and record.saving < LEAST_SAVING

    @property
    def best(self) -> Voice:
        """The model, unless yesterday's load is better by the margin and by what counts as a shortage."""
        return best_on((self,))


@dataclass(frozen=True, slots=True)
class Gate:
    """Where a workload stands, who speaks, since when, and why."""

    standing: Standing = Standing.OBSERVE
    voice: Voice = Voice.MODEL
    since: datetime | None = None
    why: str = "new: not judged yet"


def judged(gate: Gate, evidence: Evidence | None, now: datetime) -> Gate:
    """The gate after new evidence; without any it stays as it is."""
    return gate if evidence is None else judged_on_all(gate, (evidence,), now)


def judged_on_all(gate: Gate, targets: Sequence[Evidence], now: datetime) -> Gate:
    """The same for a workload with several targets, whose count is the largest that any of them asks for.

    One forecaster speaks for all of them, and the target on which it does worst decides.
    """
    if not targets or min(one.days for one in targets) < LEAST_DAYS:
        return gate
    voice = best_on(targets)
    worst = _weakest(targets, voice)
    standing, verdict = _next(gate.standing, worst.ratio(voice))
    if (standing, voice) == (gate.standing, gate.voice) and gate.since is not None:
        return gate
    return Gate(standing, voice, now, _said(verdict, worst, voice))


def unjudged(gate: Gate, why: str, now: datetime) -> Gate:
    """Without enough days behind it a forecast is watched, whatever it was allowed before."""
    if gate.standing is Standing.OBSERVE:
        return replace(gate, why=why)
    return Gate(Standing.OBSERVE, Voice.MODEL, now, f"demoted: {why}")


def best_on(targets: Sequence[Evidence]) -> Voice:
    """Who does better on the target that is its worst; the model, unless the other is better by the margin."""
    naive, model = (_weakest(targets, voice).ratio(voice) for voice in (Voice.SEASONAL, Voice.MODEL))
    return Voice.SEASONAL if naive < BETTER * model and not all(map(_alike, targets)) else Voice.MODEL


def _alike(one: Evidence) -> bool:
    """Whether the model leaves no more short than yesterday's load does, by what counts as a shortage."""
    return bool(one.model and one.seasonal and one.model.short - one.seasonal.short < LEAST_SHORT)


def _weakest(targets: Sequence[Evidence], voice: Voice) -> Evidence:
    """Where this forecaster does worst; a target with nothing to win or lose speaks only where all are such."""
    at_stake = [one for one in targets if not one.idle(voice)] or targets
    return max(at_stake, key=lambda one: one.ratio(voice))


def _next(standing: Standing, ratio: float) -> tuple[Standing, str]:
    """Where a forecast stands that does so well, and what to call it."""
    if standing is Standing.OBSERVE:
        return (Standing.TRIAL, "promising") if ratio < BETTER else (standing, "no better")
    if ratio >= WORSE:
        return Standing.OBSERVE, "demoted"
    if standing is Standing.TRIAL and ratio >= BETTER:
        return standing, "promising"
    return Standing.ACTING, "promoted" if standing is Standing.TRIAL else "better"


def _said(verdict: str, evidence: Evidence, voice: Voice) -> str:
    record = evidence.of(voice)
    who = "the model" if voice is Voice.MODEL else "yesterday's load"
    demand = f"the {evidence.target} demand" if evidence.target else "the demand"
    if record is None:
        on = f" by {evidence.target}" if evidence.target else ""
        return f"{verdict}: decisions by {who} cannot be as lean as those by measured demand alone{on}"
    if max(evidence.reactive, record.short) < LEAST_SHORT:
        return (
            f"{verdict}: nothing of {demand} was short on {evidence.days:.3g} days; "
            f"{who} would have saved {record.saving:.1%}"
        )
    return (
        f"{verdict}: for the same pod-hours decisions by {who} left {record.short:.2%} of {demand} short on "
        f"{evidence.days:.3g} days, measured demand alone {evidence.reactive:.2%}"
    )


def shut_by(policy: HorizontalPolicy, gate: Gate | None) -> str:
    """Why a forecast has no say; empty when it has one. Without a gate it is not judged."""
    if not policy.gate or gate is None or gate.standing is Standing.ACTING:
        return ""
    return f"{gate.standing}: {gate.why}"
