"""Search for the best policy on replayed days, judged on days it has not seen, with its uncertainty.

Days fall into blocks of neighbours. For each block the best candidate of the other days is chosen and judged on the
block, so that the expected outcome is that of a choice made beforehand. Its uncertainty comes from drawing whole days
anew, the same for both policies (paired bootstrap; Efron 1979): minutes of a day depend on each other, days less so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.amounts import duration_text
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.policy_numbers import policy_numbers
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.ports import StageWatch
from forecaster.replay.account import Run, RunResult
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions
from forecaster.replay.compare import Forecasting, ReplayScope, scope_of, signals_of, with_setup_at
from forecaster.replay.engine import replay_runs
from forecaster.replay.forecasts import ForecastRequest, ReplayForecasts, forecast_minutes
from forecaster.replay.setup import first_pods, lead_time_of
from forecaster.replay.sliders import LEAD_TIME, PolicyChange
from forecaster.replay.strategies import SERVICE_MODEL, with_horizontal
from forecaster.replay.traces import Traces

Floats = NDArray[np.float64]

LONGER = (0.0, 120.0, 300.0)
"""Seconds added to the lead time."""
SHARES = (0.9, 1.0, 1.15, 1.3)
MIN_DAYS, MAX_FOLDS = 6, 7
"""Days and folds of tuning: with fewer days a fold is a single one, and the weekend decides."""
SLACK = 0.01
"""The present policy stays unless another one is better by this share: of equals the known one is to be preferred."""
DRAWS, SEED, LEVEL = 2000, 1, 0.9
MINUTES = 1440


class Estimate(NamedTuple):
    """A relative change against the present policy, with its interval at confidence `LEVEL`."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PolicyProposal:
    """A policy that was better on days that did not choose it. `agreed` is the share of folds that chose it.

    The cost is that of the pods and, at the policy's own price, of what was missing.
    """

    workload: Workload
    present: PolicyChange
    chosen: PolicyChange
    days: int
    cost: Estimate
    pod_hours: Estimate
    missing: Estimate | None
    """None where the present policy has no shortage."""
    agreed: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """Proposals, and the reason for each workload without one."""

    begin: datetime
    until: datetime
    proposals: Sequence[PolicyProposal]
    refused: Mapping[WorkloadId, str]


def tune(
    traces: Traces,
    policies: Policies,
    *,
    begin: datetime,
    until: datetime,
    model: str = SERVICE_MODEL,
    assumed: Assumptions = USUAL_ASSUMPTIONS,
    forecasting: Forecasting = forecast_minutes,
    watch: StageWatch | None = None,
    allow_shortage: bool = False,
) -> Tuning:
    """Search the settings of every workload on the whole days from `begin` on.

    Settings that left more short than the present policy on the days that chose them are no candidates, unless
    `allow_shortage`: a cheaper policy that is paid for by the users is another question.
    """
    days = (until - begin) // timedelta(days=1)
    if days < MIN_DAYS:
        thin = f"{days} whole days of {duration_text(until - begin)} say too little; {MIN_DAYS} are the least"
        return Tuning(begin, until, (), {workload.id: thin for workload in traces.workloads})
    scope = scope_of(traces, policies, begin, begin + days * timedelta(days=1), assumed)
    refused = dict(scope.left_out)
    proposals: list[PolicyProposal] = []
    search = Search(scope, days, model, assumed, forecasting, allow_shortage)
    for done, series in enumerate(scope.setups):
        id_ = traces.workloads[series].id
        if watch:
            watch.began(str(id_), done / len(scope.setups))
        try:
            proposal = search.of(series)
        except KeyboardInterrupt:
            if watch and watch.interrupted(str(id_)):
                left = [traces.workloads[place].id for place in list(scope.setups)[done:]]
                return Tuning(begin, until, proposals, refused | dict.fromkeys(left, "interrupted before its turn"))
            raise
        if isinstance(proposal, PolicyProposal):
            proposals.append(proposal)
        else:
            refused[id_] = proposal
    return Tuning(begin, until, proposals, refused)


@dataclass(frozen=True, slots=True)
class Search:
    """State of the search over the workloads; forecasts are made once for each span."""

    scope: ReplayScope
    days: int
    model: str
    assumed: Assumptions
    forecasting: Forecasting
    allow_shortage: bool
    forecasts: dict[PeakSpan, ReplayForecasts] = field(default_factory=dict)

    def of(self, series: int) -> PolicyProposal | str:
        """Return the proposal for one workload, or why there is none."""
        scope, policy = self.scope, self.scope.policies[series]
        candidates = [present_of(policy, self.assumed), *_grid(policy, self.assumed)]
        for span in {span_of(candidate, policy) for candidate in candidates} - self.forecasts.keys():
            request = ForecastRequest(self.model, span, every=self.assumed.every)
            self.forecasts[span] = self.forecasting(scope.measurements, signals_of(scope), request)
        runs = list(_runs(scope, series, candidates, self.forecasts))
        costs = DailyCosts.of(replay_runs(runs, scope.measurements, tracks=True), scope, series, self.days)
        workload = scope.measurements.traces.workloads[series]
        return judged(candidates, costs, workload, allow_shortage=self.allow_shortage)


@dataclass(frozen=True, slots=True, eq=False)
class DailyCosts:
    """[candidate, day] pod-hours, missing pod-hours, and the price of these."""

    pod_hours: Floats
    missing: Floats
    price: float

    @classmethod
    def of(cls, results: Sequence[RunResult], scope: ReplayScope, series: int, days: int) -> DailyCosts:
        """The tracks by the day."""
        spent = np.array([result.track.spent.reshape(days, MINUTES).sum(axis=1) / 60 for result in results])
        missing = np.array([result.track.missing.reshape(days, MINUTES).sum(axis=1) / 60 for result in results])
        quantile = scope.policies[series].horizontal.quantile
        return cls(spent, missing / scope.setups[series].capacity.amount, quantile / (1.0 - quantile))

    @property
    def cost(self) -> Floats:
        """Return the cost, in pod-hours."""
        return self.pod_hours + self.price * self.missing


