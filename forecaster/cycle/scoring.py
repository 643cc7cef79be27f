"""Scoring: compare matured forecasts with measured peaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.forecasts import Forecasts
from forecaster.demand.alignment import rows_among
from forecaster.domain.policies import Policies
from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import Signal
from forecaster.domain.window import MINUTE, Window
from forecaster.forecasting.peaks import LEVELS, MEDIAN, PeakForecasts, at_quantile
from forecaster.ports import Histories

SCORING_ROUNDS = 10
"""One in this number of a cycle's forecasts is scored, in turn: enough to judge, cheap to hold for hours and to store.
"""
_MEDIAN = LEVELS.index(MEDIAN)
MIN_KNOWN_SHARE = 0.5
"""A peak counts as measured when at least this share of its minutes is known."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Forecasts that wait for their time."""

    made_at: datetime
    signal: Signal
    peaks: PeakForecasts


@dataclass(slots=True)
class Scoring:
    """Keeps forecasts until they mature."""

    pending: list[Pending] = field(default_factory=list)
    turn: int = 0

    def matured(
        self, history: Histories, forecasts: Forecasts, policies: Policies, now: datetime
    ) -> list[ForecastScore]:
        """Score the forecasts with a window that is over, then add this cycle's.

        Of these only those that will be scored are kept: an owner may look half a day ahead. Where the clock was set
        back, those that were made later than now are dropped: they would wait as long.
        """
        self.turn = (self.turn + 1) % SCORING_ROUNDS
        ripe = [forecast for forecast in self.pending if forecast.peaks.until <= now]
        self.pending = [forecast for forecast in self.pending if forecast.made_at <= now < forecast.peaks.until]
        self.pending += [
            Pending(now, signal, peaks.sample(self.turn, SCORING_ROUNDS))
            for signal, spans in forecasts.peaks.items()
            for peaks in spans.values()
        ]
        windows = {signal: history.window(signal, MINUTE) for signal in {forecast.signal for forecast in ripe}}
        return [score for forecast in ripe for score in self._scores(forecast, windows[forecast.signal], policies, now)]

    def _scores(self, pending: Pending, window: Window, policies: Policies, now: datetime) -> Iterator[ForecastScore]:
        peaks = pending.peaks
        chosen = [id_ for id_ in peaks.ids if id_ in window.row]
        actual = measured_peaks(window, rows_among(chosen, window.row), peaks.begin, peaks.until).tolist()
        quantiles = np.array([policies.of(id_).horizontal.quantile for id_ in chosen])
        rows = rows_among(chosen, peaks.place)
        upper = at_quantile(peaks.values[rows].T, quantiles)
        for place, (id_, row) in enumerate(zip(chosen, rows.tolist(), strict=True)):
            if not np.isnan(actual[place]):
                yield ForecastScore(
                    id=id_,
                    signal=pending.signal,
                    made_at=pending.made_at,
                    matured_at=now,
                    model=peaks.models[peaks.model[row]],
                    quantile=float(quantiles[place]),
                    median=float(peaks.values[row, _MEDIAN]),
                    upper=float(upper[place]),
                    actual=actual[place],
                )


def measured_peaks(window: Window, rows: NDArray[np.intp], begin: datetime, until: datetime) -> NDArray[np.float32]:
    """Largest value of each of these rows in (begin, until]; NaN where too few minutes are known."""
    first = (begin - window.start) // window.step + 1
    last = (until - window.start) // window.step + 1
    if first < 0 or last > window.values.shape[1] or first >= last:
        return np.full(len(rows), np.nan, np.float32)
    columns = window.values[rows, first:last]
    known = np.count_nonzero(~np.isnan(columns), axis=1)
    peaks: NDArray[np.float32] = np.fmax.reduce(columns, axis=1)
    return np.where(known >= MIN_KNOWN_SHARE * columns.shape[1], peaks, np.float32(np.nan))
