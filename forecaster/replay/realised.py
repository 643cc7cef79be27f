"""The realised counterfactual: what recorded decisions were worth on the load that came, against the HPA alone.

Decisions are taken as they were made, not made again. Their counts are floors of the exact HPA; beside them stands the
HPA alone, the HPA alone with other targets at the same pod-hours, and what was measured of the pods that there were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.signal import PODS
from forecaster.domain.window import HOUR, MINUTE
from forecaster.replay.account import Account, at_pod_hours, total
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions
from forecaster.replay.benefit import Benefit, benefit
from forecaster.replay.compare import scope_of, with_setup_at
from forecaster.replay.engine import NO_FLOOR, replay_runs
from forecaster.replay.runs import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.replay.compare import ReplayScope
    from forecaster.replay.runs import RunResult
    from forecaster.replay.traces import Traces


class DecidedCount(NamedTuple):
    """A decision that was kept: the count from then on, None for a hold, which leaves the count before."""

    at: datetime
    replicas: int | None


@dataclass(frozen=True, slots=True)
class RealisedWorkload:
    """One workload. `equal` is the HPA alone at the pod-hours of `decided`, None outside of the sweep of its targets.

    `measured` is what the pods that were ready carried, None where their number was not recorded; it tells how near
    the replay is to what happened.
    """

    workload: Workload
    plain: Account
    decided: Account
    equal: Account | None
    measured: Account | None

    @property
    def benefit(self) -> Benefit:
        """What the decisions were worth, beside the HPA alone."""
        return benefit(self.plain, self.decided, self.equal)


@dataclass(frozen=True, slots=True)
class RealisedOutcome:
    """A span of time, usually a week; `left_out` says of every other workload why it is not in it."""

    begin: datetime
    until: datetime
    workloads: Sequence[RealisedWorkload]
    left_out: Mapping[WorkloadId, str]
    younger: bool = False
    """Whether it begins with the first decision that was kept, later than it was asked for."""

    @property
    def plain(self) -> Account:
        """All HPAs alone."""
        return total(one.plain for one in self.workloads)

    @property
    def decided(self) -> Account:
        """All decisions as floors."""
        return total(one.decided for one in self.workloads)

    @property
    def worse(self) -> list[RealisedWorkload]:
        """The cases in which the HPA alone would have done better."""
        return [one for one in self.workloads if one.benefit is Benefit.WORSE]


def outcome_of(
    traces: Traces,
    decisions: Mapping[WorkloadId, Sequence[DecidedCount]],
    policies: Policies,
    *,
    begin: datetime,
    until: datetime,
    assumed: Assumptions = USUAL_ASSUMPTIONS,
) -> RealisedOutcome:
    """What the decisions between `begin` and `until` were worth. Pure: history and decisions in, figures out.

    Time before the first decision is no part of it: there the HPA would be compared with itself.
    """
    first = first_decided(decisions, begin)
    asked, begin = begin, first if first < until else begin
    scope = scope_of(traces, policies, begin, until, assumed)
    left_out = dict(scope.left_out)
    runs: dict[int, list[Run]] = {}
    for series in scope.setups:
        workload = traces.workloads[series]
        floors = floors_of(decisions.get(workload.id, ()), begin, scope.measurements.minutes)
        if floors.max(initial=NO_FLOOR) == NO_FLOOR:
            left_out[workload.id] = "no decision about it was kept for that time"
        else:
            runs[series] = _runs(scope, series, floors, assumed)
    results = iter(replay_runs([run for some in runs.values() for run in some], scope.measurements))
    found = [_realised(scope, series, [next(results) for _ in some]) for series, some in runs.items()]
    return RealisedOutcome(begin, until, found, left_out, younger=begin > asked)


def first_decided(decisions: Mapping[WorkloadId, Sequence[DecidedCount]], begin: datetime) -> datetime:
    """The first minute from `begin` on at which any decided count was in force; `begin` without one."""
    counts = [one.at for each in decisions.values() for one in each if one.replicas is not None]
    return begin + max(0, -((begin - min(counts, default=begin)) // MINUTE)) * MINUTE


def floors_of(decisions: Sequence[DecidedCount], begin: datetime, minutes: int) -> NDArray[np.int32]:
    """[minute] the count in force; before the first decision there is none."""
    floors = np.full(minutes, NO_FLOOR, np.int32)
    for at, replicas in sorted(decisions):
        if replicas is not None:
            floors[max(0, -((begin - at) // MINUTE)) :] = replicas
    return floors


def _runs(scope: ReplayScope, series: int, floors: NDArray[np.int32], assumed: Assumptions) -> list[Run]:
    """The decisions, and the HPA alone at every share of its targets, its own first."""
    replicas = scope.measurements.traces.pods_at(series, scope.measurements.begin)
    plain = []
    for share in dict.fromkeys((1.0, *assumed.shares)):
        workload, setup = with_setup_at(scope, series, share)
        plain.append(Run(series, workload, setup, replicas))
    own = plain[0]
    return [Run(series, own.workload, own.setup, replicas, floors=floors), *plain]


def _realised(scope: ReplayScope, series: int, results: Sequence[RunResult]) -> RealisedWorkload:
    decided, plain, *others = (one.account for one in results)
    equal = at_pod_hours((plain, *others), decided.pod_hours)
    workload = scope.measurements.traces.workloads[series]
    return RealisedWorkload(workload, plain, decided, equal, measured(scope, series))


def measured(scope: ReplayScope, series: int) -> Account | None:
    """What the pods that were ready carried, by the minute; pods that were starting are not known and not counted."""
    measurements, capacity = scope.measurements, scope.setups[series].capacity
    if PODS not in measurements.traces.values:
        return None
    pods = measurements.past(PODS, 1, measurements.minutes)[:, series]
    demand = measurements.past(capacity.signal, 1, measurements.minutes)[:, series]
    known = ~np.isnan(pods) & ~np.isnan(demand)
    missing = np.maximum(0.0, demand[known] - pods[known] * capacity.amount)
    hours = MINUTE / HOUR
    return Account(
        pod_hours=float(np.nansum(pods)) * hours,
        measured=int(known.sum()) * MINUTE,
        short=int((missing > 0).sum()) * MINUTE,
        demand=float(demand[known].sum()) * hours,
        missing=float(missing.sum()) * hours,
        changes=int(np.count_nonzero(np.diff(pods[~np.isnan(pods)]))),
    )
