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
    """Per workload and setting: pod-minutes asked for, and the share of the demand above what ready pods carried."""

    spent: Floats
    short: Floats


def reactive_counts(seen: Floats, targets: Floats, at_least: int = 1) -> Floats:
    """The HPA's formula on demand [..., minute] in pods; each setting has a target, the share of a pod that it fills.

    Minutes come first while they pass one by one: what belongs to one of them then lies together.
    """
    ratio = np.moveaxis(seen, -1, 0)[..., None] / targets
    wanted = np.maximum(np.ceil(ratio - 1e-9), at_least)
    counts = np.empty_like(wanted)
    current, recent = wanted[0], np.repeat(wanted[:1], REACTIVE_WINDOW, axis=0)
    for minute, (exact, whole) in enumerate(zip(ratio, wanted, strict=True)):
        within = np.abs(exact - current) <= TOLERANCE * current
        asked = recent[minute % REACTIVE_WINDOW] = np.where(within, current, whole)
        current = counts[minute] = np.maximum(asked, np.minimum(current, recent.max(axis=0)))
    return np.moveaxis(counts, 0, -1)


def worth_counts(
    levels: Sequence[float], peaks: Floats, seen: Floats, settings: Sequence[Setting], *, window: int, at_least: int = 1
) -> Floats:
    """Pods worth having by peaks [..., minute, level] in pods, at each setting; `window` minutes are looked back."""
    add, keep = (
        np.maximum(_worth(levels, peaks, seen, settings, part), at_least).astype(np.float64) for part in (1.0, KEEP)
    )
    counts = np.empty_like(add)
    current, recent = add[0], np.repeat(add[:1], window, axis=0)
    for minute, (asked, kept) in enumerate(zip(add, keep, strict=True)):
        recent[minute % window] = np.maximum(asked, np.minimum(current, kept))
        current = counts[minute] = recent.max(axis=0)
    return np.moveaxis(counts, 0, -1)


def _worth(
    levels: Sequence[float], peaks: Floats, seen: Floats, settings: Sequence[Setting], part: float
) -> NDArray[np.int64]:
    """[minute, ..., setting] pods worth `part` of the price; only what changed since the minute before is computed."""
    price = np.array([part * one.price for one in settings])
    share = np.array([one.share for one in settings])
    known = np.moveaxis(np.concatenate([seen[..., None], peaks], axis=-1), -2, 0)
    news = np.r_[True, (np.diff(known, axis=0) != 0).reshape(len(known) - 1, -1).any(axis=1)]
    fresh = known[news][..., None, :] / share[:, None]
    found = all_worth_having(levels, fresh[..., 1:], price, at_least=fresh[..., 0])
    return np.asarray(found[np.cumsum(news) - 1])


def seasonal_counts(seen: Floats, expected: Floats, targets: Floats, *, window: int, at_least: int = 1) -> Floats:
    """What an earlier day expects of the coming window [..., minute], at least what is seen, filled to a target."""
    wanted = np.ceil(np.maximum(seen, expected)[..., None, :] / targets[:, None] - 1e-9)
    counts = np.maximum(wanted, at_least)
    for back in range(1, window):
        np.maximum(counts[..., back:], wanted[..., :-back], out=counts[..., back:])
    return counts


def bills(counts: Floats, demand: Floats, start_up: int, sinces: Sequence[int] = (0,)) -> list[Bill]:
    """What counts [..., setting, minute] cost under demand [..., minute] in pods, from each of these minutes on."""
    ready = counts.copy()
    for late in range(1, start_up + 1):
        np.minimum(ready[..., late:], counts[..., :-late], out=ready[..., late:])
    came = demand[..., None, :]
    missing = np.maximum(came - ready, 0.0)
    totals = [part.sum(axis=-1) for part in (came[..., since:] for since in sinces)]
    return [
        Bill(counts[..., since:].sum(axis=-1), missing[..., since:].sum(axis=-1) / np.where(total > 0, total, 1.0))
        for since, total in zip(sinces, totals, strict=True)
    ]


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

    sizing: Literal["quantile", "worth"]
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
    if rule.sizing == "worth":
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
