"""Cost of decisions on past days: stored minutes of many workloads through `decide`.

Each workload is replayed by measured demand alone, by its forecasts and by yesterday's load, from lean to safe, and
compared at the cost of measured demand alone. Demand is open-loop and in pods: a pod is full at 1. The count of a
decision is the number of pods; a requested pod serves a start-up time later, a removed one stops at once, and the
measurement of a minute is known in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.window import MINUTES_A_DAY
from forecaster.forecasting.backtest import PolicyBacktest
from forecaster.horizontal.columns import Counts, Floats, ceil_counts
from forecaster.horizontal.decide import decide
from forecaster.horizontal.events import NO_EVENTS, EventColumns
from forecaster.horizontal.inputs import Inputs, Kind, PolicyColumns, Rules, Sizing, TargetColumns
from forecaster.horizontal.state import State
from forecaster.hpa.numbers import milli
from forecaster.hpa.spec import SHIPPED
from forecaster.replay.pods import Pods, StartUps

STATED_TARGET = 0.8
"""The target of the HPA that forecasts are compared with, as a share of a full pod."""
TARGETS = (1.5, 1.25, 1.1, 1.0, 0.93, 0.86, 0.79, 0.72, 0.6, 0.4)
"""Targets tried, from lean to safe: the share of a pod that a quantile of the forecast fills."""
FEW_TARGETS = (1.4, 1.1, 0.95, 0.8, 0.65, 0.4)
"""Fewer targets for yesterday's load, which has to be better by a margin anyway."""
NO_SHORTAGE = 1e-5
"""Share of the demand that is as good as none."""
REACTIVE_WINDOW = timedelta(minutes=4)
"""Measured demand alone looks back on five recommendations a minute apart before it gives pods back."""
EVIDENCE_BLOCK = 60
"""Minutes that are taken together where the noise of a shortage is estimated: an hour's minutes fall short together."""
DEMAND_UNIT = 1000.0
"""A pod, in the unit of the replay: its targets are whole milli-units."""
DEMAND_SIGNAL = "demand"
EXPECTS = ("nothing", "model", "yesterday")
"""Sources of a strategy's expectation; one that uses a whole distribution has none beside it."""


class Setting(NamedTuple):
    """Price of a pod, as a ratio, below which none is requested, and the share of a pod that is counted on."""

    price: float
    share: float = 1.0


NEWSVENDOR_SETTINGS = (
    *(Setting(price) for price in (0.98, 0.9, 0.75, 0.6, 0.45, 0.33, 0.24, 0.17, 0.11, 0.07, 0.04, 0.02)),
    Setting(0.01, 0.7),
    Setting(0.01, 0.4),
)
"""Newsvendor settings tried, from lean to safe."""


class Strategies(NamedTuple):
    """Strategies of deciding, [strategy] each: the count's rule, and its forecast."""

    target: Sequence[float]
    setting: Sequence[Setting | None]
    """Newsvendor settings; None where the target decides."""
    expects: Sequence[str]
    """Expectation of each strategy, from `EXPECTS`."""


class Bill(NamedTuple):
    """[strategy, series] each: requested pod-minutes, and the share of demand above the capacity of ready pods."""

    spent: Floats
    short: Floats
    by_block: Floats
    """[block, strategy, series] the parts of `short`."""


class Records(NamedTuple):
    """Result of deciding by one forecast, [series] each; NaN where it cannot spend as little as measured demand."""

    short: Floats
    """Share of the demand, for the pod-hours that measured demand alone spends."""
    saving: Floats
    """Share of those pod-hours that it does without at a shortage that is no different."""
    noise: Floats
    """Standard error of the difference between both shortages, from one hour to the next."""


class PastEvidence(NamedTuple):
    """Evidence of past days, [series] each."""

    days: float
    reactive: Floats
    """Share of the demand that measured demand alone left short."""
    model: Records
    seasonal: Records


