"""Our decisions behind the policy protocol of ../shared/bench: the service's own `decide_replicas`, gate and models.

A pod of the bench carries 1000 units. The sweep goes from lean to safe by the price of a missing pod; where that ends,
pods are taken for smaller than they are (`bench_sweep`). A workload whose gate is shut is scaled by the HPA's formula
alone, and the sweep is then the target of that HPA. A change costs one pod for as long as the samples of the series lie
apart, five minutes at most: nothing finer can be timed.
"""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bench_sweep import STATED, TARGETS, calibrated
from forecaster.decisions.gate import Gate, Standing, Voice, judged
from forecaster.decisions.horizontal import decide_replicas
from forecaster.decisions.rehearsal import Days, Rule, evidence_of
from forecaster.decisions.state import ScalingState
from forecaster.domain.outlook import Measured, PeakForecast, SignalForecast, Unknown
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import REQUESTS, Signal
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.backtest import backtest
from forecaster.forecasting.peaks import LEVELS
from models import Panel, StepWindow, create

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from forecaster.cycle.learned import LearnedJudge
    from forecaster.decisions.sweeps import Setting

    Floats = NDArray[np.float64]

TICK = 60
POD = 1000.0
MORE = 3
"""Minutes beyond the lead time in which the peak is looked for."""
REFIT = 6 * 3600
JUDGED_EVERY = 86400
REHEARSED_DAYS = 6
MAX_AGE = 5
WINDOW = 2
"""Minutes that a recommendation holds; pods that are still worth keeping stay longer by themselves."""
MOST_CHURN = 5
"""Minutes of one pod that a change must be worth at most, as long as the HPA looks back."""
ID = WorkloadId("bench", "Deployment", "series")


class BenchPolicy:
    """One point of the sweep; what does not depend on the point is shared by all of them."""

    name = "policy"
    targets = TARGETS
    gated = True
    advisor: LearnedJudge | None = None

    def start(self, world: dict[str, Any]) -> None:
        self.world = world
        self.series = world["cache"].setdefault("series", Series(world, gated=self.gated))
        self.setting: Setting | None = None
        hpa_target = Target("demand", TargetType.AVERAGE_VALUE, world["target"] * POD)
        self.hpa = Autoscaler("hpa", world["min_replicas"], world["max_replicas"], (hpa_target,))
        self.state: ScalingState | None = None

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

    def desired(self, history: Floats, ready: int, pending: int, now: int) -> int:
        at = datetime.fromtimestamp(now, UTC)
        if not self.series.same(history, now):
            self.series = copy(self.series)
        workload = Workload(ID, ready + pending, ready, Resources(), self.hpa)
        outlooks: Mapping[Signal, SignalForecast] = {REQUESTS: self.series.outlook(history, now)}
        gate, policy = self.series.gate, self._policy()
        if self.advisor:
            outlooks = self.advisor.advised(outlooks, workload, Policy(horizontal=policy), at)
        state = self.state or ScalingState.beginning(workload.replicas, at)
        decided = decide_replicas(workload, outlooks, policy, state, at, gate=Gate() if policy is HPA_ALONE else gate)
        self.state = decided.state
        return getattr(decided.verdict, "replicas", workload.replicas)

    def _policy(self) -> HorizontalPolicy:
        """Without a forecast the HPA keeps its own window."""
        setting = self.series.settings[self.world["target"]]
        if setting is None or (self.gated and self.series.gate.standing is not Standing.ACTING):
            return HPA_ALONE
        if setting is not self.setting:
            self.setting, self.policy = setting, self._sized(setting)
        return self.policy


HPA_ALONE = HorizontalPolicy(gate=True, requests_metric="demand", scale_down_stabilization=timedelta(minutes=4))


