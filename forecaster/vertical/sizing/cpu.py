"""CPU of many containers: the request at which time above it and slack together cost least, and a limit."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import HOUR
from forecaster.vertical.sizing.panel import ContainerPanel, PastDays, SizeColumns, days_of, in_ratio, resembling
from forecaster.vertical.sizing.risk import MishapPrices, Shares, cheapest, evaluated, shares_of

Doubles = NDArray[np.float64]

MAX_THROTTLED = 0.05
"""Throttled or stalled for a larger share of time, a container needs more than it uses: it is not sized down."""
LIMIT_UNCHANGED_WITHIN = 0.2
"""A limit stays while it is as close as this to the chosen one."""
_TINY = 1e-9
_HALVINGS = 24
_EXACT = 6
"""Digits of a core that count when whole cores are chosen."""


def cpu_sizes(panel: ContainerPanel, policy: VerticalPolicy) -> SizeColumns:
    """Requests, limits and their risks until the next change (`policy.horizon`)."""
    return cpu_sizes_of(panel, *coming_shares(panel, policy.horizon), policy)


def cpu_sizes_of(panel: ContainerPanel, days: PastDays, shares: Shares, policy: VerticalPolicy) -> SizeColumns:
    """Requests, limits and their risks where the coming time is like these days."""
    request, unchanged = _request(panel, shares, policy)
    limit = cpu_limit(panel, shares, request, policy)
    if policy.static_cpus:
        request = limit = np.maximum(np.ceil(np.round(request, _EXACT)), 1.0)
        unchanged = request == panel.cpu_request
    return evaluated(
        request,
        limit,
        shares.share_above,
        shares,
        days=days.known,
        unchanged=unchanged & _limit_stays(panel, limit, policy),
        mechanism=np.zeros(len(request), np.intp),
    )


def coming_shares(panel: ContainerPanel, horizon: timedelta) -> tuple[PastDays, Shares]:
    """The days that resemble the coming one, and the share of its time above each level."""
    days = resembling(days_of(panel.cpu, panel.points, panel.ahead(horizon)), panel.likeness)
    past = shares_of(days)
    return days, Shares(past.values * panel.growth[:, None], past.above)


def cpu_limit(panel: ContainerPanel, shares: Shares, request: Doubles, policy: VerticalPolicy) -> Doubles:
    """[row] the limit that goes with a request; NaN for none."""
    match policy.cpu_limit:
        case "none":
            return np.full(len(request), np.nan)
        case "keep-ratio":
            return in_ratio(request, panel.cpu_request, panel.cpu_limit)
        case "throttle-target":
            return np.maximum(_limit_for(shares, policy.throttle_target), request)


def _request(panel: ContainerPanel, shares: Shares, policy: VerticalPolicy) -> tuple[Doubles, NDArray[np.bool_]]:
    """[row] the cheapest request, and whether it is today's."""
    hours = policy.horizon / HOUR
    chosen = cheapest(
        shares.values,
        shares.above,
        shares.mean(),
        MishapPrices(policy.throttle_price * hours, policy.change_price),
        hours,
        np.column_stack([panel.cpu_request, shares.share_above(panel.cpu_request)]),
    )
    level = np.maximum(chosen.level, policy.min_cpu)
    if panel.throttled is not None:
        hidden = panel.throttled > MAX_THROTTLED
        level = np.where(hidden, np.fmax(level, panel.cpu_request), level)
    return level, level == panel.cpu_request


def _limit_stays(panel: ContainerPanel, limit: Doubles, policy: VerticalPolicy) -> NDArray[np.bool_]:
    """[row] whether today's limit will do as well; exclusive CPUs need the very number."""
    within = 0.0 if policy.static_cpus else LIMIT_UNCHANGED_WITHIN
    with np.errstate(invalid="ignore"):
        near = np.abs(panel.cpu_limit - limit) <= within * limit + _TINY
    return np.asarray(near | (np.isnan(limit) & np.isnan(panel.cpu_limit)))


def _limit_for(shares: Shares, target: float) -> Doubles:
    """[row] the lowest limit above which no more than this share of the used core-hours lies, by halving."""
    low, high = np.zeros(len(shares.values)), np.fmax.reduce(shares.values, axis=1)
    most = target * shares.mean()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = shares.short(middle) <= most
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)
