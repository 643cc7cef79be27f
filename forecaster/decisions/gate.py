"""Who may decide about a workload: judged by what decisions would have cost on its own days, not by forecast errors.

observe -> trial -> acting, up by evidence, down by worse evidence, and not back and forth: what promotes is better by a
margin that what demotes lacks. Where yesterday's load decides better than the model, it speaks instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

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

    def ratio(self, voice: Voice) -> float:
        """What its decisions left short against the measured demand alone; where nothing was, what they cost."""
        record = self.model if voice is Voice.MODEL else self.seasonal
        if record is None:
            return float("inf")
        if max(self.reactive, record.short) < LEAST_SHORT:
            return 1.0 - record.saving if record.saving >= LEAST_SAVING else 1.0
        return record.short / self.reactive if self.reactive > 0 else float("inf")

    @property
    def best(self) -> Voice:
        """The model, unless yesterday's load is better by the margin and by what counts as a shortage."""
        naive, model = self.ratio(Voice.SEASONAL), self.ratio(Voice.MODEL)
        alike = self.model and self.seasonal and self.model.short - self.seasonal.short < LEAST_SHORT
        return Voice.SEASONAL if naive < BETTER * model and not alike else Voice.MODEL


@dataclass(frozen=True, slots=True)
class Gate:
    """Where a workload stands, who speaks, since when, and why."""

    standing: Standing = Standing.OBSERVE
    voice: Voice = Voice.MODEL
    since: datetime | None = None
    why: str = "new: nothing was forecast for it yet"


def judged(gate: Gate, evidence: Evidence | None, now: datetime) -> Gate:
    """The gate after new evidence; without any it stays as it is."""
    if evidence is None or evidence.days < LEAST_DAYS:
        return gate
    best = evidence.best
    standing, verdict = _next(gate.standing, evidence.ratio(best))
    if (standing, best) == (gate.standing, gate.voice) and gate.since is not None:
        return gate
    return Gate(standing, best, now, _said(verdict, evidence, best))


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
    record = evidence.model if voice is Voice.MODEL else evidence.seasonal
    who = "the model" if voice is Voice.MODEL else "yesterday's load"
    if record is None:
        return f"{verdict}: decisions by {who} cannot be as lean as those by measured demand alone"
    if max(evidence.reactive, record.short) < LEAST_SHORT:
        return f"{verdict}: nothing was short on {evidence.days:.3g} days; {who} would have saved {record.saving:.1%}"
    return (
        f"{verdict}: for the same pod-hours decisions by {who} left {record.short:.2%} of the demand short on "
        f"{evidence.days:.3g} days, measured demand alone {evidence.reactive:.2%}"
    )
