"""Our decisions behind the policy protocol of ../shared/bench: the service's own `decide`, gate and models.

A pod of the bench carries 1000 units. The sweep goes from lean to safe by the price of a missing pod; where that ends,
pods are taken for smaller than they are (`bench_sweep`). A workload whose gate is shut is scaled by the HPA's formula
alone, and the sweep is then the target of that HPA. A change costs one pod for as long as the samples of the series lie
apart, five minutes at most: nothing finer can be timed.
"""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.bench_sweep import STATED, TARGETS, calibrated
from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.signal import REQUESTS
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.backtest import PolicyBacktest, backtests
from forecaster.forecasting.peaks import LEVELS
from forecaster.horizontal.codes import KNOWN, NO_SAMPLE
from forecaster.horizontal.decide import decide
from forecaster.horizontal.gate import Evidence, judged
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.learned import LATEST, advised, load, median_of
from forecaster.horizontal.quantile import stated_quantile
from forecaster.horizontal.standing import ACTING, SEASONAL, Gates
from forecaster.horizontal.state import State
from forecaster.horizontal.terms import policy_columns, target_columns, terms_of
from forecaster.replay.evidence import evidence_of
from models import Panel, StepWindow, create

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from forecaster.horizontal.inputs import PolicyColumns, Rules, TargetColumns
    from forecaster.horizontal.learned import LearnedKind
    from forecaster.replay.evidence import PastEvidence, Setting

    Floats = NDArray[np.float64]

TICK = 60
POD = 1000.0
MORE = 3
"""Minutes beyond the lead time in which the peak is looked for."""
REFIT = 6 * 3600
JUDGED_EVERY = 86400
JUDGED_DAYS = 6
RECORDS = ("short", "saving", "noise")
MAX_AGE = 5
WINDOW = 2
"""Minutes that a recommendation holds; pods that are still worth keeping stay longer by themselves."""
MOST_CHURN = 5
"""Minutes of one pod that a change must be worth at most, as long as the HPA looks back."""
ID = WorkloadId("bench", "Deployment", "series")


class Known(NamedTuple):
    """What is known at a tick, in the unit of the targets: NaN where it is not."""

    measured: float
    peaks: tuple[float, ...] = (np.nan,) * len(LEVELS)


class Columns(NamedTuple):
    """One policy as a row."""

    rules: Rules
    policy: PolicyColumns
    targets: TargetColumns
    quantile: float


