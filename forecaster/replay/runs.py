"""A run: one workload under one strategy, from the beginning of a replay to its end, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.workload import TargetType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import Target, Workload
    from forecaster.replay.account import Account
    from forecaster.replay.forecasts import ReplayForecasts
    from forecaster.replay.learned import Advisor
    from forecaster.replay.setup import Setup


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
    """Minute by minute: pods asked for and ready when it ends, the floor in force then, and its shortage."""

    asked: NDArray[np.int32]
    ready: NDArray[np.int32]
    floor: NDArray[np.int32]
    missing: NDArray[np.float64]
    """Demand above what the ready pods carried, as a mean over the minute, in the signal's unit."""
    spent: NDArray[np.float64]
    """Pods asked for, as a mean over the minute."""


def no_track() -> Track:
    """Return a track of no minutes."""
    none, nothing = np.zeros(0, np.int32), np.zeros(0)
    return Track(none, none, none, nothing, nothing)


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """What came of a run; the track is empty unless it was asked for."""

    account: Account
    track: Track = field(default_factory=no_track)


def with_targets_at(workload: Workload, share: float) -> Workload:
    """The workload with every target of its HPA at this share: what its owner can do without a forecast.

    A utilization is a whole percent, and at least one.
    """
    hpa = workload.autoscaler
    if hpa is None or share == 1.0:
        return workload
    return replace(workload, autoscaler=replace(hpa, targets=tuple(_at(one, share) for one in hpa.targets)))


def _at(target: Target, share: float) -> Target:
    if target.type is TargetType.UTILIZATION:
        return replace(target, value=max(1, round(round(target.value * 100) * share)) / 100)
    return replace(target, value=target.value * share)
