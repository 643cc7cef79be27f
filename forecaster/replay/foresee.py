"""What a model says at every minute of a replay, asked as the service asks it: fitted in rotation, told the newest.

This is the dear part of a replay, so it is done once for each model and span, and can be kept (`ForecastCache`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import numpy as np

from forecaster.demand.fresh import LEAST_KNOWN, DemandContext, FreshHistory, fresh
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.forecasting.forecaster import Forecaster
from forecaster.forecasting.peaks import LEVELS
from forecaster.replay.foresight import Foresight
from forecaster.replay.sight import RECENT
from forecaster.replay.start_up import EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.forecaster import PeakSpan
    from forecaster.forecasting.peaks import PeakForecasts
    from forecaster.replay.sight import Sight

WEEKS = timedelta(days=14)
"""How much history the service lends to its models."""
ALL_AT_ONCE = 1_000_000


class ForecastCache(Protocol):
    """Where forecasts are kept between replays: arrays by the hash of all that they were made of."""

    def get(self, key: str) -> Mapping[str, NDArray[np.float64]] | None:
        """What was kept under this key; None when nothing usable was."""

    def put(self, key: str, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Keep this, if it can be kept."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which model is asked, about which span, how often it is fitted, and how often it is asked."""

    model: str
    span: PeakSpan
    refit_after: timedelta = timedelta(hours=6)
    every: int = 1
    """Minutes between two questions; what was said last holds in between."""


def foresee(sight: Sight, signals: Sequence[Signal], question: Question) -> Foresight:
    """The forecasts of a whole replay."""
    forecaster = Forecaster(question.model, question.refit_after, ALL_AT_ONCE)
    values = {signal: np.full((sight.minutes, len(sight.traces.workloads), len(LEVELS)), np.nan) for signal in signals}
    histories = {signal: History.of(sight, signal) for signal in (*signals, PODS)}
    for minute in range(sight.minutes):
        for signal in signals:
            values[signal][minute] = (
                _asked(forecaster, histories, signal, question.span, sight.instant(minute))
                if minute % question.every == 0
                else values[signal][minute - 1]
            )
    return Foresight(question.model, question.span, LEVELS, values)


def kept_or_foreseen(
    sight: Sight, signals: Sequence[Signal], question: Question, cache: ForecastCache, version: str
) -> Foresight:
    """The same from the cache, if it was computed before from the same history by the same version."""
    key = key_of(sight, signals, question, version)
    kept = cache.get(key)
    wanted = (sight.minutes, len(sight.traces.workloads), len(LEVELS))
    if kept is not None and all(signal in kept and kept[signal].shape == wanted for signal in signals):
        return Foresight(question.model, question.span, LEVELS, {signal: kept[signal] for signal in signals})
    made = foresee(sight, signals, question)
    cache.put(key, {str(signal): values for signal, values in made.values.items()})
    return made


def key_of(sight: Sight, signals: Sequence[Signal], question: Question, version: str) -> str:
    """Hash of everything that a forecast depends on."""
    rules = tuple((str(signal), signal.properties()) for signal in signals)
    said = (question, rules, sight.begin, sight.minutes, LEVELS, version, sight.traces.start)
    who = tuple((one.id, one.resources, one.autoscaler) for one in sight.traces.workloads)
    digest = hashlib.sha256(repr((said, who)).encode())
    for signal in (*signals, PODS):
        digest.update(np.ascontiguousarray(sight.traces.of(signal)).data)
    return digest.hexdigest()


def _asked(
    forecaster: Forecaster, histories: Mapping[Signal, History], signal: Signal, span: PeakSpan, now: datetime
) -> NDArray[np.float64]:
    """[workload, level]."""
    seen, pods = histories[signal], histories[PODS]
    around = DemandContext(signal, pods.cut(now), {one.id: one for one in seen.sight.traces.workloads})
    peaks: PeakForecasts = forecaster.peaks(signal, seen.cut(now, around), [span], now)[span]
    ids = [one.id for one in seen.sight.traces.workloads]
    found = np.full((len(ids), len(LEVELS)), np.nan)
    rows = [peaks.row.get(id_, -1) for id_ in ids]
    known = np.array(rows) >= 0
    found[known] = peaks.values[[row for row in rows if row >= 0]]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One signal as the service keeps it: [workload, column] by minutes and by five minutes, gaps before the first."""

    sight: Sight
    by_minute: NDArray[np.float32]
    by_five: NDArray[np.float32]
    first_five: datetime

    @classmethod
    def of(cls, sight: Sight, signal: Signal) -> History:
        """With gaps for as long as the service looks back."""
        traces = sight.traces
        values = traces.of(signal).astype(np.float32)
        lead = (traces.start - EPOCH - MINUTE) % FIVE_MINUTES // MINUTE
        rest = -(values.shape[1] + lead) % (FIVE_MINUTES // MINUTE)
        whole = np.pad(values, ((0, 0), (lead, rest)), constant_values=np.nan)
        points = WEEKS // FIVE_MINUTES
        padded = np.pad(five_minutes(whole), ((0, 0), (points, 0)), constant_values=np.nan)
        ends = traces.start - lead * MINUTE + FIVE_MINUTES - MINUTE
        minutes = np.pad(values, ((0, 0), (RECENT // MINUTE, 0)), constant_values=np.nan)
        return cls(sight, minutes, padded, ends)

    def cut(self, now: datetime, around: DemandContext | None = None) -> FreshHistory:
        """The newest weeks up to the minute."""
        return fresh(self.weeks(now), self.minutes(now), around)

    def minutes(self, now: datetime) -> Window:
        """The newest hours by the minute, ending at `now`."""
        count = RECENT // MINUTE
        last = self.sight.traces.column(now) + count + 1
        return Window(self._ids, now - (count - 1) * MINUTE, MINUTE, self.by_minute[:, last - count : last])

    def weeks(self, now: datetime) -> Window:
        """The newest weeks by five minutes, ending with the last that are over."""
        count = WEEKS // FIVE_MINUTES
        end = now - (now - EPOCH) % FIVE_MINUTES
        last = (end - self.first_five) // FIVE_MINUTES + count + 1
        return Window(self._ids, end - (count - 1) * FIVE_MINUTES, FIVE_MINUTES, self.by_five[:, last - count : last])

    @property
    def _ids(self) -> tuple[WorkloadId, ...]:
        return tuple(workload.id for workload in self.sight.traces.workloads)


def five_minutes(minutes: NDArray[np.float32]) -> NDArray[np.float32]:
    """[workload, point] means of every five columns, over the known ones; NaN where too few are."""
    grouped = minutes.reshape(len(minutes), -1, FIVE_MINUTES // MINUTE)
    known = np.count_nonzero(~np.isnan(grouped), axis=2)
    sums = np.nansum(grouped, axis=2, dtype=np.float64)
    return np.where(known >= LEAST_KNOWN, sums / np.maximum(known, 1), np.nan).astype(np.float32)