class BenchPolicy:
    """One point of the sweep; what does not depend on the point is shared by all of them."""

    name = "policy"
    targets = TARGETS
    gated = True
    learned: LearnedKind | None = None

    def start(self, world: dict[str, Any]) -> None:
        self.world = world
        self.series = world["cache"].setdefault("series", Series(world, gated=self.gated))
        self.setting: Setting | None = None
        hpa_target = Target("demand", TargetType.AVERAGE_VALUE, world["target"] * POD)
        hpa = Autoscaler("hpa", world["min_replicas"], world["max_replicas"], (hpa_target,))
        self.workload = Workload(ID, 1, 1, Resources(), hpa)
        self.alone = self._columns(HPA_ALONE)
        self.state = State.new(1)
        self.medians: list[Floats] = []
        self.advisor = load(self.learned) if self.learned else None

    def _sized(self, setting: Setting) -> HorizontalPolicy:
        return HorizontalPolicy(
            price=(1 - setting.price) / setting.price,
            peak_target=1.0 / self.world["target"],
            headroom=1.0 / setting.share - 1.0,
            churn_price=float(min(self.series.width, MOST_CHURN)),
            min_replicas=self.world["min_replicas"],
            sizing="newsvendor",
            scale_in_by_forecast=True,
            requests_metric="demand",
            gate=self.gated,
            scale_down_stabilization=timedelta(minutes=WINDOW),
            outage_hold=timedelta(minutes=30),
        )

    def _columns(self, policy: HorizontalPolicy) -> Columns:
        terms = [terms_of(self.workload, policy, LEVELS)]
        return Columns(terms[0].rules, policy_columns(terms), target_columns(terms), stated_quantile(policy))

    def desired(self, history: Floats, ready: int, pending: int, now: int) -> int:
        if not self.series.same(history, now):
            self.series = copy(self.series)
        known, acts = self.series.known_at(history, now), self._acts()
        inputs = self._inputs(known, self.columns if acts else self.alone, ready, pending, acting=acts)
        if self.advisor is not None:
            before = self.medians[-LATEST] if len(self.medians) >= LATEST else np.array([np.nan])
            self.medians.append(median_of(inputs))
            inputs = advised(inputs, self.advisor, before, float(now))
        decisions, self.state = decide(inputs, self.state, float(now))
        return int(decisions.replicas[0])

    def _acts(self) -> bool:
        """Whether the forecast acts; without it the HPA keeps its own window."""
        setting = self.series.settings[self.world["target"]]
        if setting is None or (self.gated and not self.series.acting):
            return False
        if setting is not self.setting:
            self.setting, self.columns = setting, self._columns(self._sized(setting))
        return True

    def _inputs(self, known: Known, columns: Columns, ready: int, pending: int, *, acting: bool) -> Inputs:
        peaks = np.array(known.peaks)[:, None]
        level = np.interp(columns.quantile, LEVELS, peaks[:, 0])
        return Inputs(
            rules=columns.rules,
            policy=columns.policy,
            targets=columns.targets,
            current=np.array([ready + pending]),
            ready=np.array([ready]),
            measured=np.array([[known.measured]]),
            unseen=np.array([[NO_SAMPLE if np.isnan(known.measured) else KNOWN]], np.int8),
            age=np.array([[np.nan]]),
            peak=np.array([[level]]),
            low=peaks[:1],
            quantiles=[peaks],
            acting=np.array([acting]),
            event_floor=np.zeros(1, np.int64),
            frozen=np.zeros(1, np.bool_),
            unreadable=np.zeros(1, np.bool_),
        )


HPA_ALONE = HorizontalPolicy(gate=True, requests_metric="demand", scale_down_stabilization=timedelta(minutes=4))


