"""The curve of choices: sizes with what each risks and wastes, for whoever wants another point than the price's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.vertical.choice.cpu import coming_shares
from forecaster.vertical.choice.days import days_of
from forecaster.vertical.choice.memory import DAY, coming_peaks
from forecaster.vertical.choice.shares import shares_of

if TYPE_CHECKING:
    from datetime import timedelta

    from forecaster.vertical.choice.seen import Seen

RISKS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
_HALVINGS = 40


class Point(NamedTuple):
    """One size: the share of time above it, or for memory the chance of a peak above it, and expected idle hours."""

    size: float
    risk: float
    idle_hours: float


def cpu_curve(seen: Seen, row: int, horizon: timedelta) -> list[Point]:
    """Requests of one container in cores, from the riskiest to the safest; empty where nothing is known."""
    _, shares = coming_shares(seen.row(row), horizon)
    if not np.isfinite(shares.values).any():
        return []
    sizes = [shares.quantile(1 - risk) for risk in RISKS]
    hours = horizon.total_seconds() / 3600
    return [Point(float(s[0]), float(shares.share_above(s)[0]), float(shares.idle(s)[0]) * hours) for s in sizes]


def memory_curve(seen: Seen, row: int, horizon: timedelta) -> list[Point]:
    """Limits of one container in bytes, from the riskiest to the safest; empty where nothing is known."""
    one = seen.row(row)
    days = days_of(one.memory, one.points, one.ahead(horizon))
    if not days.known[0]:
        return []
    ahead, _ = coming_peaks(one, days, horizon)
    shares, count, hours = shares_of(days), max(horizon / DAY, 1.0), horizon.total_seconds() / 3600
    highest = float(np.exp(np.where(ahead.weights > 0, ahead.logs, -np.inf).max()))

    def risk_of(size: float) -> float:
        return float(ahead.chance_above(np.array([[size]]), count)[0, 0])

    def size_at(risk: float) -> float:
        low, high = 0.0, highest * 16
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if risk_of(middle) > risk else (low, middle)
        return high

    sizes = [size_at(risk) for risk in RISKS]
    return [Point(size, risk_of(size), float(shares.idle(np.array([size]))[0]) * hours) for size in sizes]
