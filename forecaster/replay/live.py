"""The comparison of the running service while it grows: decisions as they were made, beside the HPA alone. Pure.

Each hour is replayed once, after two hours of warm-up, and added to sums of six hours; a week of these is kept. What
comes out is the `Comparison` of every other replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.policies import Policies
from forecaster.domain.window import DAY, EPOCH, HOUR, MINUTE
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.replay.account import Account, no_track
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.comparison import Comparison, Curve, WorkloadComparison
from forecaster.replay.realised import DecidedCount, outcome_of
from forecaster.replay.setup import Setup
from forecaster.replay.strategies import DECIDED, HPA
from forecaster.replay.traces import Traces

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
