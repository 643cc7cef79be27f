"""Loads of a replay of sizes: what was measured of one pod of each workload, or made up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.replay.size_replay import POINTS, Load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.replay.size_replay import Resource


WARM_SHARE = 0.5
"""Half of what is known is read before the first decision, at most eight days."""
MOST_WARM = 8 * POINTS


def measured_load(resource: Resource, names: Sequence[str], usage: NDArray[np.float64]) -> Load | None:
    """The rows of `usage` [workload, time] of which half a day is known on both sides; None where there are none."""
    known = ~np.isnan(usage)
    begin = int(np.argmax(known.any(axis=0))) if known.any() else usage.shape[1]
    usage, known = usage[:, begin:], known[:, begin:]
    warm = min(int(usage.shape[1] * WARM_SHARE), MOST_WARM)
    enough = [part.sum(axis=1) >= POINTS // 2 for part in (known[:, :warm], known[:, warm:])]
    rows = np.flatnonzero(enough[0] & enough[1])
    if not rows.size:
        return None
    return Load(resource, tuple(names[row] for row in rows.tolist()), usage[rows], warm)


DAYS = 42
WARM_DAYS = 14
GIB = 2.0**30
_HOUR = POINTS // 24


def synthetic_memory(seed: int = 8) -> Load:
    """Memory in bytes; every row is one story of six weeks."""
    rng = np.random.default_rng(seed)
    stories = {
        "leak, restarted on Sundays": _leak(),
        "level doubles after three weeks": _level(),
        "peak on Mondays": _weekly(rng),
        "batch every night": _nightly(rng),
        "flat": np.full(DAYS * POINTS, 0.5),
    }
    noise = rng.normal(1.0, 0.02, (len(stories), DAYS * POINTS))
    return Load("memory", tuple(stories), np.stack(list(stories.values())) * noise * GIB, WARM_DAYS * POINTS)


def weekly_peak(seed: int = 8) -> Load:
    """Only the container with a peak on Mondays."""
    every = synthetic_memory(seed)
    row = every.names.index("peak on Mondays")
    return Load("memory", every.names[row : row + 1], every.wanted[row : row + 1], every.warm)


def _leak() -> np.ndarray:
    day = np.arange(DAYS * POINTS) / POINTS % 7
    return 0.4 + 0.15 * day


def _level() -> np.ndarray:
    return np.where(np.arange(DAYS * POINTS) < 21 * POINTS, 0.4, 0.8)


def _weekly(rng: np.random.Generator) -> np.ndarray:
    """Three hours on Monday morning take three times as much, give or take a tenth."""
    level = np.full(DAYS * POINTS, 0.5)
    for week in range(DAYS // 7):
        start = week * 7 * POINTS + 9 * _HOUR
        level[start : start + 3 * _HOUR] = 1.5 * rng.normal(1.0, 0.03)
    return level


def _nightly(rng: np.random.Generator) -> np.ndarray:
    level = np.full(DAYS * POINTS, 0.3)
    for day in range(DAYS):
        start = day * POINTS + 2 * _HOUR
        level[start : start + _HOUR] = 1.0 * rng.normal(1.0, 0.05)
    return level
