"""What came of it: the plain HPA, the HPA with the recommendation as its floor, and the plain HPA at the same cost.

More pods are always short less often. So the floor is compared with what any owner can do without a forecast: lower
the targets until the plain HPA spends the same pod-hours.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from forecaster.app.demo import runs_of
from forecaster.app.traces import of_recording
from forecaster.domain.window import MINUTE
from forecaster.replay.account import Account, at_pod_hours, total
from forecaster.replay.benefit import Benefit, benefit
from forecaster.replay.engine import replay_runs
from forecaster.replay.setup import at_share
from forecaster.replay.traces import measurements_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from forecaster.app.demo import Moment, Setups, Stage
    from forecaster.domain.workload import WorkloadId

TARGET_SWEEP = (1.05, 0.95, 0.9, 0.85, 0.75, 0.65)
"""The targets of the plain HPA as shares of its owner's; at 0.65 it spends up to 54 % more."""


class FloorComparison(NamedTuple):
    """One workload, or all of them. `equal` is the plain HPA at the pod-hours of `floored`; None beyond the sweep."""

    plain: Account
    floored: Account
    equal: Account | None

    @property
    def worse(self) -> bool:
        """Whether the plain HPA alone does better."""
        return benefit(self.plain, self.floored, self.equal) is Benefit.WORSE


def curves(stage: Stage, setups: Setups, length: timedelta) -> Iterator[Mapping[WorkloadId, Account]]:
    """The plain HPA at every point of the sweep; each takes a moment."""
    for share in TARGET_SWEEP:
        yield hpa_alone(stage, setups, length, share)


def hpa_alone(stage: Stage, setups: Setups, length: timedelta, share: float = 1.0) -> dict[WorkloadId, Account]:
    """Play the same time without any forecast, with every target at this share."""
    measurements = measurements_of(of_recording(stage.recording), stage.begin, length // MINUTE)
    runs = [replace(run, setup=at_share(run.setup, share)) for run in runs_of(stage, setups)]
    return {id_: one.account for id_, one in zip(setups, replay_runs(runs, measurements), strict=True)}


def compare(last: Moment, points: Iterable[Mapping[WorkloadId, Account]]) -> dict[WorkloadId, FloorComparison]:
    """Every workload, from the end of the play and the points of the sweep."""
    curve: dict[WorkloadId, list[Account]] = defaultdict(list)
    for point in ({id_: one.account for id_, one in last.plain.items()}, *points):
        for id_, account in point.items():
            curve[id_].append(account)
    return {
        id_: FloorComparison(last.plain[id_].account, one.account, at_pod_hours(curve[id_], one.account.pod_hours))
        for id_, one in last.floored.items()
    }


def in_all(compared: Sequence[FloorComparison]) -> FloorComparison:
    """The sum; a figure at equal pod-hours only if every workload has one."""
    equal = [one.equal for one in compared if one.equal is not None]
    return FloorComparison(
        total(one.plain for one in compared),
        total(one.floored for one in compared),
        total(equal) if len(equal) == len(compared) else None,
    )
