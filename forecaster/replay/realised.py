"""The realised counterfactual: what recorded decisions were worth on the load that came, against the HPA alone.

Decisions are taken as they were made, not made again. Their counts are floors of the exact HPA; beside them stands the
HPA alone, the HPA alone with other targets at the same pod-hours, and what was measured of the pods that there were.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.signal import PODS
from forecaster.domain.window import MINUTE
from forecaster.replay.account import HOUR, Account, total
from forecaster.replay.compare import play_lanes, scene_of, with_setup_at
from forecaster.replay.frontier import at_pod_hours
from forecaster.replay.lane import Lane
from forecaster.replay.terms import Terms
from forecaster.replay.world import NO_FLOOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.replay.compare import Scene
    from forecaster.replay.lane import Played
    from forecaster.replay.traces import Traces

WEEK = timedelta(days=7)
NOTABLE = 0.05
"""Shortages closer than this share of each other count as equal."""
USUAL = Terms()


class Stated(NamedTuple):
    """A decision that was kept: the count from then on, None for a hold, which leaves the count before."""

    at: datetime
    replicas: int | None


@dataclass(frozen=True, slots=True)
class Realised:
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
    def worse(self) -> bool:
        """Whether the decisions left notably more short than the HPA alone does for the same pod-hours."""
        if self.equal is None:
            return self.decided.pod_hours > self.plain.pod_hours and self.decided.missing >= self.plain.missing > 0
        return self.decided.missing > self.equal.missing * (1 + NOTABLE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A span of time, usually a week; `left_out` says of every other workload why it is not in it."""

    begin: datetime
    until: datetime
    workloads: Sequence[Realised]
    left_out: Mapping[WorkloadId, str]

    @property
    def plain(self) -> Account:
        """All HPAs alone."""
        return total(one.plain for one in self.workloads)

    @property
    def decided(self) -> Account:
        """All decisions as floors."""
        return total(one.decided for one in self.workloads)

    @property
    def worse(self) -> list[Realised]:
        """The cases in which the HPA alone would have done better."""
        return [one for one in self.workloads if one.worse]


def outcome_of(
    traces: Traces,
    decisions: Mapping[WorkloadId, Sequence[Stated]],
    policies: Policies,
    *,
    begin: datetime,
    until: datetime,
    terms: Terms = USUAL,
) -> Outcome:
    """What the decisions between `begin` and `until` were worth. Pure: history and decisions in, figures out."""
    scene = scene_of(traces, policies, begin, until, terms)
    left_out = dict(scene.left_out)
    lanes: dict[int, list[Lane]] = {}
    for row in scene.setups:
        workload = traces.workloads[row]
        floors = floors_of(decisions.get(workload.id, ()), begin, scene.sight.minutes)
        if floors.max(initial=NO_FLOOR) == NO_FLOOR:
            left_out[workload.id] = "no decision about it was kept for that time"
        else:
            lanes[row] = _lanes(scene, row, floors, terms)
    played, _ = play_lanes([lane for some in lanes.values() for lane in some], scene.sight, tracks=False)
    walks = iter(played)
    found = [_realised(scene, row, [next(walks) for _ in some]) for row, some in lanes.items()]
    return Outcome(begin, until, found, left_out)


def floors_of(decisions: Sequence[Stated], begin: datetime, minutes: int) -> NDArray[np.int32]:
    """[minute] the count in force; before the first decision there is none."""
    floors = np.full(minutes, NO_FLOOR, np.int32)
    for at, replicas in sorted(decisions):
        if replicas is not None:
            floors[max(0, -((begin - at) // MINUTE)) :] = replicas
    return floors


def _lanes(scene: Scene, row: int, floors: NDArray[np.int32], terms: Terms) -> list[Lane]:
    """The decisions, and the HPA alone at every share of its targets, its own first."""
    replicas = scene.sight.traces.pods_at(row, scene.sight.begin)
    plain = []
    for share in dict.fromkeys((1.0, *terms.shares)):
        workload, setup = with_setup_at(scene, row, share)
        plain.append(Lane(row, workload, setup, replicas))
    own = plain[0]
    return [Lane(row, own.workload, own.setup, replicas, floors=floors), *plain]


def _realised(scene: Scene, row: int, played: Sequence[Played]) -> Realised:
    decided, plain, *others = (one.account for one in played)
    equal = at_pod_hours((plain, *others), decided.pod_hours)
    return Realised(scene.sight.traces.workloads[row], plain, decided, equal, measured(scene, row))


def measured(scene: Scene, row: int) -> Account | None:
    """What the pods that were ready carried, by the minute; pods that were starting are not known and not counted."""
    sight, capacity = scene.sight, scene.setups[row].capacity
    if PODS not in sight.traces.values:
        return None
    pods = sight.seen(PODS, 1, sight.minutes)[:, row]
    demand = sight.seen(capacity.signal, 1, sight.minutes)[:, row]
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
