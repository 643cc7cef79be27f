"""Our decisions on recorded load: every series and setting is a row of one cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bench.replay import MOST_PODS, TICK, Counts, account, counts_of
from benchmarks.bench.service import ServiceForecasts, evidence_of
from benchmarks.bench_policy import KEPT, POD, BenchPolicy, Forecasts, calibrate, judge
from benchmarks.bench_together import Sweep
from forecaster.domain.window import MINUTE
from forecaster.forecasting.backtest import PolicyBacktest
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.bench.replay import Account, Replay
    from benchmarks.bench_policy import Known, Series

    Floats = NDArray[np.float64]


def our_accounts(
    replays: Sequence[Replay], start_up: int, minutes: int = KEPT, *, as_kept: bool = True
) -> dict[str, Account]:
    """Account of our decisions on each series, one setting for each target of the sweep.

    A recommendation is kept for `minutes`. Series by the minute are known as the service keeps them, or with `as_kept`
    false for weeks by the minute.
    """
    counts = our_counts(replays, start_up, minutes, as_kept=as_kept)
    return {replay.name: account(replay, counts[replay.name]) for replay in replays}


def our_counts(
    replays: Sequence[Replay], start_up: int, minutes: int = KEPT, *, as_kept: bool = True
) -> dict[str, Counts]:
    """Pods that we ask for on each series, one setting for each target of the sweep; arguments as of `our_accounts`."""
    by_length: dict[int, list[Replay]] = {}
    for replay in replays:
        by_length.setdefault(len(replay.demand), []).append(replay)
    counts: dict[str, Counts] = {}
    for group in by_length.values():
        played = [Played(replay, start_up, minutes, as_kept=as_kept) for replay in group]
        requested = np.split(replayed(played, start_up), len(group))
        counts |= {
            replay.name: counts_of_requests(rows, start_up) for replay, rows in zip(group, requested, strict=True)
        }
    return counts


def counts_of_requests(requested: Floats, start_up: int) -> Counts:
    """Counts [setting, tick] of the replay, without the ticks before it that `requested` begins with."""
    counts = counts_of(requested, start_up)
    return Counts(counts.requested[:, start_up:], counts.ready[:, start_up:])


class Played:
    """One series with the settings of our sweep; its visible part grows by a tick at a time."""

    def __init__(self, replay: Replay, start_up: int, minutes: int, *, as_kept: bool = False) -> None:
        self.replay, self.known, cache = replay, replay.known, dict[str, Any]()
        self.points = [BenchPolicy(minutes) for _ in BenchPolicy.targets]
        for point, target in zip(self.points, BenchPolicy.targets, strict=True):
            point.start(world(replay, target, start_up, cache))
        self.series: Series = cache["series"]
        self.as_kept = as_kept and self.series.width == 1

    def history(self, tick: int) -> Floats:
        """Demand that was measured before `tick`."""
        return self.known[: len(self.replay.past) + tick]

    def now(self, tick: int) -> int:
        """Epoch second of `tick`."""
        return self.replay.start + tick * TICK

    def pods(self, tick: int) -> Floats:
        """Demand in pods that was measured before `tick`, at its own step."""
        return self.series.bins(self.history(tick), self.now(tick)) / POD

    def kind(self) -> tuple[int, int, int]:
        """Width of a bin, length of the past, and phase of a bin: series alike in them are forecast together."""
        width = self.series.width
        return width, len(self.replay.past), self.now(0) // TICK % width


def world(replay: Replay, target: float, start_up: int, cache: dict[str, Any]) -> dict[str, Any]:
    """Facts that a policy gets before a replay, under the names of the plug-in protocol."""
    return {
        "tick_seconds": TICK,
        "sync_seconds": TICK,
        "startup_seconds": start_up * TICK,
        "native_seconds": replay.recorded_step,
        "pod_capacity": replay.pod,
        "target": target,
        "min_replicas": replay.least,
        "max_replicas": MOST_PODS,
        "cache": cache,
    }


class Group:
    """Series of one kind with the model that forecasts them."""

    def __init__(self, played: Sequence[Played]) -> None:
        self.played, self.forecasts = played, ServiceForecasts() if played[0].as_kept else Forecasts()

    def forecast(self, tick: int) -> None:
        """Hand each series the quantiles of its coming peak, once a window."""
        first = self.played[0].series
        window = first.window(self.played[0].now(tick))
        if window.steps < 1 or window in first.forecast_peaks:
            return
        bins = np.stack([each.series.bins(each.history(tick), each.now(tick)) for each in self.played])
        for each, peaks in zip(self.played, self.forecasts.peaks(bins, window, first.width), strict=True):
            each.series.forecast_peaks[each.series.window(each.now(tick))] = peaks


def replayed(played: Sequence[Played], start_up: int) -> Floats:
    """Requested pods [row, tick], series by series; `start_up` ticks before the replay come first."""
    kinds: dict[tuple[int, int, int], list[Played]] = {}
    for each in played:
        kinds.setdefault(each.kind(), []).append(each)
    groups = [Group(group) for group in kinds.values()]
    sweep = Sweep(played[0].points[0].world)
    for point in (point for each in played for point in each.points):
        sweep.join(point)
    requested: list[NDArray[np.int64]] = []
    for tick in range(len(played[0].replay.demand)):
        judge_due(played, tick)
        for group in groups:
            group.forecast(tick)
        known = [each.series.known_at(each.history(tick), each.now(tick)) for each in played]
        histories = [each.history(tick) for each in played for _ in each.points]
        sweep.decide(tick * TICK, histories, *rows_of(known))
        requested += [sweep.current] * start_up if not tick else []
        requested.append(sweep.replicas)
    return np.array(requested, np.float64).T


def judge_due(played: Sequence[Played], tick: int) -> None:
    """Judge the gates that are due; gates with equally many past days are judged together."""
    by_days: dict[tuple[int, bool], list[tuple[Played, Any]]] = {}
    for each in played:
        now = each.now(tick)
        if each.series.due(now) and (days := each.series.days(each.history(tick), now)) is not None:
            by_days.setdefault((days.demand.shape[1], each.as_kept), []).append((each, days))
    for (_, as_kept), due in by_days.items():
        if as_kept:
            judge_as_kept([each for each, _ in due], [days for _, days in due], tick)
        else:
            judge([each.series for each, _ in due], [days for _, days in due], due[0][0].now(tick))


def judge_as_kept(due: Sequence[Played], days: Sequence[PolicyBacktest], tick: int) -> None:
    """Judge the gates as the service does; what a setting spends is computed from the days by the minute."""
    series, now = [each.series for each in due], due[0].now(tick)
    calibrate(series, PolicyBacktest(*map(np.concatenate, zip(*days, strict=True))))
    lead = series[0].start_up + 1
    span = PeakSpan(lead * MINUTE, (series[0].reach - lead) * MINUTE)
    for each, judgement in zip(
        series, evidence_of([each.pods(tick) for each in due], now, series[0].rules, span), strict=True
    ):
        for past in judgement.rounds:
            each.take(past, judgement.place, now)


def rows_of(known: Sequence[Known]) -> tuple[Floats, Floats]:
    """Demand [row] and quantiles of its peak [level, row], a row for every setting of each series."""
    settings = len(BenchPolicy.targets)
    measured = np.array([each.measured for each in known])
    peaks = np.array([each.peaks for each in known]).reshape(len(known), len(LEVELS)).T
    return np.repeat(measured, settings), np.repeat(peaks, settings, axis=1)
