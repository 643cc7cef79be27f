"""Realised benefit: recorded decisions on the load that came, compared with the HPA alone.

Decisions are taken as they were made, not made again. Their counts are floors of the exact HPA; beside them stands the
HPA alone at every share of its targets, and what was measured of the pods that there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.policies import Policies
from forecaster.domain.signal import PODS
from forecaster.domain.window import HOUR, MINUTE
from forecaster.domain.workload import Prices, Workload, WorkloadId
from forecaster.replay.account import Account, Run, RunResult
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions
from forecaster.replay.compare import Point, ReplayScope, compared_workloads, demand_of, scope_of, with_setup_at
from forecaster.replay.comparison import Comparison
from forecaster.replay.engine import NO_FLOOR, replay_runs
from forecaster.replay.setup import first_pods
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