def judged(
    candidates: Sequence[PolicyChange], daily: DailyCosts, workload: Workload, *, allow_shortage: bool = True
) -> PolicyProposal | str:
    """Return the proposal, or why there is none. Candidate 0 is the present policy."""
    cost, days = daily.cost, daily.cost.shape[1]
    blocks = np.array_split(np.arange(days), min(MAX_FOLDS, days // 2))
    allowed = None if allow_shortage else daily.missing
    others = [None if allowed is None else np.delete(allowed, block, axis=1) for block in blocks]
    chosen = [best(np.delete(cost, block, axis=1), short) for block, short in zip(blocks, others, strict=True)]
    by_day = np.concatenate([np.full(len(block), candidate) for block, candidate in zip(blocks, chosen, strict=True)])
    final, every = best(cost, allowed), np.arange(days)
    if final == 0:
        least = "" if allow_shortage else " and leaves no more short (--allow-shortage lifts that)"
        return f"no setting that was tried is better by 1 % or more than the present policy{least}"
    estimate = change(cost[0], cost[by_day, every])
    agreed = sum(candidates[candidate] == candidates[final] for candidate in chosen) / len(chosen)
    if estimate.high >= 0:
        return (
            f"not sure enough: on days that did not choose it the best setting changes the cost by "
            f"{estimate.expected:+z.1%}, {estimate.low:+z.1%} to {estimate.high:+z.1%} with {LEVEL:.0%} confidence"
        )
    missing = daily.missing[by_day, every]
    if not allow_shortage and missing.sum() > daily.missing[0].sum() * (1 + SLACK):
        return (
            f"on days that did not choose it the best setting leaves {missing.sum():.4f} pod-hours short instead of "
            f"{daily.missing[0].sum():.4f}; --allow-shortage proposes it"
        )
    short = daily.missing[0].sum() > 0
    return PolicyProposal(
        workload=workload,
        present=candidates[0],
        chosen=candidates[final],
        days=days,
        cost=estimate,
        pod_hours=change(daily.pod_hours[0], daily.pod_hours[by_day, every]),
        missing=change(daily.missing[0], missing) if short else None,
        agreed=agreed,
    )


def best(cost: Floats, missing: Floats | None = None) -> int:
    """The cheapest candidate [candidate, day] over these days; the present one where the gain is within `SLACK`.

    Where `missing` is given, those that leave more missing than the present one are out.
    """
    total = cost.sum(axis=1)
    if missing is not None:
        total = np.where(missing.sum(axis=1) > missing[0].sum(), np.inf, total)
    cheapest = int(total.argmin())
    return cheapest if total[cheapest] < (1 - SLACK) * total[0] else 0


def change(before: Floats, after: Floats) -> Estimate:
    """The relative change of a sum over days, and its interval over days drawn anew."""
    drawn = np.random.default_rng(SEED).integers(0, len(before), (DRAWS, len(before)))
    sums = before[drawn].sum(axis=1)
    known = sums > 0
    changes = after[drawn].sum(axis=1)[known] / sums[known] - 1.0
    low, high = np.quantile(changes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if known.any() else (0.0, 0.0)
    return Estimate(float(after.sum() / before.sum() - 1.0), float(low), float(high))


def present_of(policy: Policy, assumed: Assumptions) -> PolicyChange:
    """The policy as it is, in all numbers that are searched."""
    settings = {name: getattr(policy.horizontal, name) for name in searched()}
    settings[LEAD_TIME] = lead_time_of(policy.horizontal, assumed)
    return PolicyChange.to(**settings)


def searched() -> tuple[str, ...]:
    """Return the numbers of a policy that are searched: the lead time, and those that say which values are tried."""
    return tuple(name for name, number in policy_numbers().items() if number.decides.tried or name == LEAD_TIME)


def _grid(policy: Policy, assumed: Assumptions) -> Iterator[PolicyChange]:
    lead, names = lead_time_of(policy.horizontal, assumed).total_seconds(), searched()
    tried = [
        [lead + extra for extra in LONGER] if name == LEAD_TIME else policy_numbers()[name].decides.tried
        for name in names
    ]
    for *values, share in product(*tried, SHARES):
        yield PolicyChange.to(target_share=share, **dict(zip(names, values, strict=True)))


def policy_of(candidate: PolicyChange, policy: Policy) -> Policy:
    """The workload's policy with the candidate's settings, ungated while it is tried."""
    return with_horizontal(policy, {**candidate.policy_fields, "gate": False})


def span_of(candidate: PolicyChange, policy: Policy) -> PeakSpan:
    """Return the span in which this candidate expects the peak."""
    return PeakSpan(policy_of(candidate, policy).horizontal.lead_time or timedelta(), policy.horizontal.window)


def _runs(
    scope: ReplayScope, series: int, candidates: Sequence[PolicyChange], forecasts: Mapping[PeakSpan, ReplayForecasts]
) -> Iterator[Run]:
    measurements, policy = scope.measurements, scope.policies[series]
    replicas = first_pods(series, scope.setups[series], measurements)
    for candidate in candidates:
        workload, setup = with_setup_at(scope, series, candidate.target_share)
        span = span_of(candidate, policy)
        yield Run(series, workload, setup, replicas, policy_of(candidate, policy), forecasts[span])
