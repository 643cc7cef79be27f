"""The first day of a series: how a forecast does while there are only hours of history.

Each recorded series is taken as if it were born where the part begins that no prior has seen (after 60 %), and an hour
is forecast at a dozen ages up to a day. The yardstick is the better of last value and seasonal naive; before a day is
over seasonal naive has nothing to say but the last value.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from models import LastValue, Panel, create
from models.losses import pinball

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = (0.5, 0.9, 0.95)
AGES = tuple(timedelta(minutes=m) for m in (20, 30, 40, 60, 90, 120, 180, 300, 480, 720, 1080, 1440))
HOUR = timedelta(hours=1)
BORN_AT = 0.6


def cold_start(bench: Path, *, quick: bool) -> str:
    """Loss relative to the last value held: geometric mean over series, by age."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import traces  # noqa: PLC0415  lies outside this repository

    series = traces.sample(traces.load([traces.SHARED]), 24 if quick else None, 0)
    losses = np.array([loss for one in series if (loss := losses_of(one.y, one.step_s)) is not None])
    total = losses.sum(axis=1)
    young = losses[:, [age <= HOUR for age in AGES]].sum(axis=1)
    return f"""## The first day

sQL relative to the last value held: {ratio(total):.3f} over the first day (limit 0.85), {ratio(young):.3f} within the
first hour (limit 1.00), {len(losses)} series.
"""


def losses_of(values: np.ndarray, step_seconds: int) -> np.ndarray | None:
    """[age, (adaptive, last value)] summed loss of one series; None where a day is too flat or too short to tell."""
    born, step = int(BORN_AT * len(values)), timedelta(seconds=step_seconds)
    ages = [max(2, age // step) for age in AGES]
    ahead = HOUR // step
    known = values[born : born + ages[-1] + ahead]
    if len(known) < ages[-1] + ahead or np.isnan(known).mean() > 0.2 or not np.nanstd(known) > 0:
        return None
    return np.array([[loss(model, known, age, ahead, step) for model in ("adaptive", "last-value")] for age in ages])


def loss(model: str, known: np.ndarray, age: int, ahead: int, step: timedelta) -> float:
    """Summed pinball loss of one forecast; nothing where there is no sample yet."""
    past = Panel.cleaned(known[None, :age], datetime(2026, 1, 5, tzinfo=UTC), step, ("one",))
    forecast = (LastValue() if model == "last-value" else create(model)).fit(past).forecast(ahead, LEVELS)
    if not len(forecast.keys):
        return 0.0
    return float(np.nansum(pinball(known[None, age : age + ahead], forecast.values, LEVELS)))


def ratio(losses: np.ndarray) -> float:
    """Geometric mean over series of ours against the last value."""
    some = losses[(losses > 0).all(axis=1)]
    return float(np.exp(np.log(some[:, 0] / some[:, 1]).mean()))
