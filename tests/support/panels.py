"""Builders of panels with good defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from models import Panel

if TYPE_CHECKING:
    from collections.abc import Sequence

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)
HOUR = timedelta(hours=1)


def panel(*series: Sequence[float], step: timedelta = HOUR, start: datetime = MONDAY) -> Panel:
    """A panel of hourly series called s0, s1, ..."""
    return Panel(np.array(series, dtype=np.float64), start, step, tuple(f"s{i}" for i in range(len(series))))


def daily_waves(series: int = 2, days: int = 10, step: timedelta = HOUR, noise: float = 0.1, seed: int = 1) -> Panel:
    """Day waves around 2 with noise."""
    rng = np.random.default_rng(seed)
    bins = np.arange(days * (timedelta(days=1) // step))
    wave = 2 + np.sin(2 * np.pi * bins * (step / timedelta(days=1)))
    values = np.maximum(0, wave + noise * rng.standard_normal((series, len(bins))))
    return Panel(values, MONDAY, step, tuple(f"s{i}" for i in range(series)))
