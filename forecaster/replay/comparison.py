"""Several strategies on the same demand, each with its whole frontier of cost against shortage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from forecaster.domain.amounts import counted, listed
from forecaster.domain.window import DAY, MINUTE
from forecaster.replay.account import Account, Track, at_missing, at_pod_hours, total
from forecaster.replay.assumptions import USUAL_ASSUMPTIONS, Assumptions
from forecaster.replay.strategies import HPA, Strategy, forecaster_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from forecaster.domain.workload import Prices, Workload, WorkloadId
    from forecaster.replay.gated import GateSince
    from forecaster.replay.setup import Setup


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One strategy on one workload: accounts by the share of the owner's targets, the track at the share 1."""

    points: Mapping[float, Account]
    track: Track

    @property
    def own(self) -> Account:
        """Return the account with the targets that the owner set."""
        return self.points[1.0]


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadComparison:
    """One workload: the curve of every strategy, and the least cost of its demand."""

    workload: Workload
    setup: Setup
    curves: Mapping[str, Curve]
    bound: Account
    demand: NDArray[np.float64]
    """[minute] of the signal that fills its pods; NaN where none was measured."""

    def equal(self, name: str) -> Account | None:
        """The HPA alone at the pod-hours that this strategy spends; None outside of the sweep."""
        return at_pod_hours(self.curves[HPA.name].points.values(), self.curves[name].own.pod_hours)

    def at_cost_of_hpa(self, name: str) -> Account | None:
        """This strategy at the pod-hours that the HPA alone spends; None outside of the sweep."""
        return at_pod_hours(self.curves[name].points.values(), self.curves[HPA.name].own.pod_hours)

    def ratio(self, name: str) -> float | None:
        """Unserved demand at the HPA's pod-hours, relative to the HPA; None where the HPA has no shortage."""
        plain, at_cost = self.curves[HPA.name].own, self.at_cost_of_hpa(name)
        if at_cost is None or not plain.demand or not short(plain):
            return None
        return at_cost.missing / plain.missing

    def benefit(self, name: str) -> Benefit:
        """Return the benefit of this strategy over the HPA alone."""
        return benefit(self.curves[HPA.name].own, self.curves[name].own, self.equal(name))

    def loss(self, name: str) -> float:
        """Unserved demand beyond the HPA's at this strategy's pod-hours, as a share of the demand."""
        own = self.curves[name].own
        return (own.missing - (self.equal(name) or self.curves[HPA.name].own).missing) / (own.demand or 1.0)

    def leanest(self, name: str) -> float | None:
        """Fewest pod-hours at which this strategy leaves no more short than the HPA at its own targets."""
        return at_missing(self.curves[name].points.values(), self.curves[HPA.name].own.missing)

    def saved(self, name: str) -> float | None:
        """Share that this strategy saves of the pod-hours of the leanest HPA alone; None if it cannot."""
        spent, alone = self.leanest(name), self.leanest(HPA.name)
        return None if spent is None or not alone else 1.0 - spent / alone


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Outcome of a replay. `left_out` has the reason for each workload that is not in it."""

    begin: datetime
    until: datetime
    strategies: Sequence[Strategy]
    workloads: Sequence[WorkloadComparison]
    left_out: Mapping[WorkloadId, str]
    seconds: Mapping[str, float]
    """Seconds spent: on the forecasts of each model, and on all decisions."""
    gates: Mapping[WorkloadId, Sequence[GateSince]] = field(default_factory=dict)
    """Gates of each workload, day by day, if a strategy is gated."""
    assumed: Assumptions = USUAL_ASSUMPTIONS
    origin: str = ""
    """Origin of the demand, in a sentence."""
    note: str = ""
    """A special property of the span, in a few words."""

    @property
    def prices(self) -> Prices | None:
        """Return the prices of the pod-hours; without them accounts have no money."""
        return self.assumed.prices

    @property
    def forecaster(self) -> str:
        """Name of the strategy that represents forecaster."""
        return forecaster_of(strategy.name for strategy in self.strategies)

    def worse(self, name: str) -> list[WorkloadComparison]:
        """Workloads on which the HPA alone does better than a strategy, the largest loss of demand first."""
        replayed = [workload for workload in self.workloads if name in workload.curves]
        worse = [workload for workload in replayed if workload.benefit(name) is Benefit.WORSE]
        return sorted(worse, key=lambda workload: -workload.loss(name))

    def verdict(self, span: timedelta | None = None) -> str:
        """Say on how many workloads forecaster was worse, better and the same; empty where it is not compared."""
        name = self.forecaster
        if not self.workloads or not any(strategy.name == name for strategy in self.strategies):
            return ""
        worse, counts = self.worse(name), Counter(workload.benefit(name) for workload in self.workloads)
        names = f": {listed([str(workload.workload.id) for workload in worse])}" if worse else ""
        better, when = counts[Benefit.BETTER], SPAN_WORDS.get(span or self.until - self.begin, "")
        return (
            f"{'Forecaster' if better else f'No benefit{when}: forecaster'} was worse than the HPA alone on "
            f"{len(worse) or 'none'} of {counted(len(self.workloads), 'workload')}{names}; better on "
            f"{better or 'none'}, the same on {counts[Benefit.SAME] or 'none'}.{'' if better else f' {TRY_TUNE}'}"
        )

    def ordered(self) -> list[WorkloadComparison]:
        """Workloads on which forecaster was worse first, then by the shortage of the HPA alone."""
        worse = self.worse(self.forecaster)
        ids = {workload.workload.id for workload in worse}
        others = [workload for workload in self.workloads if workload.workload.id not in ids]
        return [*worse, *sorted(others, key=lambda workload: -workload.curves[HPA.name].own.missing)]

    def own(self, name: str) -> Account:
        """The sum over the workloads, with the targets that their owners set."""
        return total(workload.curves[name].own for workload in self.workloads)

    def curve(self, name: str) -> dict[float, Account]:
        """The sum over the workloads by the share of the targets."""
        shares = self.workloads[0].curves[name].points if self.workloads else {}
        return {share: total(workload.curves[name].points[share] for workload in self.workloads) for share in shares}

    def equal(self, name: str) -> Account | None:
        """The HPAs alone, each at the pod-hours that the strategy spends on it; None if one of them has no value."""
        accounts = [workload.equal(name) for workload in self.workloads]
        known = [account for account in accounts if account is not None]
        return total(known) if known and len(known) == len(accounts) else None

    def ratio(self, name: str) -> float | None:
        """Unserved demand at every HPA's own pod-hours, all together, relative to the HPAs."""
        accounts = [workload.at_cost_of_hpa(name) for workload in self.workloads]
        known = [account for account in accounts if account is not None]
        plain = self.own(HPA.name).missing
        return total(known).missing / plain if known and len(known) == len(accounts) and plain else None

    def saved(self, name: str) -> float | None:
        """Share of the pod-hours of all leanest HPAs that the strategy saves; None if it cannot."""
        pairs = [(workload.saved(name), workload.leanest(HPA.name) or 0.0) for workload in self.workloads]
        known = [share * alone for share, alone in pairs if share is not None]
        spent = sum(alone for _, alone in pairs)
        return sum(known) / spent if spent and len(known) == len(pairs) else None

    def named(self, workload: str) -> WorkloadComparison:
        """One workload by its `namespace/name`.

        Raises:
            KeyError: it was left out, or is not in the traces.
        """
        return {str(compared.workload.id): compared for compared in self.workloads}[workload]

    def frontier(self) -> list[dict[str, object]]:
        """Every workload, strategy and share of the targets as a row: cost, shortage, changes."""
        return [
            {
                "workload": str(workload.workload.id),
                "strategy": name,
                "target_share": share,
                "pod_hours": account.pod_hours,
                "short_share": account.short_share,
                "missing_share": account.missing_share,
                "changes": account.changes,
            }
            for workload in self.workloads
            for name, curve in workload.curves.items()
            for share, account in curve.points.items()
        ]

    def trajectory(self, workload: str) -> list[dict[str, object]]:
        """Every minute and strategy of one workload as a row: requested pods, ready pods, floor, and shortage."""
        return [
            {
                "at": self.begin + (minute + 1) * MINUTE,
                "strategy": name,
                "asked": int(track.desired[minute]),
                "ready": int(track.ready[minute]),
                "floor": int(track.floor[minute]),
                "missing": float(track.missing[minute]),
            }
            for name, track in ((name, curve.track) for name, curve in self.named(workload).curves.items())
            for minute in range(len(track.desired))
        ]

    def bound(self) -> Account:
        """Least cost that serves the demand."""
        return total(workload.bound for workload in self.workloads)