class Series:
    """What is known of the replayed series at a tick: the newest demand, the coming peak, and where the gate stands."""

    def __init__(self, world: dict[str, Any], *, gated: bool) -> None:
        self.unit = POD / world["pod_capacity"]
        self.width = max(1, world["native_seconds"] // TICK)
        self.start_up = world["startup_seconds"] // TICK
        self.reach = (world["startup_seconds"] + world["sync_seconds"]) // TICK + MORE
        self.model = create("adaptive")
        self.at, self.fitted_at, self.judged_at = None, None, None
        self.said: dict[tuple[int, int], tuple[float, ...]] = {}
        self.gated, self.gate = gated, Gate()
        self.settings: Mapping[float, Setting | None] = STATED

    def same(self, history: Floats, now: int) -> bool:
        """Whether another point of the sweep saw this tick as it is here; each sees its own where demand is cut off."""
        return self.at != now or np.array_equal(self.newest, history[-1:], equal_nan=True)

    def outlook(self, history: Floats, now: int) -> SignalForecast:
        """Once per tick, for all points of the sweep."""
        if self.at != now or not self.same(history, now):
            self.at, self.newest, self.known = now, history[-1:].copy(), self._look(history, now)
        return self.known

    def _look(self, history: Floats, now: int) -> SignalForecast:
        if self.gated and (self.judged_at is None or now - self.judged_at >= JUDGED_EVERY):
            self.judged_at = now
            self.gate = self._judged(history, now)
        age = next((age for age in range(min(MAX_AGE, len(history))) if not np.isnan(history[-1 - age])), None)
        if age is None:
            return SignalForecast(REQUESTS, Unknown("no sample", stale=True), Unknown("no sample"))
        at = datetime.fromtimestamp(now, UTC)
        measured = float(history[-1 - age]) * self.unit
        return SignalForecast(REQUESTS, Measured(measured, at), self._ahead(history, now, at, measured))

    def _ahead(self, history: Floats, now: int, at: datetime, measured: float) -> PeakForecast | Unknown:
        bins, rest = in_bins(history, now, self.width)
        steps = -(-(self.reach - rest) // self.width)
        if self.gate.voice is Voice.SEASONAL:
            day = 86400 // TICK
            window = history[len(history) - day : len(history) - day + self.reach]
            peaks = (float(np.nanmax(window, initial=0.0)) * self.unit,) * len(LEVELS)
        elif steps < 1:
            peaks = (measured,) * len(LEVELS)
        elif (now + rest * TICK, steps) in self.said and self.width > 1:
            peaks = self.said[now + rest * TICK, steps]
        else:
            peaks = self.said[now + rest * TICK, steps] = self._forecast(bins, now + rest * TICK, steps)
        if np.isnan(peaks).any():
            return Unknown("too little history")
        until = at + timedelta(minutes=self.reach)
        return PeakForecast(
            "adaptive", 0.9, peaks[6], peaks[0], peaks[2], peaks[7], at, until, levels=LEVELS, peaks=peaks
        )

    def _forecast(self, bins: Floats, end: int, steps: int) -> tuple[float, ...]:
        panel = panel_of(bins * self.unit, end, self.width)
        if self.fitted_at is None or end - self.fitted_at >= REFIT:
            self.fitted, self.fitted_at = self.model.fit(panel), end
        else:
            self.fitted = self.fitted.update(panel)
        peak = self.fitted.forecast_peak(StepWindow(1, steps), LEVELS)
        return tuple(peak.values[0].tolist()) if len(peak.values) else (np.nan,) * len(LEVELS)

    def _judged(self, history: Floats, now: int) -> Gate:
        """By the newest days, the older half first: who is better in all and in the newer half is let in at once."""
        at, gate, days = datetime.fromtimestamp(now, UTC), self.gate, self._days(history, now)
        if days is None:
            return gate
        if self.settings is STATED:
            self.settings = calibrated(days, LEVELS, WINDOW + 1)
        for one in evidence_of(days, LEVELS, self.start_up, Rule("newsvendor", 0.9, WINDOW + 1)):
            gate = judged(gate, one, at)
        return gate

    def _days(self, history: Floats, now: int) -> Days | None:
        """The newest days, in pods."""
        bins, rest = in_bins(history, now, self.width)
        looked = backtest(bins * self.unit / POD, self.width, to_come=rest, reach=self.reach, days=REHEARSED_DAYS)
        return Days(*looked) if looked else None


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
