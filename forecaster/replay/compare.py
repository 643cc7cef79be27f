"""The comparison as a list of steps: what can be replayed, forecasts, the run of every strategy, and their curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import Signal
from forecaster.domain.window import DAY, MINUTE
from forecaster.domain.workload import Prices, Workload, WorkloadId
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.horizontal.targets import targets_of, usable
from forecaster.ports import StageWatch
from forecaster.replay.account import Run, RunResult, with_targets_at
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions
from forecaster.replay.comparison import Comparison, Curve, WorkloadComparison
from forecaster.replay.engine import replay_runs
from forecaster.replay.forecasts import ForecastRequest, ReplayForecasts, forecast_minutes
from forecaster.replay.gated import DailyGates, GateSince, acting_of, with_seasonal
from forecaster.replay.setup import Setup, first_pods, lead_time_of, setup_or_reason
from forecaster.replay.strategies import (
    SERVICE_MODEL,
    ForecastSource,
    Strategy,
    at_share,
    bound,
    needed_span,
    perfect,
    strategies_with,
)
from forecaster.replay.traces import Measurements, Traces, measurements_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Forecasting = Callable[[Measurements, Sequence[Signal], ForecastRequest], ReplayForecasts]

USUAL_STRATEGIES = strategies_with(SERVICE_MODEL)


class ReplayScope(NamedTuple):
    """Workloads that can be replayed, as setups and policies by series, and why the others cannot."""

    measurements: Measurements
    setups: Mapping[int, Setup]
    policies: Mapping[int, Policy]
    left_out: Mapping[WorkloadId, str]


class Point(NamedTuple):
    """Key of a run: strategy, setting and workload."""

    series: int
    strategy: str
    share: float


def compare(
    traces: Traces,
    policies: Policies | None = None,
    strategies: Sequence[Strategy] = USUAL_STRATEGIES,
    *,
    begin: datetime | None = None,
    until: datetime | None = None,
    assumed: Assumptions = USUAL_ASSUMPTIONS,
    forecasting: Forecasting = forecast_minutes,
    seconds: Callable[[], float] = lambda: 0.0,
    watch: StageWatch | None = None,
) -> Comparison:
    """Replay `traces` from `begin` to `until`, by default their last day; what lies before is history.

    `policies` are the defaults unless given, `seconds` is a clock for durations only. After Ctrl-C `watch` may have
    the strategies compared for which there are forecasts.
    """
    until = traces.end if until is None else until
    begin = until - DAY if begin is None else begin
    durations, policies = Durations(seconds), policies or Policies(Policy())
    scope = scope_of(traces, policies, begin, until, assumed)
    forecasts = StrategyForecasts(scope, assumed, forecasting, durations)
    runs = _runs_until_interrupted(scope, strategies, assumed, forecasts, watch)
    replayed = {point.strategy for point in runs}
    strategies = [strategy for strategy in strategies if strategy.name in replayed or not runs]
    if watch:
        watch.began("decisions", 0.5)
    with durations.of("decisions"):
        results = replay_runs(list(runs.values()), scope.measurements, tracks=True)
    compared = compared_workloads(scope, dict(zip(runs, results, strict=True)), assumed.prices)
    gates = {traces.workloads[series].id: stood for series, stood in forecasts.stood.items()}
    return Comparison(
        begin, until, strategies, compared, scope.left_out, durations.steps, gates, assumed, traces.origin
    )


def _runs_until_interrupted(
    scope: ReplayScope,
    strategies: Sequence[Strategy],
    assumed: Assumptions,
    forecasts: StrategyForecasts,
    watch: StageWatch | None,
) -> dict[Point, Run]:
    """Return every run; after Ctrl-C those of strategies already forecast, of which the HPA alone is the first."""
    runs: dict[Point, Run] = {}
    for i, strategy in enumerate(strategies):
        if watch:
            watch.began(f"forecasts: {strategy.title}", 0.5 * i / len(strategies))
        try:
            runs |= dict(runs_of(scope, [strategy], assumed, forecasts))
        except KeyboardInterrupt:
            if runs and watch and watch.interrupted(strategy.title):
                break
            raise
    return runs


class Durations:
    """Seconds by step, read from a clock that is given."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.steps: dict[str, float] = {}

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Measure the block, also when it fails."""
        began = self._seconds()
        try:
            yield
        finally:
            self.steps[step] = self.steps.get(step, 0.0) + self._seconds() - began


def scope_of(
    traces: Traces,
    policies: Policies,
    begin: datetime,
    until: datetime,
    assumed: Assumptions,
    *,
    forecasts: bool = True,
) -> ReplayScope:
    """Return the workloads that can be replayed; without `forecasts` a span may be as short as what is forecast."""
    stated = [(workload.id, policies.of(workload.id)) for workload in traces.workloads]
    measurements = measurements_of(traces, begin, max(0, (until - begin) // MINUTE), stated)
    setups, chosen, left_out = {}, {}, {}
    for series, workload in enumerate(traces.workloads):
        chosen[series] = policies.of(workload.id)
        setup = setup_or_reason(series, workload, chosen[series], measurements, assumed, forecasts=forecasts)
        if isinstance(setup, Setup):
            setups[series] = setup
        else:
            left_out[workload.id] = setup
    return ReplayScope(measurements, setups, chosen, left_out)


class StrategyForecasts:
    """Forecasts of each strategy, made once for each model and span."""

    def __init__(self, scope: ReplayScope, assumed: Assumptions, forecasting: Forecasting, watch: Durations) -> None:
        self._scope, self._assumed, self._forecasting, self._watch = scope, assumed, forecasting, watch
        self._made: dict[tuple[str, PeakSpan], ReplayForecasts] = {}
        self.stood: dict[int, tuple[GateSince, ...]] = {}
        """Gates of the forecast by series, if a strategy is gated."""

    def of(self, strategy: Strategy, series: int) -> ReplayForecasts | None:
        """Return this strategy's forecasts of one workload; None for the HPA alone."""
        if strategy.source is ForecastSource.NOTHING:
            return None
        span = self._span(strategy, series)
        key = (strategy.model or strategy.source.value, span)
        if key not in self._made:
            with self._watch.of(f"forecasts of {key[0]}"):
                self._made[key] = self._forecast(strategy, span)
        return self._behind_gates(strategy, key) if strategy.gated else self._made[key]

    def acting(self, strategy: Strategy, series: int) -> NDArray[np.bool_] | None:
        """Return [minute] whether the gate lets this strategy's forecast act; None if the strategy is not gated."""
        return acting_of(self.stood[series], self._scope.measurements.minutes) if strategy.gated else None

    def _behind_gates(self, strategy: Strategy, key: tuple[str, PeakSpan]) -> ReplayForecasts:
        """Return the forecasts, replaced by yesterday's load where a gate says so."""
        gated = (f"{key[0]} behind its gate", key[1])
        if gated not in self._made:
            with self._watch.of("gates"):
                gates = DailyGates(self._scope.measurements, self._assumed, strategy.model)
                policies = {series: self._scope.policies[series] for series in self._scope.setups}
                self.stood = self.stood or gates.of(policies)
                self._made[gated] = with_seasonal(self._made[key], self.stood, gates)
        return self._made[gated]

    def _span(self, strategy: Strategy, series: int) -> PeakSpan:
        if strategy.source is ForecastSource.TRUTH:
            return needed_span(self._scope.setups[series])
        policy = self._scope.policies[series].horizontal
        return PeakSpan(lead_time_of(policy, self._assumed), policy.window)

    def _forecast(self, strategy: Strategy, span: PeakSpan) -> ReplayForecasts:
        if strategy.source is ForecastSource.TRUTH:
            return perfect(self._scope.measurements, span)
        request = ForecastRequest(strategy.model, span, every=self._assumed.every)
        return self._forecasting(self._scope.measurements, signals_of(self._scope), request)


