"""Our decisions behind the policy protocol of benches that load plug-ins: the service's own `decide`, gate and models.

A pod of the bench carries 1000 units. The sweep goes from lean to safe by the price of a missing pod; where that ends,
pods are taken for smaller than they are (`bench_sweep`). A workload whose gate is shut is scaled by the HPA's formula
alone, and the sweep is then the target of that HPA.
"""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.bench_sweep import STATED, TARGETS, calibrated
from benchmarks.bench_together import Columns, Known, PointTerms, Sweep
from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.signal import REQUESTS
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.backtest import PolicyBacktest, backtests
from forecaster.forecasting.peaks import LEVELS
from forecaster.horizontal.decide import decide
from forecaster.horizontal.gate import Evidence, judged
from forecaster.horizontal.gate_states import ACTING, SEASONAL, Gates
from forecaster.horizontal.state import State
from forecaster.horizontal.terms import terms_of
from forecaster.replay.evidence import PastEvidence, evidence_of
from forecaster.replay.judging import JUDGED_DAYS
from forecaster.replay.learned import LATEST, advised, load, median_of
from models import Panel, StepWindow, create

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.replay.evidence import Setting
    from forecaster.replay.learned import LearnedKind

    Floats = NDArray[np.float64]

TICK = 60
POD = 1000.0
MORE = 3
"""Minutes beyond the lead time in which the peak is looked for."""
REFIT = 6 * 3600
JUDGED_EVERY = 86400
MINUTE_DAYS = 6
"""Days that a gate is judged by where each minute of them is known; the service judges by fewer."""
RECORDS = ("short", "saving", "noise")
MAX_AGE = 5
KEPT = 2
"""Minutes that a recommendation is kept; pods that are still worth keeping stay longer by themselves."""
ID = WorkloadId("bench", "Deployment", "series")


class BenchPolicy:
    """One point of the sweep; what does not depend on the point is shared by all of them."""

    name = "policy"
    targets = TARGETS
    gated = True
    learned: LearnedKind | None = None

    def __init__(self, minutes: int = KEPT) -> None:
        self.keep = timedelta(minutes=minutes)

    def start(self, world: dict[str, Any]) -> None:
        self.world = world
        self.series = world["cache"].setdefault("series", Series(world, gated=self.gated, keep=self.keep))
        self.sweep = world["cache"].setdefault("sweep", Sweep(world))
        self.row = self.sweep.join(self)
        self.setting: Setting | None = None
        hpa_target = Target("demand", TargetType.AVERAGE_VALUE, world["target"] * POD)
        hpa = Autoscaler("hpa", world["min_replicas"], world["max_replicas"], (hpa_target,))
        self.workload = Workload(ID, 1, 1, Resources(), hpa)
        self.alone = self._terms(HPA_ALONE, acting=False)
        self.advisor = load(self.learned) if self.learned else None
        self.state = State.new(1) if self.advisor else None
        """State of this point alone; None as long as it is decided with the others."""
        self.medians: list[Floats] = []

    def _sized(self, setting: Setting) -> HorizontalPolicy:
        return HorizontalPolicy(
            quantile=1.0 - setting.price,
            peak_target=setting.share / self.world["target"],
            min_replicas=self.world["min_replicas"],
            sizing="newsvendor",
            scale_in_by_forecast=True,
            requests_metric="demand",
            gate=self.gated,
            scale_down_stabilization=self.keep,
            outage_hold=timedelta(minutes=30),
        )

    def _terms(self, policy: HorizontalPolicy, *, acting: bool) -> PointTerms:
        return PointTerms(terms_of(self.workload, policy, LEVELS), policy.quantile, acting)

    def desired(self, history: Floats, ready: int, pending: int, now: int) -> int:
        if not self.series.same(history, now):
            self.series = copy(self.series)
        known = self.series.known_at(history, now)
        if self.state is None and self.series is self.world["cache"]["series"]:
            count = self.sweep.count(self.row, (ready, pending), history, now, known)
            if count is not None:
                return count
        return self._by_itself(known, ready, pending, now)

    def _by_itself(self, known: Known, ready: int, pending: int, now: int) -> int:
        if self.state is None:
            self.state = self.sweep.remembered(self.row, now)
        pods = np.array([ready + pending]), np.array([ready])
        inputs = Columns.of([self.stated()]).inputs(np.array([known.measured]), np.array(known.peaks)[:, None], *pods)
        if self.advisor is not None:
            before = self.medians[-LATEST] if len(self.medians) >= LATEST else np.array([np.nan])
            self.medians.append(median_of(inputs))
            inputs = advised(inputs, self.advisor, before, float(now))
        decisions, self.state = decide(inputs, self.state, float(now))
        return int(decisions.replicas[0])

    def stated(self) -> PointTerms:
        """By the forecast where it acts; without it the HPA keeps its own window."""
        setting = self.series.settings[self.world["target"]]
        if setting is None or (self.gated and not self.series.acting):
            return self.alone
        if setting is not self.setting:
            self.setting, self.sized = setting, self._terms(self._sized(setting), acting=True)
        return self.sized


