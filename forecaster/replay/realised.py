"""Realised benefit: recorded decisions on the load that came, compared with the HPA alone.

Decisions are taken as they were made, not made again. Their counts are floors of the exact HPA; beside them stands the
HPA alone at every share of its targets, and what was measured of the pods that there were.

The running service replays each hour once, after two hours of warm-up, and adds it to sums of six hours (`LivePast`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.policies import Policies
from forecaster.domain.signal import PODS
from forecaster.domain.window import DAY, EPOCH, HOUR, MINUTE
from forecaster.domain.workload import Prices, Workload, WorkloadId
from forecaster.replay.account import Account, Run, RunResult, no_track
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions
from forecaster.replay.compare import Point, ReplayScope, compared_workloads, demand_of, scope_of, with_setup_at
from forecaster.replay.comparison import Comparison, Curve, WorkloadComparison
from forecaster.replay.engine import NO_FLOOR, replay_runs
from forecaster.replay.setup import Setup, first_pods
from forecaster.replay.strategies import DECIDED, HPA, MEASURED
from forecaster.replay.traces import Traces


class DecidedCount(NamedTuple):
    """A decision that was kept: the count from then on, None for a hold, which leaves the count before."""

    at: datetime
    replicas: int | None
    spare: int | None = None
    """Replicas of the count that are there only for the loss of a node or a zone; None where not recorded."""


class SpareCost(NamedTuple):
    """Cost of the spare pods of one workload, as decided."""

    workload: WorkloadId
    pod_hours: float | None
    """None where no decision of the time says how many pods are spare: an older forecaster recorded it."""
    money: float | None
    """Money by the requests of the pods; None without prices or pod-hours."""
    recorded: timedelta
    """Time of which the ledger says how many pods are spare."""


def outcome_of(
    traces: Traces,
    decisions: Mapping[WorkloadId, Sequence[DecidedCount]],
    policies: Policies,
    *,
    begin: datetime,
    until: datetime,
    assumed: Assumptions = USUAL_ASSUMPTIONS,
    played: bool = False,
    counted_from: datetime | None = None,
) -> Comparison:
    """Return the benefit of the decisions between `begin` and `until`. Pure: history and decisions in, figures out.

    Time before the first decision is left out: there the HPA would be compared with itself. Where load was `played`,
    the pods of the traces are not those of the decisions, and are not shown. Time before `counted_from` is replayed, so
    that pods and HPAs are as they were then, and is in no account.
    """
    first = first_decided(decisions, begin)
    requested, begin = begin, first if first < until else begin
    scope = scope_of(traces, policies, begin, until, assumed, forecasts=False)
    left_out = dict(scope.left_out)
    runs: dict[Point, Run] = {}
    for series in scope.setups:
        workload = traces.workloads[series]
        floors = floors_of(decisions.get(workload.id, ()), begin, scope.measurements.minutes)
        if floors.max(initial=NO_FLOOR) == NO_FLOOR:
            left_out[workload.id] = "no decision about it is recorded for that time"
        else:
            runs |= _runs(scope, series, floors, assumed)
    warm_up = max(0, (counted_from - begin) // MINUTE) if counted_from else 0
    outcomes = replay_runs(list(runs.values()), scope.measurements, tracks=True, warm_up=warm_up)
    results = dict(zip(runs, outcomes, strict=True))
    strategies = [HPA, DECIDED]
    if PODS in traces.values and not played:
        strategies.append(MEASURED)
        replayed = {point.series for point in runs}
        results |= {Point(s, MEASURED.name, 1.0): RunResult(measured(scope, s)) for s in replayed}
    workloads = compared_workloads(scope, results, assumed.prices)
    note = "no decision was recorded before" if begin > requested else ""
    return Comparison(
        begin, until, strategies, workloads, left_out, {}, assumed=assumed, origin=traces.origin, note=note
    )


def spare_costs(
    workloads: Iterable[Workload],
    decisions: Mapping[WorkloadId, Sequence[DecidedCount]],
    policies: Policies,
    *,
    begin: datetime,
    until: datetime,
    prices: Prices | None = None,
) -> list[SpareCost]:
    """Return the cost of spare pods in a span, for workloads with `survive` now or spare pods in the span."""
    costs = []
    for workload in workloads:
        spans = [*_spare_spans(decisions.get(workload.id, ()), begin, until)]
        if policies.of(workload.id).horizontal.survive == "none" and not any(spare for spare, _ in spans):
            continue
        pod_hours = sum(spare * (span / HOUR) for spare, span in spans) if spans else None
        money = pod_hours * prices.of_pod(workload.resources) if prices and pod_hours is not None else None
        costs.append(SpareCost(workload.id, pod_hours, money, sum((span for _, span in spans), timedelta())))
    return costs


def _spare_spans(
    decisions: Sequence[DecidedCount], begin: datetime, until: datetime
) -> Iterator[tuple[int, timedelta]]:
    """Yield recorded spare pods and for how long they were in force; a hold leaves those before it."""
    counts = sorted(decision for decision in decisions if decision.replicas is not None and decision.at < until)
    for place, decision in enumerate(counts, start=1):
        end = counts[place].at if place < len(counts) else until
        span = end - max(decision.at, begin)
        if decision.spare is not None and span > timedelta():
            yield decision.spare, span


def first_decided(decisions: Mapping[WorkloadId, Sequence[DecidedCount]], begin: datetime) -> datetime:
    """The first minute from `begin` on at which any decided count was in force; `begin` without one."""
    counts = [count.at for each in decisions.values() for count in each if count.replicas is not None]
    return begin + max(0, -((begin - min(counts, default=begin)) // MINUTE)) * MINUTE


def floors_of(decisions: Sequence[DecidedCount], begin: datetime, minutes: int) -> NDArray[np.int32]:
    """[minute] the count in force; none before the first decision."""
    floors = np.full(minutes, NO_FLOOR, np.int32)
    for decision in sorted(decisions):
        if decision.replicas is not None:
            floors[max(0, -((begin - decision.at) // MINUTE)) :] = decision.replicas
    return floors


def _runs(scope: ReplayScope, series: int, floors: NDArray[np.int32], assumed: Assumptions) -> dict[Point, Run]:
    """The HPA alone at every share of its targets, its own first, and the decisions."""
    replicas = first_pods(series, scope.setups[series], scope.measurements)
    runs = {
        Point(series, HPA.name, share): Run(series, *with_setup_at(scope, series, share), replicas)
        for share in dict.fromkeys((1.0, *assumed.shares))
    }
    own = runs[Point(series, HPA.name, 1.0)]
    return {**runs, Point(series, DECIDED.name, 1.0): Run(series, own.workload, own.setup, replicas, floors=floors)}


def measured(scope: ReplayScope, series: int) -> Account:
    """Return the account of the pods that were ready, by the minute; starting pods are not known and not counted.

    It shows how near the replay is to reality.
    """
    pods = scope.measurements.of(PODS, 1, series)
    return Account.by_minutes(pods, demand_of(scope, series), scope.setups[series].capacity.amount)


COMPARED_PERIODS = {"day": DAY, "week": 7 * DAY}
WARM_UP = 2 * HOUR
"""Time that is replayed before what counts, so that pods, HPA and stabilization are as they were then."""
SUM_LENGTH = timedelta(hours=6)
LIVE_SHARES = (1.25, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Targets at which the HPA alone is replayed, as shares of its owner's: from lean to twice the pods."""
SUMMED = ("pod_hours", "measured", "short", "demand", "missing")
"""Fields of an account that are summed; times in hours."""

