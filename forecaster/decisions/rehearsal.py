"""What decisions would have cost on days that are over: many workloads at many settings at once.

Arrays are [..., minute], counts [..., setting, minute]; what stands before are workloads. Demand is open-loop: it does
not depend on the pods that there were. A pod that is asked for serves `start_up` minutes later, one that is given back
is gone at once, and what is measured in a minute is known in the next one. The reactive rule is the HPA's with its
tolerance and its window of stabilization.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from forecaster.decisions.gate import Evidence, Record
from forecaster.decisions.sweeps import SETTINGS, STATED, TARGETS, reactive_counts, seasonal_counts, worth_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DAY = 1440


class Bill(NamedTuple):
    """Per workload and setting: pod-minutes asked for, and the share of the demand above what ready pods carried."""

    spent: Floats
    short: Floats


def bills(counts: Floats, demand: Floats, start_up: int, sinces: Sequence[int] = (0,)) -> list[Bill]:
    """What counts [..., setting, minute] cost under demand [..., minute] in pods, from each of these minutes on."""
    came = demand[..., None, :]
    missing = np.maximum(came - _ready(counts, start_up), 0.0)
    totals = [part.sum(axis=-1) for part in (came[..., since:] for since in sinces)]
    return [
        Bill(counts[..., since:].sum(axis=-1), missing[..., since:].sum(axis=-1) / np.where(total > 0, total, 1.0))
        for since, total in zip(sinces, totals, strict=True)
    ]


def _ready(counts: Floats, start_up: int) -> Floats:
    """The pods that serve: the least count of the last minutes, by halves of the time."""
    ready, known = counts, 1
    while known <= start_up:
        later = min(known, start_up + 1 - known)
        ready, before = ready.copy(), ready
        np.minimum(before[..., later:], before[..., :-later], out=ready[..., later:])
        known += later
    return ready


class Days(NamedTuple):
    """Days in pods, minute by minute, of one workload or of many: what came, was measured before it, was expected."""

    demand: Floats
    seen: Floats
    peaks: Floats
    """[..., minute, level] as the model saw them coming."""
    yesterday: Floats
    """The largest of the same window a day before."""


class Rule(NamedTuple):
    """How the forecast is turned into pods: its sizing, the quantile, and the minutes that a recommendation holds."""

    sizing: Literal["quantile", "newsvendor"]
    quantile: float
    window: int


def evidence_of(days: Days, levels: Sequence[float], start_up: int, rule: Rule) -> list[Evidence]:
    """What each way to decide left short of one workload: on all the days, and again on the newer half of them."""
    return evidence_of_all(Days(*(part[None] for part in days)), levels, start_up, rule)[0]


def evidence_of_all(days: Days, levels: Sequence[float], start_up: int, rule: Rule) -> list[list[Evidence]]:
    """The same for days of many workloads [workload, minute], each with its own evidence."""
    minutes = days.demand.shape[-1]
    sinces = (0, minutes // 2)
    ways = [bills(counts, days.demand, start_up, sinces) for counts in _all_counts(days, levels, rule)]
    return [
        [
            _evidence([Bill(way[part].spent[row], way[part].short[row]) for way in ways], minutes - since)
            for part, since in enumerate(sinces)
        ]
        for row in range(len(days.demand))
    ]


def _all_counts(days: Days, levels: Sequence[float], rule: Rule) -> Sequence[Floats]:
    """By measured demand alone, by the model, and by yesterday's load.

    The HPA's formula at the larger of two demands is its larger answer.
    """
    if rule.sizing == "newsvendor":
        ours = worth_counts(levels, days.peaks, days.seen, SETTINGS, window=rule.window)
        naive = seasonal_counts(days.seen, days.yesterday, TARGETS, window=rule.window)
        return reactive_counts(days.seen, TARGETS), ours, naive
    expected = (quantile_of(levels, days.peaks, rule.quantile), days.yesterday)
    asked = np.stack([days.seen, *(np.maximum(days.seen, one) for one in expected)])
    return list(reactive_counts(asked, TARGETS))


def quantile_of(levels: Sequence[float], peaks: Floats, quantile: float) -> Floats:
    """[...] linear between the two levels around the quantile; the nearest one beyond them."""
    right = min(max(bisect_left(levels, quantile), 1), len(levels) - 1)
    share = (quantile - levels[right - 1]) / (levels[right] - levels[right - 1])
    share = min(max(share, 0.0), 1.0)
    return np.asarray((1.0 - share) * peaks[..., right - 1] + share * peaks[..., right])


def _evidence(found: Sequence[Bill], minutes: int) -> Evidence:
    plain, model, naive = found
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