HPA_ALONE = HorizontalPolicy(gate=True, requests_metric="demand", scale_down_stabilization=timedelta(minutes=4))


class Window(NamedTuple):
    """The steps that come after an epoch second, where the newest bin ends."""

    after: int
    steps: int


class Series:
    """The replayed series at a tick: its latest demand, its coming peak, and the state of its gate."""

    def __init__(self, world: dict[str, Any], *, gated: bool, keep: timedelta) -> None:
        self.unit = POD / world["pod_capacity"]
        self.width = max(1, world["native_seconds"] // TICK)
        self.start_up = world["startup_seconds"] // TICK
        self.reach = (world["startup_seconds"] + world["sync_seconds"]) // TICK + MORE
        self.model = Forecasts()
        self.at: int | None = None
        self.judged_at: int | None = None
        self.forecast_peaks: dict[Window, tuple[float, ...]] = {}
        self.gated, self.gates = gated, Gates.new(1, (REQUESTS,))
        self.rules = HorizontalPolicy(sizing="newsvendor", scale_down_stabilization=keep)
        self.settings: Mapping[float, Setting | None] = STATED

    def same(self, history: Floats, now: int) -> bool:
        """Whether another point of the sweep saw this tick as it is here; each sees its own where demand is cut off."""
        return self.at != now or np.array_equal(self.newest, history[-1:], equal_nan=True)

    @property
    def acting(self) -> bool:
        """Whether the gate lets the forecast have its say."""
        return bool(self.gates.standing[0] == ACTING)

    def known_at(self, history: Floats, now: int) -> Known:
        """Return what is known at `now`; computed once per tick, for all points of the sweep."""
        if self.at != now or not self.same(history, now):
            self.at, self.newest, self.known = now, history[-1:].copy(), self._look(history, now)
        return self.known

    def _look(self, history: Floats, now: int) -> Known:
        if self.due(now) and (days := self.days(history, now)) is not None:
            judge([self], [days], now)
        age = next((age for age in range(min(MAX_AGE, len(history))) if not np.isnan(history[-1 - age])), None)
        if age is None:
            return Known(np.nan)
        measured = float(history[-1 - age]) * self.unit
        return Known(measured, self._peaks(history, now, measured))

    def _peaks(self, history: Floats, now: int, measured: float) -> tuple[float, ...]:
        """Quantiles of the coming peak; NaN where there is too little history."""
        if self.gates.forecaster[0] == SEASONAL:
            day = 86400 // TICK
            window = history[len(history) - day : len(history) - day + self.reach]
            return (float(np.nanmax(window, initial=0.0)) * self.unit,) * len(LEVELS)
        window = self.window(now)
        if window.steps < 1:
            return (measured,) * len(LEVELS)
        if window not in self.forecast_peaks:
            (self.forecast_peaks[window],) = self.model.peaks(self.bins(history, now)[None], window, self.width)
        return self.forecast_peaks[window]

    def window(self, now: int) -> Window:
        """Window that is forecast at a tick."""
        rest = to_come(now, self.width)
        return Window(now + rest * TICK, -(-(self.reach - rest) // self.width))

    def bins(self, history: Floats, now: int) -> Floats:
        """The history at its own step, in the unit of the targets."""
        return in_bins(history, now, self.width) * self.unit

    def due(self, now: int) -> bool:
        """Whether the gate looks back now, from which on it does not for a day."""
        due = self.gated and (self.judged_at is None or now - self.judged_at >= JUDGED_EVERY)
        self.judged_at = now if due else self.judged_at
        return due

    def take(self, past: PastEvidence, row: int, now: int) -> None:
        """Judge the gate by a row of this evidence."""
        self.gates = judged(self.gates, on_one_target(of_row(past, row)), float(now))

    def days(self, history: Floats, now: int) -> PolicyBacktest | None:
        """The latest days, in pods."""
        bins, rest = self.bins(history, now)[None] / POD, to_come(now, self.width)
        judged_days = MINUTE_DAYS if self.width == 1 else JUDGED_DAYS
        return backtests(bins, self.width, to_come=rest, reach=self.reach, days=judged_days)


class Forecasts:
    """By one model, of series that are forecast together."""

    def __init__(self) -> None:
        self.model = create("adaptive")
        self.fitted_at: int | None = None

    def peaks(self, bins: Floats, window: Window, width: int) -> list[tuple[float, ...]]:
        """[series] quantiles of the largest value in a window after bins [series, bin] of `width` ticks."""
        panel = panel_of(bins, window.after, width)
        if self.fitted_at is None or window.after - self.fitted_at >= REFIT:
            self.fitted, self.fitted_at = self.model.fit(panel), window.after
        else:
            self.fitted = self.fitted.update(panel)
        peak = self.fitted.forecast_peak(StepWindow(1, window.steps), LEVELS)
        rows = peak.provenance.rows(panel.keys)
        return [tuple(peak.values[row].tolist()) if row >= 0 else (np.nan,) * len(LEVELS) for row in rows]


def judge(series: Sequence[Series], days: Sequence[PolicyBacktest], now: int) -> None:
    """By days of equal number, and by the newer half of them: what does better in both is let in at once.

    The series have the same start-up.
    """
    rules, start_ups = rules_of(series)
    together = PolicyBacktest(*map(np.concatenate, zip(*days, strict=True)))
    calibrate(series, together)
    for past in evidence_of(together, LEVELS, rules, start_ups):
        for row, each_series in enumerate(series):
            each_series.take(past, row, now)


def rules_of(series: Sequence[Series]) -> tuple[list[HorizontalPolicy], NDArray[np.int64]]:
    """Rules and start-ups in minutes of series that are alike in both."""
    return [series[0].rules] * len(series), np.full(len(series), series[0].start_up)


def calibrate(series: Sequence[Series], days: PolicyBacktest) -> None:
    """Once, on the first days: the settings that spend what the HPA does with each target."""
    rules, start_ups = rules_of(series)
    if any(each_series.settings is STATED for each_series in series):
        for each_series, settings in zip(series, calibrated(days, LEVELS, rules, start_ups), strict=True):
            each_series.settings = settings if each_series.settings is STATED else each_series.settings


def of_row(past: PastEvidence, row: int) -> PastEvidence:
    """Evidence of one series."""
    parts = (type(proof)(*(each[row : row + 1] for each in proof)) for proof in (past.model, past.seasonal))
    return PastEvidence(past.days, past.reactive[row : row + 1], *parts)


def on_one_target(past: PastEvidence) -> Evidence:
    """Evidence [forecaster, one target, series] in the form that the gate takes."""
    parts = (np.stack([getattr(proof, name) for proof in (past.model, past.seasonal)])[:, None] for name in RECORDS)
    days, nothing = np.full((1, len(past.reactive)), past.days), np.full((1, len(past.reactive)), -1)
    return Evidence(days, past.reactive[None], *parts, signal=nothing)


def to_come(now: int, width: int) -> int:
    """Ticks of the newest bin that are not over."""
    return width - 1 - (now - TICK) // TICK % width


def in_bins(history: Floats, now: int, width: int) -> Floats:
    """The series at its own step, NaN where nothing was measured."""
    if width == 1:
        return np.asarray(history, float)
    known = width - to_come(now, width)
    usable = (len(history) - known) // width * width
    older = history[len(history) - known - usable : len(history) - known].reshape(-1, width)
    newest = history[-known:]
    counts = (~np.isnan(older)).sum(axis=1)
    sums = np.nansum(older, axis=1)
    means = np.where(counts, sums / np.maximum(counts, 1), np.nan)
    last = np.nan if np.isnan(newest).all() else float(np.nanmean(newest))
    return np.append(means, last)


def panel_of(values: Floats, end: int, width: int) -> Panel:
    step = timedelta(minutes=width)
    start = datetime.fromtimestamp(end, UTC) - values.shape[1] * step
    return Panel.cleaned(values, start, step, [f"series{row or ''}" for row in range(len(values))])