NOTABLE_DIFFERENCE = 0.05
"""Amounts closer than this share of each other count as equal."""
NOTHING_SHORT = 1e-6
"""Shares of the demand below this count as nothing: there is no shortage to remove."""
BENEFIT_MEANS = (
    "better, worse: less, or more, unserved demand than the HPA alone at another target and the same pod-hours; where "
    "neither has any, fewer, or more, pod-hours. Differences up to 5 % are the same."
)

TRY_TUNE = "`forecaster tune` looks for a policy that would have been better."
SPAN_WORDS = {DAY: " in the last day", 7 * DAY: " this week"}


class Benefit(StrEnum):
    """Benefit of a policy for a workload, over the HPA alone."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"


def benefit(plain: Account, forecaster: Account, equal: Account | None) -> Benefit:
    """`BENEFIT_MEANS` in numbers: `plain` is the HPA at its own targets, `equal` at the pod-hours of `forecaster`.

    Where the HPA spends as many at none of its targets, `equal` is None: more pod-hours have to leave less short, fewer
    must not leave more, and what is more of one and less of the other is no comparison, and the same.
    """
    if not short(plain) and not short(forecaster):
        return _less_is_better(forecaster.pod_hours, plain.pod_hours)
    if equal is not None:
        return _less_is_better(short(forecaster), short(equal))
    missing = _less_is_better(short(forecaster), short(plain))
    if forecaster.pod_hours > plain.pod_hours:
        return Benefit.SAME if missing is Benefit.BETTER else Benefit.WORSE
    return Benefit.SAME if missing is Benefit.WORSE else Benefit.BETTER


def workload_verdict(benefit: Benefit, span: timedelta) -> str:
    """Say of one workload what forecaster was worth to it, and what to do where it was worth nothing."""
    when = SPAN_WORDS.get(span, "")
    match benefit:
        case Benefit.BETTER:
            return f"Better than the HPA alone{when}."
        case Benefit.SAME:
            return f"No benefit{when}: the same as the HPA alone. {TRY_TUNE}"
        case Benefit.WORSE:
            return f"Worse than the HPA alone{when}. {TRY_TUNE}"


def short(account: Account) -> float:
    """Demand above the capacity of the ready pods, in its unit times hours; 0 without any."""
    return account.missing if account.missing > NOTHING_SHORT * account.demand else 0.0


def _less_is_better(value: float, reference: float) -> Benefit:
    if value > reference * (1 + NOTABLE_DIFFERENCE):
        return Benefit.WORSE
    return Benefit.BETTER if reference > value * (1 + NOTABLE_DIFFERENCE) else Benefit.SAME
