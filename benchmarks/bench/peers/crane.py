"""The two predictions of crane's effective HPA, after its documentation: a percentile with a margin, and a period."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay

    Floats = NDArray[np.float64]

HOUR, DAY = 60, 1440
PERCENTILE, HALF_LIFE, MARGIN = 0.99, DAY, 1.15
CYCLES, PERIODIC_MARGIN, WINDOW = 7, 1.05, 10


def percentile(replay: Replay, start_up: int) -> Floats:  # noqa: ARG001  the same for every start-up
    """The 99th percentile [tick] of the demand so far with a half-life of a day and 15 % more, renewed every hour."""
    known, past = replay.known, len(replay.past)
    hours = [_weighted(known[: past + tick]) * MARGIN for tick in range(0, len(replay.demand), HOUR)]
    return np.repeat(hours, HOUR)[: len(replay.demand)]


def _weighted(known: Floats) -> float:
    """The percentile of the measured values, the newer ones counting more."""
    ages = np.arange(len(known))[::-1]
    measured = ~np.isnan(known)
    values, weights = known[measured], 0.5 ** (ages[measured] / HALF_LIFE)
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(share, PERCENTILE)])


def periodic(replay: Replay, start_up: int) -> Floats:
    """The largest demand [tick] in the coming window at the same time of the last seven days, and 5 % more."""
    known, past = replay.known, len(replay.past)
    reach = start_up + WINDOW
    peaks = np.fmax.reduce(np.lib.stride_tricks.sliding_window_view(known, reach), axis=1)
    ticks = past + np.arange(len(replay.demand))
    cycles = [cycle for cycle in range(1, CYCLES + 1) if past - cycle * DAY >= 0]
    same_time = [peaks[ticks - cycle * DAY] for cycle in cycles]
    return np.asarray(np.fmax.reduce(same_time) * PERIODIC_MARGIN)
