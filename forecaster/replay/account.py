"""Cost and shortage of a span, of one workload or summed; cost against shortage at equal pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.policy import Policy
from forecaster.domain.window import HOUR, MINUTE
from forecaster.domain.workload import Target, TargetType, Workload
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.learned import Advisor
from forecaster.replay.setup import Setup


@dataclass(frozen=True, slots=True)
class Account:
    """Sums over time. A moment is short when demand exceeds the capacity of the ready pods.

    `demand` and `missing` are amounts times hours, in the unit of the demand, of the time that was measured; a gap
    costs pods and is in none of the others, and before its first measurement a workload is not there.
    """

    pod_hours: float = 0.0
    measured: timedelta = timedelta()
    short: timedelta = timedelta()
    demand: float = 0.0
    missing: float = 0.0
    changes: int = 0
    """Number of changes of the requested pods."""
    money: float = 0.0
    """Price of the pod-hours, in the currency of the prices; 0 where none are stated."""

    def __add__(self, other: Account) -> Account:
        return Account(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def priced(self, pod_hour: float) -> Account:
        """Return the account with its pod-hours at this price of one."""
        return replace(self, money=self.pod_hours * pod_hour)

    @classmethod
    def by_minutes(cls, pods: NDArray[np.float64], demand: NDArray[np.float64], pod: float) -> Account:
        """Return the account of minutes with these ready pods, each of capacity `pod`; NaN where not known."""
        known, hours = ~np.isnan(pods) & ~np.isnan(demand), MINUTE / HOUR
        missing = np.maximum(0.0, demand[known] - pods[known] * pod)
        return cls(
            pod_hours=float(np.nansum(pods)) * hours,
            measured=int(known.sum()) * MINUTE,
            short=int((missing > 0).sum()) * MINUTE,
            demand=float(demand[known].sum()) * hours,
            missing=float(missing.sum()) * hours,
            changes=int(np.count_nonzero(np.diff(pods[~np.isnan(pods)]))),
        )

    @property
    def short_minutes(self) -> float:
        """Minutes with any shortage, summed over the workloads."""
        return self.short.total_seconds() / 60

    @property
    def short_share(self) -> float | None:
        """Share of the measured time with any shortage; None when nothing was measured."""
        return self.short / self.measured if self.measured else None

    @property
    def missing_share(self) -> float | None:
        """Share of the demand above the capacity of the ready pods; None without demand."""
        return self.missing / self.demand if self.demand else None


def total(accounts: Iterable[Account]) -> Account:
    """The sum of accounts."""
    return sum(accounts, Account())


def at_pod_hours(curve: Iterable[Account], spent: float) -> Account | None:
    """The account of a policy at `spent` pod-hours, linear between the two points of its curve around it.

    `curve` holds one policy at different settings over the same time. None where it spends more, or less, at all of
    them: outside the sweep there is no value.
    """
    points = sorted(curve, key=lambda account: (account.pod_hours, -account.missing))
    below = [account for account in points if account.pod_hours <= spent]
    above = [account for account in points if account.pod_hours >= spent]
    if not below or not above:
        return None
    return _between(below[-1], above[0], spent)


def at_missing(curve: Iterable[Account], missing: float) -> float | None:
    """The fewest pod-hours at which a policy leaves no more than `missing`, linear between the points of its curve.

    None where it leaves more at all of them. The leanest point counts as it is: how much leaner would do is not known.
    """
    points = sorted(curve, key=lambda account: (account.pod_hours, -account.missing))
    safe = next((i for i, account in enumerate(points) if account.missing <= missing), None)
    if not safe:
        return None if safe is None else points[0].pod_hours
    before, after = points[safe - 1], points[safe]
    weight = (before.missing - missing) / (before.missing - after.missing)
    return before.pod_hours + weight * (after.pod_hours - before.pod_hours)


def _between(low: Account, high: Account, spent: float) -> Account:
    if low.pod_hours == spent:
        return low
    weight = (spent - low.pod_hours) / (high.pod_hours - low.pod_hours)
    return Account(
        spent,
        low.measured,
        low.short + weight * (high.short - low.short),
        low.demand,
        low.missing + weight * (high.missing - low.missing),
        round(low.changes + weight * (high.changes - low.changes)),
        low.money + weight * (high.money - low.money),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A workload with its HPA; without a policy the HPA is alone, without forecasts nothing is forecast."""

    series: int
    """The row of the traces."""
    workload: Workload
    setup: Setup
    replicas: int
    """Ready pods at the beginning."""
    policy: Policy | None = None
    forecasts: ReplayForecasts | None = None
    floors: NDArray[np.int32] | None = None
    """[minute] decisions that have been made already, in place of a policy."""
    advisor: Advisor | None = None
    """Speaks in the forecast's place."""
    acting: NDArray[np.bool_] | None = None
    """[minute] whether the gate of the policy lets the forecast have its say; None without a gate."""


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Minute by minute: requested and ready pods at its end, the floor in force, and the shortage."""

    desired: NDArray[np.int32]
    ready: NDArray[np.int32]
    floor: NDArray[np.int32]
    missing: NDArray[np.float64]
    """Demand above the capacity of the ready pods, as a mean over the minute, in the signal's unit."""
    spent: NDArray[np.float64]
    """Requested pods that cost, as a mean over the minute."""


def no_track() -> Track:
    """Return a track of no minutes."""
    none, nothing = np.zeros(0, np.int32), np.zeros(0)
    return Track(none, none, none, nothing, nothing)


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """Result of a run; the track is empty unless it was requested."""

    account: Account
    track: Track = field(default_factory=no_track)


def with_targets_at(workload: Workload, share: float) -> Workload:
    """Return the workload with every target of its HPA at this share, as its owner can set it without a forecast.

    A utilization is a whole percent, and at least one.
    """
    hpa = workload.autoscaler
    if hpa is None or share == 1.0:
        return workload
    return replace(workload, autoscaler=replace(hpa, targets=tuple(_at(target, share) for target in hpa.targets)))


def _at(target: Target, share: float) -> Target:
    if target.type is TargetType.UTILIZATION:
        return replace(target, value=max(1, round(round(target.value * 100) * share)) / 100)
    return replace(target, value=target.value * share)
