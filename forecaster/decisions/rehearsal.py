"""What decisions would have cost on days that are over: counts and pods of one workload at many settings at once.

Arrays are [setting, minute]. Demand is open-loop: it does not depend on the pods that there were. A pod that is asked
for serves `start_up` minutes later, one that is given back is gone at once, and what is measured in a minute is known
in the next one. The reactive rule is the HPA's with its tolerance and its window of stabilization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from forecaster.decisions.gate import Evidence, Record
from forecaster.decisions.worth import KEEP, all_worth_having

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TOLERANCE = 0.1
DAY = 1440
REACTIVE_WINDOW = 5
"""Minutes that the HPA looks back before it gives pods back."""


class Setting(NamedTuple):
    """The worth below which no pod is asked for, and how much of a pod is counted on: lean to safe."""

    price: float
    share: float = 1.0


SETTINGS = tuple(
    Setting(price) for price in (0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.015)
) + tuple(Setting(0.01, share) for share in (0.8, 0.6, 0.4))
TARGETS = np.array([1.6, 1.4, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
STATED = 0.8
"""The target of the HPA that forecasts are compared with."""


class Bill(NamedTuple):
    """Per setting: pod-minutes asked for, and the share of the demand above what ready pods carried."""

    spent: Floats
    short: Floats


def reactive_counts(seen: Floats, targets: Floats, at_least: int = 1) -> Floats:
    """The HPA's formula on demand [minute] in pods; each setting has a target, the share of a pod that it fills."""
    wanted = np.maximum(np.ceil(seen / targets[:, None] - 1e-9), at_least)
    ratio = seen / targets[:, None]
    counts = np.empty_like(wanted)
    current, recent = wanted[:, 0], np.repeat(wanted[:, :1], REACTIVE_WINDOW, axis=1)
    for minute in range(wanted.shape[1]):
        with np.errstate(divide="ignore", invalid="ignore"):
            within = np.abs(ratio[:, minute] / current - 1) <= TOLERANCE
        asked = np.where(within, current, wanted[:, minute])
        recent[:, minute % REACTIVE_WINDOW] = asked
        current = np.where(asked > current, asked, np.minimum(current, recent.max(axis=1)))
        counts[:, minute] = current
    return counts


def worth_counts(
    levels: Sequence[float], peaks: Floats, seen: Floats, settings: Sequence[Setting], *, window: int, at_least: int = 1
) -> Floats:
    """Pods worth having by peaks [minute, level] in pods, at each setting; `window` minutes are looked back."""
    price = np.array([one.price for one in settings])[:, None]
    share = np.array([one.share for one in settings])[:, None]
    larger, floor = peaks[None] / share[..., None], seen[None] / share
    add = np.maximum(all_worth_having(levels, larger, price, at_least=floor), at_least)
    keep = np.maximum(all_worth_having(levels, larger, KEEP * price, at_least=floor), at_least)
    counts = np.empty(add.shape)
    current = add[:, 0]
    recent = np.repeat(add[:, :1], window, axis=1)
    for minute in range(add.shape[1]):
        recent[:, minute % window] = np.maximum(add[:, minute], np.minimum(current, keep[:, minute]))
        current = recent.max(axis=1)
        counts[:, minute] = current
    return counts


def seasonal_counts(seen: Floats, expected: Floats, targets: Floats, *, window: int, at_least: int = 1) -> Floats:
    """What an earlier day expects of the coming window [minute], at least what is seen, filled to a target."""
    wanted = np.ceil(np.maximum(seen, expected) / targets[:, None] - 1e-9)
    counts = np.maximum(wanted, at_least)
    for back in range(1, window):
        counts[:, back:] = np.maximum(counts[:, back:], wanted[:, :-back])
    return counts


def bill(counts: Floats, demand: Floats, start_up: int) -> Bill:
    """What counts [setting, minute] cost under demand [minute] in pods."""
    ready = counts.copy()
    for late in range(1, start_up + 1):
        ready[:, late:] = np.minimum(ready[:, late:], counts[:, :-late])
    missing = np.maximum(demand - ready, 0.0).sum(axis=1)
    total = demand.sum()
    return Bill(counts.sum(axis=1), missing / total if total > 0 else missing)


class Days(NamedTuple):
    """Days of one workload in pods, minute by minute: what came, what was measured before it, what was expected."""

    demand: Floats
    seen: Floats
    peaks: Floats
    """[minute, level] as the model saw them coming."""
    yesterday: Floats
    """The largest of the same window a day before."""


class Rule(NamedTuple):
    """How the forecast is turned into pods: its sizing, the quantile, and the minutes that a recommendation holds."""

    sizing: Literal["quantile", "worth"]
    quantile: float
    window: int


def evidence_of(days: Days, levels: Sequence[float], start_up: int, rule: Rule) -> list[Evidence]:
    """What each way to decide left short: on all the days, and again on the newer half of them."""
    ways = (reactive_counts(days.seen, TARGETS), *_forecast_counts(days, levels, rule))
    half = len(days.demand) // 2
    return [
        _evidence([bill(counts[:, since:], days.demand[since:], start_up) for counts in ways], len(days.demand) - since)
        for since in (0, half)
    ]


def _forecast_counts(days: Days, levels: Sequence[float], rule: Rule) -> tuple[Floats, Floats]:
    """By the model and by yesterday's load. The HPA's formula at the larger of two demands is its larger answer."""
    if rule.sizing == "worth":
        ours = worth_counts(levels, days.peaks, days.seen, SETTINGS, window=rule.window)
        return ours, seasonal_counts(days.seen, days.yesterday, TARGETS, window=rule.window)
    peak = np.array([np.interp(rule.quantile, levels, row) for row in days.peaks])
    ours, naive = (np.maximum(days.seen, expected) for expected in (peak, days.yesterday))
    return reactive_counts(ours, TARGETS), reactive_counts(naive, TARGETS)


def _evidence(bills: Sequence[Bill], minutes: int) -> Evidence:
    plain, model, naive = bills
    at = int(np.flatnonzero(TARGETS == STATED)[0])
    spent, short = float(plain.spent[at]), float(plain.short[at])
    return Evidence(minutes / DAY, short, record_at(model, spent, short), record_at(naive, spent, short))


def record_at(sweep: Bill, spent: float, short: float) -> Record | None:
    """The shortage where a sweep of settings spends this much, linear between two of them; None outside the sweep.

    The saving is that of its cheapest setting with no more shortage.
    """
    order = np.argsort(sweep.spent, kind="stable")
    costs, shortages = sweep.spent[order], sweep.short[order]
    if not costs[0] <= spent <= costs[-1]:
        return None
    as_safe = costs[np.minimum.accumulate(shortages) <= short + 1e-9]
    saving = 1.0 - float(as_safe[0]) / spent if len(as_safe) else 0.0
    return Record(float(np.interp(spent, costs, shortages)), saving)
