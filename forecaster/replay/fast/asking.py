"""What targets ask for, lane by lane: `decisions.replicas.proposal` and `hpa.combine` on arrays.

All lanes of a batch have targets of the same kinds in the same order; the amounts differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.replicas import milli
from forecaster.decisions.targets import UtilizationTarget
from forecaster.replay.fast.numbers import UNKNOWN, Counts, Flags, ceil_counts, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.signal import Signal
    from forecaster.hpa.proposals import Tolerance


class Kind(NamedTuple):
    """What a target divides: a signal by shares of a request, by an amount of the ready pods, or by one of all pods."""

    signal: Signal
    of_request: bool


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """One target of every lane: `goal` is whole percent or milli-units, `request` one pod's request in milli-units."""

    kind: Kind
    goal: Counts
    request: Counts


def kind_of(target: PodTarget) -> Kind:
    """The kind of one target."""
    return Kind(target.signal, isinstance(target, UtilizationTarget))


def targets_of(lanes: Sequence[PodTarget]) -> Targets:
    """The same target of every lane; all are of one kind."""
    goals = [one.percent if isinstance(one, UtilizationTarget) else milli(one.amount) for one in lanes]
    requests = [milli(one.request) if isinstance(one, UtilizationTarget) else 0 for one in lanes]
    return Targets(kind_of(lanes[0]), np.array(goals, np.int64), np.array(requests, np.int64))


def proposals(targets: Targets, demand: Counts, ready: Counts, current: Counts, tolerance: Tolerance) -> Counts:
    """What one target asks for at a demand in milli-units; `UNKNOWN` where that is, or where no pod has a sample."""
    if targets.kind.signal.of_all_pods:
        asked = _per_pod(targets, demand, current, tolerance)
        return np.where(demand < 0, UNKNOWN, asked)
    counted = np.minimum(ready, current)
    asked = _shared(targets, demand, counted, current, tolerance)
    return np.where((demand < 0) | (ready < 1), UNKNOWN, asked)


def _per_pod(targets: Targets, demand: Counts, current: Counts, tolerance: Tolerance) -> Counts:
    """HPA rules §8.4."""
    ratio = demand / np.maximum(targets.goal * current, 1)
    return np.where(within(tolerance, ratio), current, ceil_counts(demand / targets.goal))


def _shared(targets: Targets, demand: Counts, ready: Counts, current: Counts, tolerance: Tolerance) -> Counts:
    """HPA rules §8.1, §8.2: pods that are asked for and not ready take their share when the load is high."""
    first = _usage(targets, demand, np.maximum(ready, 1)) / targets.goal
    asked = np.where(within(tolerance, first), current, ceil_counts(first * ready))
    filled = np.flatnonzero((current > ready) & (first > 1.0))
    if filled.size:
        some = Targets(targets.kind, targets.goal[filled], targets.request[filled])
        asked[filled] = _with_starting(some, demand[filled], current[filled], tolerance)
    return asked


def _with_starting(targets: Targets, demand: Counts, current: Counts, tolerance: Tolerance) -> Counts:
    """The second ratio, over the starting pods too; it may shrink a rise and never turn it around."""
    second = _usage(targets, demand, current) / targets.goal
    asked = ceil_counts(second * current)
    keeps = within(tolerance, second) | (second < 1.0) | (asked < current)
    return np.where(keeps, current, asked)


def _usage(targets: Targets, demand: Counts, pods: Counts) -> Counts:
    """Whole percent of the requests, or the whole milli-units of one pod."""
    if targets.kind.of_request:
        return _whole(demand * 100, pods * targets.request)
    return _whole(demand, pods)


def _whole(amount: Counts, parts: Counts) -> Counts:
    """Division of whole numbers below 2^53, for which that of floats is exact, and faster."""
    return np.floor(amount / parts).astype(np.int64)


class Combined(NamedTuple):
    """HPA rules §9: the largest proposal, where any counts at all, and where some other one is missing."""

    replicas: Counts
    valid: Flags
    partial: Flags


def combined(asked: Sequence[Counts], current: Counts) -> Combined:
    """The largest proposal; one that is missing blocks scaling down, never up."""
    replicas, least = asked[0], asked[0]
    for one in asked[1:]:
        replicas, least = np.maximum(replicas, one), np.minimum(least, one)
    partial = least < 0
    return Combined(replicas, (replicas >= 0) & ~(partial & (replicas < current)), partial)