class Series:
    """What is known of the replayed series at a tick: the latest demand, the coming peak, and where the gate stands."""

    def __init__(self, world: dict[str, Any], *, gated: bool) -> None:
        self.unit = POD / world["pod_capacity"]
        self.width = max(1, world["native_seconds"] // TICK)
        self.start_up = world["startup_seconds"] // TICK
        self.reach = (world["startup_seconds"] + world["sync_seconds"]) // TICK + MORE
        self.model = create("adaptive")
        self.at, self.fitted_at, self.judged_at = None, None, None
        self.said: dict[tuple[int, int], tuple[float, ...]] = {}
        self.gated, self.gates = gated, Gates.new(1, (REQUESTS,))
        self.rules = HorizontalPolicy(sizing="newsvendor", scale_down_stabilization=timedelta(minutes=WINDOW))
        self.settings: Mapping[float, Setting | None] = STATED

    def same(self, history: Floats, now: int) -> bool:
        """Whether another point of the sweep saw this tick as it is here; each sees its own where demand is cut off."""
        return self.at != now or np.array_equal(self.newest, history[-1:], equal_nan=True)

    @property
    def acting(self) -> bool:
        """Whether the gate lets the forecast have its say."""
        return bool(self.gates.standing[0] == ACTING)

    def known_at(self, history: Floats, now: int) -> Known:
        """Once per tick, for all points of the sweep."""
        if self.at != now or not self.same(history, now):
            self.at, self.newest, self.known = now, history[-1:].copy(), self._look(history, now)
        return self.known

    def _look(self, history: Floats, now: int) -> Known:
        if self.gated and (self.judged_at is None or now - self.judged_at >= JUDGED_EVERY):
            self.judged_at = now
            self.gates = self._judged(history, now)
        age = next((age for age in range(min(MAX_AGE, len(history))) if not np.isnan(history[-1 - age])), None)
        if age is None:
            return Known(np.nan)
        measured = float(history[-1 - age]) * self.unit
        return Known(measured, self._peaks(history, now, measured))

    def _peaks(self, history: Floats, now: int, measured: float) -> tuple[float, ...]:
        """Quantiles of the coming peak; NaN where there is too little history."""
        bins, rest = in_bins(history, now, self.width)
        steps = -(-(self.reach - rest) // self.width)
        if self.gates.forecaster[0] == SEASONAL:
            day = 86400 // TICK
            window = history[len(history) - day : len(history) - day + self.reach]
            return (float(np.nanmax(window, initial=0.0)) * self.unit,) * len(LEVELS)
        if steps < 1:
            return (measured,) * len(LEVELS)
        at = now + rest * TICK
        if self.width == 1 or (at, steps) not in self.said:
            self.said[at, steps] = self._forecast(bins, at, steps)
        return self.said[at, steps]

    def _forecast(self, bins: Floats, end: int, steps: int) -> tuple[float, ...]:
        panel = panel_of(bins * self.unit, end, self.width)
        if self.fitted_at is None or end - self.fitted_at >= REFIT:
            self.fitted, self.fitted_at = self.model.fit(panel), end
        else:
            self.fitted = self.fitted.update(panel)
        peak = self.fitted.forecast_peak(StepWindow(1, steps), LEVELS)
        return tuple(peak.values[0].tolist()) if len(peak.values) else (np.nan,) * len(LEVELS)

    def _judged(self, history: Floats, now: int) -> Gates:
        """By the latest days, and by the newer half of them: what does better in both is let in at once."""
        gates, days = self.gates, self._days(history, now)
        if days is None:
            return gates
        if self.settings is STATED:
            self.settings = calibrated(days, LEVELS, self.rules, self.start_up)
        for past in evidence_of(days, LEVELS, [self.rules], np.array([self.start_up])):
            gates = judged(gates, on_one_target(past), float(now))
        return gates

    def _days(self, history: Floats, now: int) -> PolicyBacktest | None:
        """The latest days, in pods."""
        bins, rest = in_bins(history, now, self.width)
        return backtests(bins[None] * self.unit / POD, self.width, to_come=rest, reach=self.reach, days=JUDGED_DAYS)


def on_one_target(past: PastEvidence) -> Evidence:
    """[forecaster, one target, series] as the gate takes it."""
    parts = (np.stack([getattr(one, name) for one in (past.model, past.seasonal)])[:, None] for name in RECORDS)
    days, nothing = np.full((1, len(past.reactive)), past.days), np.full((1, len(past.reactive)), -1)
    return Evidence(days, past.reactive[None], *parts, signal=nothing)


def in_bins(history: Floats, now: int, width: int) -> tuple[Floats, int]:
    """The series at its own step, NaN where nothing was measured, and how many ticks of the newest bin are to come."""
    if width == 1:
        return np.asarray(history, float), 0
    known = (now - TICK) // TICK % width + 1
    usable = (len(history) - known) // width * width
    older = history[len(history) - known - usable : len(history) - known].reshape(-1, width)
    newest = history[-known:]
    counts = (~np.isnan(older)).sum(axis=1)
    sums = np.nansum(older, axis=1)
    means = np.where(counts, sums / np.maximum(counts, 1), np.nan)
    last = np.nan if np.isnan(newest).all() else float(np.nanmean(newest))
    return np.append(means, last), width - known


def panel_of(values: Floats, end: int, width: int) -> Panel:
    step = timedelta(minutes=width)
    start = datetime.fromtimestamp(end, UTC) - len(values) * step
    return Panel.cleaned(values[None], start, step, ("series",))
