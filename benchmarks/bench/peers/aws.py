"""Predictive scaling as cloud providers describe it: hourly forecasts from two weeks, capacity five minutes early."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay

HOUR, DAY, WEEK = 60, 1440, 10080
BUFFER = 5
"""Ticks before an hour at which its capacity is launched, beside the start-up of a pod."""


def expected(replay: Replay, start_up: int) -> NDArray[np.float64]:
    """The mean demand [tick] of the hour on the days before; days of the same weekday count twice."""
    known, past, first = replay.known, len(replay.past), replay.start // 60
    early = BUFFER + start_up
    forecasts: dict[int, float] = {}
    out = np.empty(len(replay.demand))
    for tick in range(len(out)):
        for minute in (first + tick, first + tick + early):
            if minute // HOUR not in forecasts:
                begin = minute // HOUR * HOUR - first + past
                forecasts[minute // HOUR] = _hour(known[: past + tick], begin)
        out[tick] = np.fmax(forecasts[(first + tick) // HOUR], forecasts[(first + tick + early) // HOUR])
    return out


def _hour(known: NDArray[np.float64], begin: int) -> float:
    """Weighted mean of the hours that began a whole number of days before tick `begin`; NaN without any."""
    means, weights = [], []
    for day in range(1, 15):
        start = begin - day * DAY
        hour = known[start : start + HOUR] if start >= 0 and start + HOUR <= len(known) else known[:0]
        if len(hour) and not np.isnan(hour).all():
            means.append(float(np.nanmean(hour)))
            weights.append(2.0 if day * DAY % WEEK == 0 else 1.0)
    return float(np.average(means, weights=weights)) if means else float("nan")