RUNS = (*((HPA.name, share) for share in LIVE_SHARES), (DECIDED.name, 1.0))
"""Replayed runs of each workload: strategy, and share of the targets."""


@dataclass(slots=True)
class LivePast:
    """Sums of one workload, of at most a week."""

    since: datetime
    """Instant from which decisions are compared."""
    until: datetime
    """Instant up to which they were."""
    numbers: list[int] = field(default_factory=list)
    """Number of each six hours since 1970 of which there is a sum."""
    sums: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, len(RUNS), len(SUMMED)), np.float32))
    """[six hours, run, field]"""
    subject: tuple[Workload, Setup] | None = None
    """The workload in its last replay; None until it is known whether it can be replayed."""
    left_out: str = ""
    """Reason why the last hour could not be replayed."""

    def add(self, compared: WorkloadComparison, until: datetime) -> None:
        """Add one replayed hour, and drop what is older than a week."""
        self.subject, number = (compared.workload, compared.setup), _number(until)
        if number not in self.numbers:
            self.sums = np.concatenate([self.sums, np.zeros((1, len(RUNS), len(SUMMED)), np.float32)])
            self.numbers.append(number)
        self.sums[self.numbers.index(number)] += [_numbers(compared.curves[name].points[share]) for name, share in RUNS]
        recent = [
            place for place, hour in enumerate(self.numbers) if hour > number - COMPARED_PERIODS["week"] // SUM_LENGTH
        ]
        self.numbers, self.sums = [self.numbers[place] for place in recent], self.sums[recent]

    def comparison(self, period: timedelta, now: datetime, assumed: Assumptions) -> WorkloadComparison | None:
        """The sums of a period that ends now; None where there are none."""
        first = _number(now) - period // SUM_LENGTH
        places = [place for place, number in enumerate(self.numbers) if number > first]
        if self.subject is None or not places:
            return None
        workload, setup = self.subject
        pod_hour = assumed.prices.of_pod(workload.resources) if assumed.prices else 0.0
        points: dict[str, dict[float, Account]] = {HPA.name: {}, DECIDED.name: {}}
        for (name, share), numbers in zip(RUNS, self.sums[places].sum(axis=0), strict=True):
            pod_hours, measured, short, demand, missing = numbers.tolist()
            account = Account(pod_hours, measured * HOUR, short * HOUR, demand, missing)
            points[name][share] = account.priced(pod_hour)
        curves = {name: Curve(accounts, no_track()) for name, accounts in points.items()}
        return WorkloadComparison(workload, setup, curves, Account(), np.zeros(0))


