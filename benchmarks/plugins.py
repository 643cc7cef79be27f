"""Plug-ins for benches that ask one series at a time: `benchmarks.plugins:forecaster`, `:policy` and `:learned`.

A forecaster answers for many histories at once, a policy at every sync with the pods it wants. Our own bench
(`./dev bench`) decides all series together instead.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bench.accuracy import quantiles_of
from benchmarks.bench_learned import BenchLearned
from benchmarks.bench_policy import BenchPolicy
from models import Panel, create

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models import Model


class BenchForecaster:
    """One of our models behind the protocol of the bench: histories of one batch become one panel.

    The cuts of a batch lie at different times, so the panel has no common clock and takes the newest one; our models
    that are measured here use time differences only (the same clock time on earlier days), which this leaves alone.
    """

    accepts_nan = True

    def __init__(self, model: Model) -> None:
        self.name = model.name.replace("-", "_")
        self.model = model

    def forecast(
        self,
        histories: Sequence[np.ndarray],
        step_seconds: int,
        horizon: int,
        levels: Sequence[float],
        ends: Sequence[int],
    ) -> np.ndarray:
        length = max(map(len, histories))
        values = np.full((len(histories), length), np.nan)
        for row, history in zip(values, histories, strict=True):
            row[length - len(history) :] = history
        step = timedelta(seconds=step_seconds)
        start = datetime.fromtimestamp(max(ends), UTC) - length * step
        panel = Panel.cleaned(values, start, step, [str(i) for i in range(len(histories))])
        return quantiles_of(self.model, panel, horizon, levels)


def forecaster() -> BenchForecaster:
    """The model named by FORECASTER_MODEL, otherwise the one the service uses."""
    return BenchForecaster(create(os.environ.get("FORECASTER_MODEL", "adaptive")))


def policy() -> BenchPolicy:
    """Our decisions, one point of the sweep."""
    return BenchPolicy()


def learned() -> list[BenchLearned]:
    """Both learned policies, each with the weights that ship."""
    return [BenchLearned("tabular"), BenchLearned("fitted")]
