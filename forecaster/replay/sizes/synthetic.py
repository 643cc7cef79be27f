"""Containers that misbehave in known ways: a leak, a level that jumps, a weekly peak, a batch at night."""

from __future__ import annotations

import numpy as np

from forecaster.replay.sizes.load import POINTS, Load

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
