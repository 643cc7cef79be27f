"""Forecasts of every signal for every span that some policy asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import models
from forecaster.forecasting.peaks import LEVELS, Peaks, joined
from forecaster.forecasting.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when after now the peak is looked for."""

    lead_time: timedelta
    length: timedelta


FITS = 8
"""Shards fitted in one cycle at most, so that a start with many workloads stays within its interval."""
Answer = tuple[tuple["WorkloadId", ...], "models.Peak | str"]


@dataclass(slots=True)
class Forecaster:
    """Models of all signals. `fits` shards at most are fitted in one round."""

    model: str
    refit_after: timedelta = timedelta(hours=6)
    fits: int = FITS
    signals: dict[Signal, Shards] = field(default_factory=dict)

    def peaks(self, signal: Signal, window: Window, spans: Iterable[Span], now: datetime) -> dict[Span, Peaks]:
        """Forecasts for each span, after the models have seen `window`."""
        if signal not in self.signals:
            self.signals[signal] = Shards(models.create(self.model), self.refit_after, self.fits)
        shards = self.signals[signal]
        shards.follow(window, now)
        return {span: _peaks_of(shards, window, span, now) for span in spans}


def _peaks_of(shards: Shards, window: Window, span: Span, now: datetime) -> Peaks:
    begin = now + span.lead_time
    until = begin + span.length
    waiting = f"its model is being fitted; {shards.waiting} of {len(shards.shards)} parts are waiting"
    steps = steps_between(begin - window.end, until - window.end, window.step)
    answers: list[Answer] = [
        (shard.ids, shard.fitted.forecast_peak(steps, LEVELS) if shard.fitted else waiting) for shard in shards.shards
    ]
    return joined(answers, begin, until)


def steps_between(begin: timedelta, until: timedelta, step: timedelta) -> models.Window:
    """The steps after the newest bin that touch the time from `begin` to `until`; step 1 is the first one."""
    return models.Window(max(1, begin // step + 1), max(1, -(-until // step)))
