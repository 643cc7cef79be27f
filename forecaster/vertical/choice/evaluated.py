"""Sizes that somebody chose, with the risks and the waste that the past days say they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.choice.seen import Sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.vertical.choice.peaks import Peaks
    from forecaster.vertical.choice.shares import Shares

    Doubles = NDArray[np.float64]


def share_above(shares: Shares, level: Doubles) -> Doubles:
    """[row] the share of time above a level; NaN without one."""
    return np.where(np.isnan(level), np.nan, shares.share_above(np.nan_to_num(level)))


def chance_above(peaks: Peaks, level: Doubles, days: float) -> Doubles:
    """[row] the chance that a peak passes a level; NaN without one."""
    return np.where(np.isnan(level), np.nan, peaks.chance_above(np.nan_to_num(level, nan=1.0)[:, None], days)[:, 0])


def cpu_evaluated(request: Doubles, limit: Doubles, shares: Shares, days: Doubles, kept: NDArray[np.bool_]) -> Sizes:
    """Risks of CPU are shares of time."""
    known = days >= 1
    return Sizes(
        request=np.where(known, request, np.nan),
        limit=np.where(known, limit, np.nan),
        over_request=np.where(known, share_above(shares, request), np.nan),
        over_limit=np.where(known, share_above(shares, limit), np.nan),
        idle=np.where(known, shares.idle(request), np.nan),
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
) -> Sizes:
    """Risks of memory are chances of a peak."""
    known = days >= 1
    return Sizes(
        request=np.where(known, request, np.nan),
        limit=np.where(known, limit, np.nan),
        over_request=np.where(known, chance_above(ahead, request, days_ahead), np.nan),
        over_limit=np.where(known, chance_above(ahead, limit, days_ahead), np.nan),
        idle=np.where(known, shares.idle(request), np.nan),
        days=days,
        kept=kept,
        mechanism=mechanism,
    )