def _number(at: datetime) -> int:
    """Number of the six hours in which the minute that ends at `at` lies."""
    return (at - EPOCH - MINUTE) // SUM_LENGTH


def _numbers(account: Account) -> tuple[float, ...]:
    return account.pod_hours, account.measured / HOUR, account.short / HOUR, account.demand, account.missing


def add_replayed(
    pasts: Mapping[WorkloadId, LivePast],
    traces: Traces,
    decisions: Mapping[WorkloadId, Sequence[tuple[datetime, int]]],
    policies: Policies,
    assumed: Assumptions,
) -> None:
    """Add what came since the last time of the workloads of the traces, which all were replayed up to one instant."""
    counted, end = max(pasts[traces.workloads[0].id].until, traces.start), traces.end
    outcome = outcome_of(
        traces,
        {id_: [DecidedCount(*count) for count in counts] for id_, counts in decisions.items()},
        policies,
        begin=max(traces.start, counted - WARM_UP),
        until=end,
        assumed=replace(assumed, shares=LIVE_SHARES),
        played=True,
        counted_from=counted,
    )
    for workload in traces.workloads:
        past = pasts[workload.id]
        past.until, past.left_out = end, outcome.left_out.get(workload.id, "")
    for compared in outcome.workloads:
        pasts[compared.workload.id].add(compared, end)


def live_comparison(
    pasts: Iterable[LivePast], period: timedelta, now: datetime, assumed: Assumptions
) -> Comparison | None:
    """Return the benefit of a period's decisions over all these workloads; None where nothing was replayed."""
    workloads = [compared for past in pasts if (compared := past.comparison(period, now, assumed)) is not None]
    begin = EPOCH + (_number(now) + 1) * SUM_LENGTH - period
    return Comparison(begin, now, [HPA, DECIDED], workloads, {}, {}, assumed=assumed) if workloads else None
