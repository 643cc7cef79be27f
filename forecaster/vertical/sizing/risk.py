"""What a size risks and leaves unused by the past days, and the level at which size and risk cost least together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.sizing.panel import SizeColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    from forecaster.vertical.sizing.distributions import Peaks, Shares


@dataclass(frozen=True, slots=True)
class MishapPrices:
    """Relative to the container's own level, so that one price suits a small and a large container.

    `mishap` is paid once for each expected mishap, `change` once for a change, and every hour costs the size itself.
    """

    mishap: float
    """Hours of the container's resource that a mishap costs: an OOM kill, or the coming interval above the request."""
    change: float = 0.0
    """Hours of the container's resource that a change costs."""


@dataclass(frozen=True, slots=True, eq=False)
class CheapestLevel:
    """[row] the level, the chance of a mishap at it, and whether today's level was kept because a change costs more."""

    level: Doubles
    chance: Doubles
    kept: NDArray[np.bool_]


def cheapest(
    levels: Doubles, chances: Doubles, scale: Doubles, prices: MishapPrices, hours: float, today: Doubles | None = None
) -> CheapestLevel:
    """The cheapest of the `levels` [row, level] for so many hours.

    `chances` belong to the levels, `scale` [row] is the level that prices are relative to. `today` [row, 2] is today's
    level and its chance, NaN for none; it is kept unless another is cheaper by more than the price of a change.
    """
    cost = levels * hours + prices.mishap * scale[:, None] * chances
    best = np.argmin(np.where(np.isnan(cost), np.inf, cost), axis=1)
    rows = np.arange(len(levels))
    level, chance = levels[rows, best], chances[rows, best]
    if today is None:
        return CheapestLevel(level, chance, np.zeros(len(levels), bool))
    staying = today[:, 0] * hours + prices.mishap * scale * today[:, 1]
    kept = staying <= cost[rows, best] + prices.change * scale
    return CheapestLevel(np.where(kept, today[:, 0], level), np.where(kept, today[:, 1], chance), kept)


def share_above(shares: Shares, level: Doubles) -> Doubles:
    """[row] the share of time above a level; NaN without one."""
    return np.where(np.isnan(level), np.nan, shares.share_above(np.nan_to_num(level)))


def chance_above(peaks: Peaks, level: Doubles, days: float) -> Doubles:
    """[row] the chance that a peak passes a level; NaN without one."""
    return np.where(np.isnan(level), np.nan, peaks.chance_above(np.nan_to_num(level, nan=1.0)[:, None], days)[:, 0])


def cpu_evaluated(
    request: Doubles, limit: Doubles, shares: Shares, days: Doubles, kept: NDArray[np.bool_]
) -> SizeColumns:
    """Risks of CPU are shares of time."""
    known = days >= 1
    return SizeColumns(
        request=np.where(known, request, np.nan),
        limit=np.where(known, limit, np.nan),
        over_request=np.where(known, share_above(shares, request), np.nan),
        over_limit=np.where(known, share_above(shares, limit), np.nan),
        slack=np.where(known, shares.slack(request), np.nan),
        days=days,
        kept=kept,
        mechanism=np.zeros(len(request), np.intp),
    )


def memory_evaluated(
    request: Doubles,
    limit: Doubles,
    ahead: Peaks,
    days_ahead: float,
    shares: Shares,
    *,
    days: Doubles,
    kept: NDArray[np.bool_],
    mechanism: NDArray[np.intp],
) -> SizeColumns:
    """Risks of memory are chances of a peak."""
    known = days >= 1
    return SizeColumns(
        request=np.where(known, request, np.nan),
        limit=np.where(known, limit, np.nan),
        over_request=np.where(known, chance_above(ahead, request, days_ahead), np.nan),
        over_limit=np.where(known, chance_above(ahead, limit, days_ahead), np.nan),
        slack=np.where(known, shares.slack(request), np.nan),
        days=days,
        kept=kept,
        mechanism=mechanism,
    )
