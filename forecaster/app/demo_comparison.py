"""What came of it: the plain HPA, the HPA with the recommendation as its floor, and the plain HPA at the same cost.

More pods are always short less often. So the floor is compared with what any owner can do without a forecast: lower
the targets until the plain HPA spends the same pod-hours.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from forecaster.app.traces import of_recording
from forecaster.domain.window import MINUTE
from forecaster.replay.account import Account, total
from forecaster.replay.fast.run import play_all
from forecaster.replay.frontier import at_pod_hours
from forecaster.replay.lane import Lane
from forecaster.replay.scaler import with_targets_at
from forecaster.replay.sight import sight_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from forecaster.app.demo import Moment, Setups, Stage
    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.setup import Setup

SWEEP = (1.05, 0.95, 0.9, 0.85, 0.75, 0.65)
"""The targets of the plain HPA as shares of its owner's; at 0.65 it spends up to 54 % more."""

NOTABLE = 0.05
"""Shortages closer than this share of each other count as equal."""


class Compared(NamedTuple):
    """One workload, or all of them. `equal` is the plain HPA at the pod-hours of `floored`; None beyond the sweep."""

    plain: Account
    floored: Account
    equal: Account | None

    @property
    def worse(self) -> bool:
        """Whether the floor left notably more short than the plain HPA does for the same pod-hours."""
        return self.equal is not None and self.floored.missing > self.equal.missing * (1 + NOTABLE)


def curves(stage: Stage, setups: Setups, length: timedelta) -> Iterator[Mapping[WorkloadId, Account]]:
    """The plain HPA at every point of the sweep; each takes a moment."""
    for share in SWEEP:
        yield hpa_alone(stage, setups, length, share)


def hpa_alone(stage: Stage, setups: Setups, length: timedelta, share: float = 1.0) -> dict[WorkloadId, Account]:
    """The same time without any forecast, with every target at this share."""
    sight = sight_of(of_recording(stage.recording), stage.begin, length // MINUTE)
    fleet = stage.recording.fleet(stage.begin)
    rows = {one.id: row for row, one in enumerate(stage.recording.workloads)}
    lanes = [Lane(rows[id_], fleet[id_], at_share(setup, share), fleet[id_].replicas) for id_, setup in setups.items()]
    return {id_: one.account for id_, one in zip(setups, play_all(lanes, sight), strict=True)}


def at_share(setup: Setup, share: float) -> Setup:
    """The same with every target at this share."""
    return replace(setup, scaler=with_targets_at(setup.scaler, share))


def compare(last: Moment, points: Iterable[Mapping[WorkloadId, Account]]) -> dict[WorkloadId, Compared]:
    """Every workload, from the end of the play and the points of the sweep."""
    curve: dict[WorkloadId, list[Account]] = defaultdict(list)
    for point in ({id_: world.account for id_, world in last.plain.items()}, *points):
        for id_, account in point.items():
            curve[id_].append(account)
    return {
        id_: Compared(last.plain[id_].account, world.account, at_pod_hours(curve[id_], world.account.pod_hours))
        for id_, world in last.floored.items()
    }


def in_all(compared: Sequence[Compared]) -> Compared:
    """The sum; a figure at equal pod-hours only if every workload has one."""
    equal = [one.equal for one in compared if one.equal is not None]
    return Compared(
        total(one.plain for one in compared),
        total(one.floored for one in compared),
        total(equal) if len(equal) == len(compared) else None,
    )
