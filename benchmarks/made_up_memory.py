"""Made-up memory of containers, each a story that recorded series tell too seldom."""

from __future__ import annotations

import numpy as np

from forecaster.domain.workload import GIB
from forecaster.replay.size_replay import POINTS_AN_HOUR, STEPS_A_DAY, Load

DAYS = 42
WARM_DAYS = 14


def synthetic_memory(seed: int = 8) -> Load:
    """Memory in bytes; every row is one story of six weeks."""
    rng = np.random.default_rng(seed)
    stories = {
        "leak, restarted on Sundays": _leak(),
        "level doubles after three weeks": _level(),
        "peak on Mondays": _weekly(rng),
        "batch every night": _nightly(rng),
        "flat": np.full(DAYS * STEPS_A_DAY, 0.5),
    }
    noise = rng.normal(1.0, 0.02, (len(stories), DAYS * STEPS_A_DAY))
    return Load("memory", tuple(stories), np.stack(list(stories.values())) * noise * GIB, WARM_DAYS * STEPS_A_DAY)


def weekly_peak(seed: int = 8) -> Load:
    """Return only the container with a peak on Mondays."""
    every = synthetic_memory(seed)
    row = every.names.index("peak on Mondays")
    return Load("memory", every.names[row : row + 1], every.demand[row : row + 1], every.warm)


def _leak() -> np.ndarray:
    day = np.arange(DAYS * STEPS_A_DAY) / STEPS_A_DAY % 7
    return 0.4 + 0.15 * day


def _level() -> np.ndarray:
    return np.where(np.arange(DAYS * STEPS_A_DAY) < 21 * STEPS_A_DAY, 0.4, 0.8)


def _weekly(rng: np.random.Generator) -> np.ndarray:
    """Three hours on Monday morning take three times as much, give or take a tenth."""
    level = np.full(DAYS * STEPS_A_DAY, 0.5)
    for week in range(DAYS // 7):
        start = week * 7 * STEPS_A_DAY + 9 * POINTS_AN_HOUR
        level[start : start + 3 * POINTS_AN_HOUR] = 1.5 * rng.normal(1.0, 0.03)
    return level


def _nightly(rng: np.random.Generator) -> np.ndarray:
    level = np.full(DAYS * STEPS_A_DAY, 0.3)
    for day in range(DAYS):
        start = day * STEPS_A_DAY + 2 * POINTS_AN_HOUR
        level[start : start + POINTS_AN_HOUR] = 1.0 * rng.normal(1.0, 0.05)
    return level
