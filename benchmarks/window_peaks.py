"""The largest value of the minutes 2 to 8 ahead at one-minute freshness: what a reserve has to cover.

Beside the direct quantiles of the maximum stand the largest quantiles of its steps, which is what one gets from a
forecast of steps, and the last value held. Loss is the pinball loss of p80 and p90, where decisions are taken.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from models import Panel, StepWindow, create
from models.evaluate import coverage, pinball

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = (0.5, 0.8, 0.9, 0.95)
DECIDING = slice(1, 3)
WINDOW = StepWindow(2, 8)
MINUTE = timedelta(minutes=1)
DAYS = 14


def window_peaks(bench: Path, *, quick: bool) -> pd.DataFrame:
    """Per way of asking: loss relative to the last value held (geometric mean over series), and coverage."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import traces  # noqa: PLC0415  lies outside this repository

    series = traces.load([traces.SHARED], 60, only_native=60)[: 3 if quick else None]
    measured = [of_series(traces, one, 10 if quick else 40) for one in series]
    losses = np.array([loss for loss, _ in measured])
    covered = np.mean([hits for _, hits in measured], axis=0)
    relative = np.exp(np.log(losses / losses[:, -1:]).mean(axis=0))
    columns = {f"cov{round(100 * level)}": covered[:, i] for i, level in enumerate(LEVELS)}
    ways = ("adaptive, direct", "adaptive, largest of its steps", "ridge, direct", "last value held")
    return pd.DataFrame({"loss_rel": relative, **columns}, index=pd.Index(ways, name="way"))


def of_series(traces, one, count: int) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN001  types of the bench
    """Summed loss [way] and coverage [way, level] of one series."""
    loss, hits = np.zeros(4), []
    for origin in traces.origins(one, count, WINDOW.last):
        actual = one.y[origin + WINDOW.first - 1 : origin + WINDOW.last]
        if np.isnan(actual).any():
            continue
        asked = ways(traces.history(one, origin, DAYS))
        peak = actual.max(keepdims=True)[None]
        loss += [pinball(peak, found[None, :, None], LEVELS)[0, DECIDING].sum() for found in asked]
        hits.append([coverage(peak, found[None, :, None])[0] for found in asked])
    return loss, np.mean(hits, axis=0)


def ways(history: np.ndarray) -> list[np.ndarray]:
    """[level] quantiles of the peak by each way of asking."""
    panel = Panel.cleaned(history[None], datetime(2026, 1, 5, tzinfo=UTC), MINUTE, ("one",))
    ours, ridge, held = (create(name).fit(panel) for name in ("adaptive", "ridge", "last-value"))
    steps = ours.forecast(WINDOW.last, LEVELS).values[0, :, WINDOW.first - 1 :].max(axis=1)
    direct = [fitted.forecast_peak(WINDOW, LEVELS).values[0] for fitted in (ours, ridge, held)]
    return [direct[0], steps, direct[1], direct[2]]
