"""Counts of many workloads at many settings: what the HPA, our policy and yesterday's load would have asked for.

Arrays are [..., minute], counts [..., setting, minute]; what stands before are workloads. The reactive rule is the
HPA's with its tolerance and its window of stabilization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.worth import KEEP, REACH, all_worth_having, worth_of_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TOLERANCE = 0.1
REACTIVE_WINDOW = 5
"""Minutes that the HPA looks back before it gives pods back."""


TABLE = 200
"""Counts apart up to which every one is looked at; beyond that halving the distance is quicker."""


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
    both = [
        _worth(levels, *one, settings)
        for one in zip(peaks.reshape(-1, *peaks.shape[-2:]), seen.reshape(-1, seen.shape[-1]), strict=True)
    ]
    shape = (2, seen.shape[-1], *seen.shape[:-1], len(settings))
    add, keep = np.maximum(np.stack(both, axis=2).reshape(shape), at_least)
    counts = np.empty_like(add)
    current, recent = add[0], np.repeat(add[:1], window, axis=0)
    for minute, (asked, kept) in enumerate(zip(add, keep, strict=True)):
        recent[minute % window] = np.maximum(asked, np.minimum(current, kept))
        current = counts[minute] = recent.max(axis=0)
    return np.moveaxis(counts, 0, -1)


def _worth(levels: Sequence[float], peaks: Floats, seen: Floats, settings: Sequence[Setting]) -> Floats:
    """[2, minute, setting] pods of one workload worth their price, and worth keeping.

    Computed where something changed since the minute before. What a next pod is worth is the same at every price.
    """
    known = np.column_stack([seen, peaks])
    news = np.r_[True, (np.diff(known, axis=0) != 0).any(axis=1)]
    found = np.empty((2, int(news.sum()), len(settings)))
    for share in {one.share for one in settings}:
        these = [i for i, one in enumerate(settings) if one.share == share]
        prices = np.array([settings[i].price for i in these])
        found[..., these] = _worth_at(levels, known[news] / share, np.stack([prices, KEEP * prices]))
    return found[:, np.cumsum(news) - 1]


def _worth_at(levels: Sequence[float], known: Floats, prices: Floats) -> Floats:
    """[part, minute, price] for prices [part, price]: by what each pod is worth, where there are not too many."""
    floor, peaks = known[:, 0], known[:, 1:]
    least = np.floor(np.maximum(peaks[:, 0], floor))
    reach = int((np.ceil(REACH * np.maximum(peaks[:, -1], floor)) - least).max())
    if reach > TABLE:
        found = all_worth_having(levels, peaks[:, None], prices[:, None], at_least=floor[:, None])
        return np.asarray(found, np.float64)
    worth = worth_of_each(levels, peaks, least, reach, at_least=floor)
    more = np.stack([np.count_nonzero(worth > price, axis=-1) for price in prices.ravel()], axis=-1)
    return np.asarray(least[:, None] + more.reshape(len(worth), *prices.shape).swapaxes(0, 1))


def seasonal_counts(seen: Floats, expected: Floats, targets: Floats, *, window: int, at_least: int = 1) -> Floats:
    """What an earlier day expects of the coming window [..., minute], at least what is seen, filled to a target."""
    wanted = np.ceil(np.maximum(seen, expected)[..., None, :] / targets[:, None] - 1e-9)
    counts = np.maximum(wanted, at_least)
    for back in range(1, window):
        np.maximum(counts[..., back:], wanted[..., :-back], out=counts[..., back:])
    return counts
