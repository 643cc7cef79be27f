"""Forecasts of every signal for every span that some policy asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import models
from forecaster.domain.report import MaskedShare
from forecaster.domain.window import MINUTE
from forecaster.forecasting.cold_start import borrowed, with_borrowed
from forecaster.forecasting.minutes import of_minutes
from forecaster.forecasting.peaks import PATH_LEVELS, STEPS, Paths, PeakForecasts
from forecaster.forecasting.shards import Shard, Shards

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True)
class PeakSpan:
    """Begin and end of the window of the peak, after now."""

    lead_time: timedelta
    length: timedelta


FITS = 120
"""Shards waiting for their first fit that are fitted for one signal in one cycle, at most; its time ends before."""


@dataclass(slots=True)
class Forecaster:
    """Models of all signals, fitted in rounds, one a minute.

    In one round at most `fits` first ones of each signal, and as many renewed ones as let each be renewed in time.
    """

    model: str
    refit_after: timedelta = timedelta(hours=6)
    fits: int = FITS
    signals: dict[Signal, Shards] = field(default_factory=dict)
    renewed: tuple[datetime | None, int] = (None, 0)
    """The last round in which models that were old were fitted anew, and how many."""
    paths: Paths | None = None
    """Receives forecasts step by step; None where they are not needed."""

    def peaks(
        self,
        signal: Signal,
        history: FreshHistory,
        spans: Iterable[PeakSpan],
        now: datetime,
        *,
        ids: Collection[WorkloadId] | None = None,
        by_minutes: bool = True,
    ) -> dict[PeakSpan, PeakForecasts]:
        """Return forecasts for each span, from the latest samples: of these workloads, by default of all."""
        ids = history.weeks.keys if ids is None else ids
        return self.peaks_by_span(signal, history, dict.fromkeys(spans, ids), now, by_minutes=by_minutes)

    def peaks_by_span(
        self,
        signal: Signal,
        history: FreshHistory,
        ids_by_span: Mapping[PeakSpan, Collection[WorkloadId]],
        now: datetime,
        *,
        learn: bool = True,
        by_minutes: bool = True,
    ) -> dict[PeakSpan, PeakForecasts]:
        """Return peaks where each span has workloads of its own; without `learn` no model is fitted first.

        They are the largest minutes of short spans, or with `by_minutes` false the largest five-minute points of all.
        """
        shards = self.follow(signal, history, ids_by_span)
        if learn:
            self.learn(signal, history, now)
        windows = {span: steps_of(span, history, now) for span in ids_by_span}
        answers = shards.peaks(history, windows, now)
        if self.paths:
            self._renew_paths(self.paths, signal, history, now)
        notes, own = shards.remarks(), {}
        for span, window in windows.items():
            begin = now + span.lead_time
            own[span] = answers[window].forecasts(begin, begin + span.length, shards.spans[span]).remarked(notes)
        if loans := borrowed(history):
            own = {span: with_borrowed(own[span], loans, windows[span]) for span in windows}
        if not by_minutes:
            return own
        warming = tuple(shards.warming())
        return {span: of_minutes(own[span], history, windows[span], warming) for span in windows}

    def follow(
        self, signal: Signal, history: FreshHistory, ids_by_span: Mapping[PeakSpan, Collection[WorkloadId]]
    ) -> Shards:
        """Return the shards of one signal, with the present workloads."""
        if signal not in self.signals:
            self.signals[signal] = Shards(models.create(self.model))
        shards = self.signals[signal]
        shards.follow(history.weeks.keys, ids_by_span)
        return shards

    def learn(
        self,
        signal: Signal,
        history: FreshHistory,
        now: datetime,
        has_time: Callable[[], bool] = lambda: True,
        *,
        least: int = 0,
    ) -> int:
        """Fit the shards of one signal that are due, the `least` first ones and others while there is time.

        Return how many were left. Something stands in for those that wait for their first fit.
        """
        shards = self.signals[signal]
        due = self._due(shards, now)
        left = len(due)
        for turn, shard in enumerate(due):
            if turn >= least and not has_time():
                break
            shards.learn(history, shard, now)
            left -= 1
        shards.stand_in(history)
        return left

    def masked(self) -> list[MaskedShare]:
        """Return the shares of the last week that models do not learn from as measured."""
        return [
            MaskedShare(id_, signal, why.label, share)
            for signal, shards in self.signals.items()
            for shard in shards.shards
            if shard.cleaning
            for id_, parts in shard.cleaning.masked.items()
            for why, share in parts.items()
        ]

    def failures(self) -> list[str]:
        """Return one sentence for each signal of which some models failed."""
        sentences = []
        for signal, shards in self.signals.items():
            failures = [shard.failure for shard in shards.shards if shard.failure and shard.fitted is None]
            if failures:
                sentences.append(f"forecast of {signal}: {failures[0]} ({len(failures)} of {len(shards.shards)} parts)")
        return sentences

    def _renew_paths(self, paths: Paths, signal: Signal, history: FreshHistory, now: datetime) -> None:
        """Renew the paths of the shards that are due."""
        shards = self.signals[signal]
        paths.forget(signal, shards.shards)
        forecasts = shards.paths(history, paths.due(signal, shards.shards), STEPS, PATH_LEVELS)
        paths.take(signal, forecasts, begin=history.end, now=now)

    def _due(self, shards: Shards, now: datetime) -> list[Shard]:
        """Shards to fit now: those without a model, or the oldest ones, as far as other signals left some to renew."""
        waiting = shards.waiting()
        if waiting:
            return waiting[: self.fits]
        before = self.renewed[1] if self.renewed[0] == now else 0
        old = shards.oldest(now, self.refit_after, self._share() - before)
        self.renewed = (now, before + len(old))
        return old

    def _share(self) -> int:
        """Models to renew in one round."""
        count = sum(len(shards.shards) for shards in self.signals.values())
        return -(-count // max(1, self.refit_after // MINUTE))


def steps_of(span: PeakSpan, history: FreshHistory, now: datetime) -> models.StepWindow:
    """The steps of the model that touch a span."""
    begin = now + span.lead_time - history.end
    return steps_between(begin, begin + span.length, history.weeks.step)


def steps_between(begin: timedelta, until: timedelta, step: timedelta) -> models.StepWindow:
    """The steps after the newest bin that touch the time from `begin` to `until`; step 1 is the first one."""
    return models.StepWindow(max(1, begin // step + 1), max(1, -(-until // step)))


def further_peaks(
    forecaster: Forecaster,
    signal: Signal,
    history: FreshHistory,
    span: PeakSpan,
    ids: Collection[WorkloadId],
    now: datetime,
) -> dict[WorkloadId, NDArray[np.float64]]:
    """Quantiles at `LEVELS` of the largest demand in a span; workloads without a forecast are absent.

    `history` has the rows of the last regular forecast of this cycle.
    """
    if signal not in forecaster.signals:
        return {}
    forecast_ids, values = forecaster.signals[signal].further(history, steps_of(span, history, now), ids)
    return dict(zip(forecast_ids, values, strict=True))
