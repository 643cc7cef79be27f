"""Whether a forecast may act on a workload: judged by what decisions would have cost on its own days, not by errors.

observe -> trial -> acting, up by evidence, down by worse evidence, and not back and forth: what promotes is better by a
margin that what demotes lacks. Where yesterday's load decides better than the model, its forecast is used instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forecaster.horizontal.columns import Codes, Counts, Flags, Floats
from forecaster.horizontal.gate_states import (
    ACTING,
    DEMOTED,
    MIN_SHORTAGE,
    MODEL,
    NO_BETTER,
    OBSERVE,
    PROMISING,
    PROMOTED,
    SEASONAL,
    STILL_BETTER,
    TRIAL,
    Gates,
)

BETTER, WORSE = 0.97, 1.0
"""Promoted below this share of the shortage with measured demand alone; demoted from the second share on."""
MIN_SAVING = 0.03
NO_DIFFERENCE = (BETTER + WORSE) / 2
"""Between both: evidence that says neither leaves a forecast where it stands."""
AS_GOOD = 0.96
"""Sufficient for promotion: no worse than noise explains, for no more pods. Where both were nearly perfect no better
result is possible, and the case for a forecast, a load unlike that of the days before, is still to come."""
MIN_DAYS = 1.0


class Evidence(NamedTuple):
    """Outcome of deciding by each forecast on the rows' own days, and by measured demand alone.

    `short`, `saving` and `noise` are [forecaster, target, row], the model first; NaN where a strategy cannot spend as
    little as the reactive rule. The others are [target, row]; a row with fewer targets has NaN days for the missing
    ones.
    """

    days: Floats
    reactive: Floats
    """Unserved share of demand with measured demand alone."""
    short: Floats
    """Unserved share of demand with each forecaster, at the pod-hours of measured demand alone."""
    saving: Floats
    """The share of those pod-hours that it does without at a shortage that is no different."""
    noise: Floats
    """Standard error of the difference between `short` and `reactive`, from one hour to the next."""
    signal: Counts
    """Position in `Gates.signals` of the judged signal; -1 leaves it out of sentences."""


def judged(gates: Gates, evidence: Evidence, now: float) -> Gates:
    """Return the gates [row] after new evidence; with less than a day of evidence they stay unchanged.

    The count of several targets is the largest of their counts. All targets use one forecaster, and the target on which
    it does worst decides.
    """
    if not evidence.days.size:
        return gates
    ratios, worst = ratio(evidence), weakest(evidence)
    forecaster = best(evidence)
    target = np.where(forecaster == MODEL, worst[MODEL], worst[SEASONAL])
    standing, verdict = _next(gates.standing, _at(_of(ratios, forecaster), target))
    there = ~np.isnan(evidence.days)
    enough = there.any(axis=0) & (np.where(there, evidence.days, np.inf).min(axis=0) >= MIN_DAYS)
    same = (standing == gates.standing) & (forecaster == gates.forecaster) & (gates.verdict >= NO_BETTER)
    columns = {
        "standing": standing,
        "forecaster": forecaster,
        "since": now,
        "verdict": verdict,
        "fell": False,
        "signal": _at(evidence.signal, target),
        "days": _at(evidence.days, target),
        "reactive": _at(evidence.reactive, target),
        "short": _at(_of(evidence.short, forecaster), target),
        "saving": _at(_of(evidence.saving, forecaster), target),
    }
    return _moved(gates, enough & ~same, columns)


def unjudged(gates: Gates, verdict: Codes, now: float, *, days: Floats, least_days: Floats, signal: Counts) -> Gates:
    """The gates [row] of rows that cannot be judged: without enough days behind it a forecast is observed.

    `verdict` is `NO_HISTORY`, `TOO_SHORT` or `TOO_FAR` with its numbers, and negative where a row can be judged.
    """
    rows = verdict >= 0
    fell = rows & (gates.standing != OBSERVE)
    down = {"standing": OBSERVE, "forecaster": MODEL, "since": now, "fell": True}
    reason = {"verdict": verdict, "days": days, "least_days": least_days, "signal": signal}
    stays = {"fell": False}
    return _moved(_moved(_moved(gates, rows, reason), rows & ~fell, stays), fell, down)


def _moved(gates: Gates, rows: Flags, columns: dict[str, Any]) -> Gates:
    """Return the gates with these columns in these rows."""
    changed: dict[str, Any] = {
        name: np.where(rows, value, getattr(gates, name)).astype(getattr(gates, name).dtype)
        for name, value in columns.items()
    }
    return replace(gates, **changed)


def ratio(evidence: Evidence) -> Floats:
    """Unserved demand relative to measured demand alone, [forecaster, target, row]; infinite without a record.

    Where the difference in unserved demand is immaterial, cost decides: 3 % fewer pods are better, 3 % more are worse
    where the reactive rule had no shortage, and a result in between leaves the gate unchanged. A difference within
    noise closes no gate.
    """
    saved = np.where(np.abs(evidence.saving) >= MIN_SAVING, 1.0 - evidence.saving, NO_DIFFERENCE)
    with np.errstate(all="ignore"):
        share = np.where(evidence.reactive > 0.0, evidence.short / evidence.reactive, np.inf)
    by_noise = np.where(evidence.saving > -MIN_SAVING, np.minimum(saved, AS_GOOD), NO_DIFFERENCE)
    ratios = np.where(_is_short(evidence), np.where(_is_noise(evidence), by_noise, share), saved)
    return np.where(np.isnan(evidence.short), np.inf, ratios)


def _is_noise(evidence: Evidence) -> Flags:
    """[forecaster, target, row] whether more was left short, but no more than chance explains.

    Shortage comes in a few hours of some days: 0.10 % against 0.07 % of the demand may be a single minute. A difference
    below its own standard error rests on one hour, or on hours that contradict each other. Better decisions need no
    such test: they have to be better on all the days and again on the newer half of them.
    """
    worse = evidence.short - evidence.reactive
    return np.asarray((worse >= 0.0) & (worse <= np.fmax(evidence.noise, MIN_SHORTAGE)))


def weakest(evidence: Evidence) -> Counts:
    """The target [forecaster, row] on which each forecaster does worst.

    A target with nothing to win or lose, nothing short either way and no pods saved, counts only where all are such.
    """
    there = np.broadcast_to(~np.isnan(evidence.days), evidence.short.shape)
    idle = ~np.isnan(evidence.short) & ~_is_short(evidence) & (evidence.saving < MIN_SAVING)
    at_stake = there & ~idle
    counts = np.where(at_stake.any(axis=1, keepdims=True), at_stake, there)
    return np.asarray(np.where(counts, ratio(evidence), -np.inf).argmax(axis=1))


def best(evidence: Evidence) -> Codes:
    """The forecaster [row] that does better on the target that is its worst.

    The model, unless yesterday's load is better by the margin and by what counts as a shortage.
    """
    ratios = np.take_along_axis(ratio(evidence), weakest(evidence)[:, None], axis=1)[:, 0]
    alike = (evidence.short[MODEL] - evidence.short[SEASONAL] < MIN_SHORTAGE) | np.isnan(evidence.days)
    seasonal = (ratios[SEASONAL] < BETTER * ratios[MODEL]) & ~alike.all(axis=0)
    return np.where(seasonal, SEASONAL, MODEL)


def _is_short(evidence: Evidence) -> Flags:
    """[forecaster, target, row] whether the unserved share counts as a shortage."""
    return np.asarray(np.fmax(evidence.reactive, evidence.short) >= MIN_SHORTAGE)


def _of(values: Floats, forecaster: Codes) -> Floats:
    """[target, row] what belongs to the forecaster of each row, of values [forecaster, target, row]."""
    return np.asarray(np.where(forecaster == MODEL, values[MODEL], values[SEASONAL]))


def _at(values: Any, target: Counts) -> Any:
    """[row] what belongs to one target of each row, of values [target, row]."""
    return np.take_along_axis(values, target[None], axis=0)[0]


def _next(standing: Codes, share: Floats) -> tuple[Codes, Codes]:
    """Return the next gate state [row] of a forecast with this share, and the verdict."""
    observed, tried = standing == OBSERVE, standing == TRIAL
    promising, worse = share < BETTER, share >= WORSE
    stays = np.where(tried, np.where(promising, ACTING, TRIAL), ACTING)
    after = np.where(observed, np.where(promising, TRIAL, OBSERVE), np.where(worse, OBSERVE, stays))
    well = np.where(tried, np.where(promising, PROMOTED, PROMISING), STILL_BETTER)
    verdict = np.where(observed, np.where(promising, PROMISING, NO_BETTER), np.where(worse, DEMOTED, well))
    return after, verdict