def signals_of(scope: ReplayScope) -> list[Signal]:
    """Return the signals that any target reads."""
    return sorted({target.signal for setup in scope.setups.values() for target in setup.targets})


def runs_of(
    scope: ReplayScope, strategies: Sequence[Strategy], assumed: Assumptions, forecasts: StrategyForecasts
) -> Iterator[tuple[Point, Run]]:
    """Every workload under every strategy at every share of its targets, the owner's own among them."""
    for series in scope.setups:
        replicas = first_pods(series, scope.setups[series], scope.measurements)
        for share in dict.fromkeys((1.0, *assumed.shares)):
            workload, setup = with_setup_at(scope, series, share)
            for strategy in strategies:
                policy = strategy.policy_of(scope.policies[series])
                yield (
                    Point(series, strategy.name, share),
                    Run(
                        series=series,
                        workload=workload,
                        setup=setup,
                        replicas=replicas,
                        policy=at_share(policy, share) if policy else None,
                        forecasts=forecasts.of(strategy, series),
                        advisor=strategy.advisor,
                        acting=forecasts.acting(strategy, series),
                    ),
                )


def with_setup_at(scope: ReplayScope, series: int, share: float) -> tuple[Workload, Setup]:
    """A workload with its HPA's targets at this share, and its setup with them."""
    workload = with_targets_at(scope.measurements.traces.workloads[series], share)
    targets = usable(targets_of(workload, scope.policies[series].horizontal))
    return workload, replace(scope.setups[series], targets=targets)


def compared_workloads(
    scope: ReplayScope, results: Mapping[Point, RunResult], prices: Prices | None
) -> list[WorkloadComparison]:
    """The curves of every workload, each account with its price."""
    points: dict[int, dict[str, dict[float, RunResult]]] = defaultdict(lambda: defaultdict(dict))
    for point, result in results.items():
        points[point.series][point.strategy][point.share] = result
    return [_compared(scope, series, by_name, prices) for series, by_name in points.items()]


def _compared(
    scope: ReplayScope, series: int, by_name: Mapping[str, Mapping[float, RunResult]], prices: Prices | None
) -> WorkloadComparison:
    workload = scope.measurements.traces.workloads[series]
    pod_hour = prices.of_pod(workload.resources) if prices else 0.0
    needs = bound(scope.setups[series], scope.measurements, series)
    return WorkloadComparison(
        workload=workload,
        setup=scope.setups[series],
        curves={name: _curve(shares, pod_hour) for name, shares in by_name.items()},
        bound=needs.priced(pod_hour),
        demand=demand_of(scope, series),
    )


def demand_of(scope: ReplayScope, series: int) -> NDArray[np.float64]:
    """[minute] the demand that fills the pods of one workload."""
    return scope.measurements.of(scope.setups[series].capacity.signal, 1, series)


def _curve(shares: Mapping[float, RunResult], pod_hour: float) -> Curve:
    points = {share: shares[share].account.priced(pod_hour) for share in sorted(shares, reverse=True)}
    return Curve(points, shares[1.0].track)