def evidence_of(
    days: PolicyBacktest, levels: Sequence[float], policies: Sequence[HorizontalPolicy], start_ups: Counts
) -> list[PastEvidence]:
    """Return the result of each forecast on all the days [series, minute] in pods, and on the newer half of them.

    All policies have the same sizing; `start_ups` [series] are minutes.
    """
    strategies = strategies_of(policies[0].sizing)
    minutes = days.demand.shape[-1]
    halves = bills(days, levels, strategies, policies, start_ups, sinces=(0, minutes // 2))
    return [_evidence(bill, strategies, minutes - since) for bill, since in zip(halves, (0, minutes // 2), strict=True)]


def strategies_of(sizing: str) -> Strategies:
    """Measured demand alone first, then forecasts by this sizing, then yesterday's load."""
    if sizing == "quantile":
        forecasts: list[tuple[float, Setting | None, str]] = [(target, None, "model") for target in TARGETS]
    else:
        forecasts = [(1.0, setting, "model") for setting in NEWSVENDOR_SETTINGS]
    naive = [(target, None, "yesterday") for target in FEW_TARGETS]
    return Strategies(*zip(*[(STATED_TARGET, None, "nothing"), *forecasts, *naive], strict=True))


def bills(
    days: PolicyBacktest,
    levels: Sequence[float],
    strategies: Strategies,
    policies: Sequence[HorizontalPolicy],
    start_ups: Counts,
    *,
    sinces: Sequence[int] = (0,),
) -> list[Bill]:
    """Return the cost of every strategy, from each of these minutes on."""
    total = days.demand.shape[-1]
    starts = np.unique(np.concatenate([np.arange(since, total, EVIDENCE_BLOCK) for since in sinces]))
    desired, missing = _PastReplay(days, levels, strategies, policies, start_ups).blocks(starts)
    demand = np.add.reduceat(days.demand, starts, axis=1).T
    parts = [starts >= since for since in sinces]
    return [_bill(desired[part], missing[part], demand[part].sum(axis=0), len(strategies.target)) for part in parts]


class _PastReplay:
    """Rows are strategies × series, strategy by strategy; minutes pass outside."""

    def __init__(
        self,
        days: PolicyBacktest,
        levels: Sequence[float],
        strategies: Strategies,
        policies: Sequence[HorizontalPolicy],
        start_ups: Counts,
    ) -> None:
        self._strategies, self._series = strategies, len(policies)
        rows = len(strategies.target) * self._series
        self._sized = np.array([setting is not None for setting in strategies.setting])
        sizing: Sizing = "newsvendor" if self._sized.any() else "quantile"
        self._rules = Rules(sizing, sizing == "newsvendor", (Kind(DEMAND_SIGNAL, of_request=False),), tuple(levels))
        self._policy = _policies(strategies, policies)
        self._targets = _targets(strategies, self._series)
        # The minute comes first and the series last, without a copy where they lie in memory so.
        self._days = type(days)(*(np.ascontiguousarray(np.moveaxis(field, 0, -1)) for field in days))
        quantiles = np.array([policy.quantile for policy in policies])
        self._stated = self._days.measured if self._sized.any() else quantile_of(levels, self._days.peaks, quantiles)
        self._expected = np.full((len(EXPECTS), self._series), np.nan)
        pairs = zip(strategies.expects, strategies.setting, strict=True)
        self._expects = np.array([0 if setting else EXPECTS.index(name) for name, setting in pairs])
        targets = np.repeat(strategies.target, self._series)
        first = np.maximum(ceil_counts(self._tiled(self._days.measured[0]) / targets), 1)
        self._pods = Pods(first, StartUps(np.tile(start_ups, len(strategies.target))))
        self._state = State.new(rows, (DEMAND_SIGNAL,))
        self._quantiles = np.full((len(levels), rows), np.nan)
        self._always, self._never = np.ones(rows, np.bool_), np.zeros(rows, np.bool_)
        self._zero, self._nothing_lost = np.zeros(rows, np.int64), np.zeros(rows)
        self._no_events = EventColumns.of([NO_EVENTS], self._zero)
        self._known, self._untold = np.zeros((1, rows), np.int8), np.full((1, rows), np.nan)

    def _tiled(self, series: Floats) -> Floats:
        return np.tile(series, len(self._strategies.target))

    def blocks(self, starts: Counts) -> tuple[Floats, Floats]:
        """[block, row] requested pod-minutes, and demand above the capacity of ready pods.

        A block is the minutes from one of `starts`, which ascend, to the next.
        """
        desired, missing = np.zeros((2, len(starts), len(self._zero)))
        block = np.searchsorted(starts, np.arange(len(self._days.demand)), side="right") - 1
        for minute, place in enumerate(block.tolist()):
            self._pods.arrive(minute)
            decisions, self._state = decide(self._inputs(minute), self._state, minute * 60.0)
            self._pods.scale(decisions.replicas, minute)
            self._pods.arrive(minute)
            if place >= 0:
                desired[place] += self._pods.desired
                missing[place] += np.maximum(self._tiled(self._days.demand[minute]) - self._pods.ready, 0.0)
        return desired, missing

    def _inputs(self, minute: int) -> Inputs:
        measured = self._days.measured[minute] * DEMAND_UNIT
        return Inputs(
            rules=self._rules,
            policy=self._policy,
            targets=self._targets,
            current=self._pods.desired,
            ready=self._pods.ready,
            measured=self._tiled(measured)[None],
            unseen=self._known,
            age=self._untold,
            peak=self._peak(minute, measured),
            low=self._untold,
            quantiles=self._distributions(minute),
            acting=self._always,
            events=self._no_events,
            lost=self._nothing_lost,
            unreadable=self._never,
        )

    def _peak(self, minute: int, measured: Floats) -> Floats:
        """Return the expected peak, at least the measured demand: the HPA's formula grows with demand."""
        for known, expected in zip((self._stated, self._days.yesterday), self._expected[1:], strict=True):
            np.maximum(known[minute] * DEMAND_UNIT, measured, out=expected)
        peaks: Floats = self._expected[self._expects].reshape(1, -1)
        return peaks

    def _distributions(self, minute: int) -> list[Floats]:
        if not self._sized.any():
            return []
        quantiles = self._quantiles.reshape(len(self._quantiles), -1, self._series)
        quantiles[:, self._sized] = (self._days.peaks[minute] * DEMAND_UNIT)[:, None]
        return [self._quantiles]


def _policies(strategies: Strategies, policies: Sequence[HorizontalPolicy]) -> PolicyColumns:
    """Use the HPA's rules for measured demand alone and for forecasts in its formula, else the policy."""
    series, count = len(policies), len(strategies.target)
    by_policy = np.repeat([name != "nothing" for name in strategies.expects], series)
    sized = by_policy if any(strategies.setting) else np.zeros_like(by_policy)
    prices = np.repeat([setting.price if setting else np.nan for setting in strategies.setting], series)

    def column(name: str, otherwise: float) -> Floats:
        values = [getattr(policy, name) for policy in policies]
        numbers = np.array([otherwise if value is None else value for value in values], np.float64)
        return np.where(by_policy, np.tile(numbers, count), otherwise)

    windows = np.array([policy.scale_down_stabilization.total_seconds() for policy in policies])
    quantiles = np.tile([policy.quantile for policy in policies], count)
    rows = count * series
    return PolicyColumns.usual(
        rows,
        tolerance=np.where(sized, 0.0, SHIPPED.tolerance),
        surge=column("surge", np.nan),
        scale_down_stabilization=np.where(sized, np.tile(windows, count), REACTIVE_WINDOW.total_seconds()),
        quantile=np.where(np.isnan(prices), quantiles, 1.0 - prices),
    )


def _targets(strategies: Strategies, series: int) -> TargetColumns:
    goals = np.repeat([milli(DEMAND_UNIT * target) for target in strategies.target], series)
    full = np.repeat([DEMAND_UNIT * (setting.share if setting else 1.0) for setting in strategies.setting], series)
    return TargetColumns(goals[None], np.ones_like(goals)[None], full[None])


def at_stated_quantile(
    days: PolicyBacktest, levels: Sequence[float], policies: Sequence[HorizontalPolicy]
) -> PolicyBacktest:
    """The days with the one level of `peaks` that decisions by a quantile read, in a ninth of the memory."""
    peaks = quantile_of(levels, np.moveaxis(days.peaks, 0, -1), np.array([policy.quantile for policy in policies]))
    return days._replace(peaks=np.ascontiguousarray(peaks.T)[..., None])


def quantile_of(levels: Sequence[float], peaks: Floats, quantiles: Floats) -> Floats:
    """[minute, series] of peaks [minute, level, series] at each series' quantile, linear between two levels.

    A single level is at that quantile already.
    """
    if peaks.shape[1] == 1:
        return peaks[:, 0]
    at_quantile = np.empty((len(peaks), peaks.shape[-1]))
    for quantile in np.unique(quantiles):
        rows = quantiles == quantile
        right = min(max(int(np.searchsorted(levels, quantile)), 1), len(levels) - 1)
        share = min(max((quantile - levels[right - 1]) / (levels[right] - levels[right - 1]), 0.0), 1.0)
        at_quantile[:, rows] = (1.0 - share) * peaks[:, right - 1][:, rows] + share * peaks[:, right][:, rows]
    return at_quantile


def _bill(desired: Floats, missing: Floats, demand: Floats, strategies: int) -> Bill:
    """The bill of blocks [block, row] in which this demand [series] came."""
    by_block = missing.reshape(len(missing), strategies, -1) / np.where(demand > 0, demand, 1.0)
    return Bill(desired.sum(axis=0).reshape(strategies, -1), by_block.sum(axis=0), by_block)


def _evidence(bill: Bill, strategies: Strategies, minutes: int) -> PastEvidence:
    expects = np.array(strategies.expects)
    model, naive = (records(bill, np.flatnonzero(expects == name)) for name in ("model", "yesterday"))
    return PastEvidence(minutes / MINUTES_A_DAY, bill.short[0], model, naive)


def records(bill: Bill, strategies: Counts) -> Records:
    """Return the shortage of a sweep at the cost of strategy 0, and the saving at its shortage.

    Linear between two points of the sweep; NaN where it cannot be as lean, or not as dear.
    """
    order = np.argsort(bill.spent[strategies], axis=0, kind="stable")
    spent, short = (np.take_along_axis(column[strategies], order, axis=0) for column in (bill.spent, bill.short))
    budget = bill.spent[0]
    inside = (spent[0] <= budget) & (budget <= spent[-1])
    right = np.clip((spent <= budget).sum(axis=0), 1, len(spent) - 1)
    share = _share(spent, right, budget)
    noise = _noise(bill, strategies, order, right, share)
    as_safe = bill.short[0] + np.maximum(noise, NO_SHORTAGE)
    saving = 1.0 - _spent_at(spent, np.minimum.accumulate(short), as_safe) / np.maximum(budget, 1.0)
    return Records(*(np.where(inside, values, np.nan) for values in (_between(short, right, share), saving, noise)))


def _spent_at(spent: Floats, short: Floats, at_most: Floats) -> Floats:
    """[series] the least spent of a sweep [point, series] that leaves no more than `at_most` short, or the most."""
    safe = short <= at_most
    place = np.where(safe.any(axis=0), safe.argmax(axis=0), len(spent) - 1)
    right = np.maximum(place, 1)
    share = np.where(place > 0, _share(-short, right, -at_most), 0.0)
    return _between(spent, right, np.where(safe.any(axis=0), share, 1.0))


def _share(values: Floats, right: Counts, at: Floats) -> Floats:
    """[series] how far `at` lies from the point before `right` to that one, 0-1, of rising values [point, series]."""
    low, high = _point(values, right - 1), _point(values, right)
    gap = high - low
    return np.clip(np.where(gap > 0, (at - low) / np.where(gap > 0, gap, 1.0), 0.0), 0.0, 1.0)


def _between(values: Floats, right: Counts, share: Floats) -> Floats:
    return np.asarray((1.0 - share) * _point(values, right - 1) + share * _point(values, right))


def _point(values: Floats, place: Counts) -> Floats:
    return np.asarray(np.take_along_axis(values, place[None], axis=0)[0])


def _noise(bill: Bill, strategies: Counts, order: Counts, right: Counts, share: Floats) -> Floats:
    """[series] standard error of a sum over hours, each of which might have been another one."""
    series = np.arange(bill.spent.shape[1])
    left, after = (bill.by_block[:, strategies[order[place, series]], series] for place in (right - 1, right))
    differences = (1.0 - share) * left + share * after - bill.by_block[:, 0]
    return np.asarray(np.sqrt(((differences - differences.mean(axis=0)) ** 2).sum(axis=0)))
