"""The gate of each workload, judged in turn: new workloads first, each once a day.

Judging is a replay of past days, which is cheap for many workloads at once: those that are due are collected for some
minutes.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forecaster.cycle.fleet import Fleet
from forecaster.domain.window import MINUTE
from forecaster.errors import unexpected
from forecaster.horizontal.columns import put, taken
from forecaster.horizontal.standing import FORECASTERS, STANDINGS, Gate, Gates
from forecaster.replay.judging import PastDemand, cases_of, judged_gates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.cycle.targets import Targets
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.horizontal.numbers import Counts, Floats
    from forecaster.ports import Histories
    from forecaster.replay.judging import Case, Unjudged

NEW_JUDGED = 60
"""Workloads judged for the first time in one batch; after a start without state there are as many batches as fit."""
JUDGING_INTERVAL = 10 * MINUTE
"""Time between two rounds of judging: a replay of few workloads takes nearly as long as one of a hundred."""
BATCH = 96
"""Workloads judged together at least, as far as so many are due: a small fleet is judged at once, every `SOONEST`."""
ROUND = timedelta(hours=19)
"""Time within which each workload has its turn; with `SOONEST` still less than a day."""
SOONEST = timedelta(hours=4)
"""No workload is judged again sooner: three days are hardly others by then."""
LOOK_AGAIN = timedelta(hours=1)
"""After which one that could not be judged is looked at again: its history may have been filled up meanwhile."""
TIMES = ("judged_at", "due")


class Renewed(NamedTuple):
    """One sentence for each gate that moved, and one for each workload that could not be judged."""

    moved: list[str]
    failures: list[str]


@dataclass(slots=True)
class ForecastGates:
    """Gates of the workloads with a policy that asks for one; a new workload starts at the beginning.

    A workload that is away for no longer than a day stands where it stood.
    """

    most_new: int = NEW_JUDGED
    first: Callable[[WorkloadId], bool] = field(default=lambda _: False)
    """The workloads that are waited for."""
    model: str = "adaptive"
    fleet: Fleet = field(default_factory=Fleet)
    """Workload of each row."""
    gates: Gates = field(default_factory=lambda: Gates.new(0))
    judged_at: Floats = field(default_factory=lambda: np.empty(0))
    """[row] epoch seconds; NaN before the first time."""
    due: Floats = field(default_factory=lambda: np.empty(0))
    """[row] before when it is not judged again, in epoch seconds; NaN at the beginning."""
    latest: datetime | None = None
    """Instant of the last round of judging."""
    records: dict[WorkloadId, Gate] = field(default_factory=dict)
    """Gates that were asked for since then."""

    def of(self, id_: WorkloadId) -> Gate:
        """Return the gate of a workload."""
        if id_ not in self.records:
            row = self.fleet.row.get(id_)
            self.records[id_] = Gate() if row is None else self.gates.gate(row)
        return self.records[id_]

    def standings(self) -> Counter[tuple[str, str]]:
        """Workloads by standing and forecaster."""
        codes = self.gates.standing.astype(np.intp) * len(FORECASTERS) + self.gates.forecaster
        counts = np.bincount(codes, minlength=len(STANDINGS) * len(FORECASTERS)).tolist()
        names = [(standing.value, one.value) for standing in STANDINGS for one in FORECASTERS]
        return Counter({name: count for name, count in zip(names, counts, strict=True) if count})

    def judged(self, id_: WorkloadId) -> datetime | None:
        """Return when this workload was judged; None before the first time."""
        row = self.fleet.row.get(id_)
        at = np.nan if row is None else float(self.judged_at[row])
        return None if np.isnan(at) else datetime.fromtimestamp(at, UTC)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What outlives the process, beside the fleet: all of it, so that a restart changes nothing."""
        return self.gates.arrays() | {name: getattr(self, name) for name in TIMES}

    def restore(self, fleet: Fleet, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on where an earlier process stood."""
        self.fleet, self.gates = fleet, Gates.of_arrays(arrays)
        self.judged_at, self.due = (arrays[name] for name in TIMES)
        self.records = {}

    def renew(
        self,
        history: Histories,
        policies: Policies,
        targets: Targets,
        now: datetime,
        has_time: Callable[[], bool] = lambda: False,
    ) -> Renewed:
        """Judge workloads in turn, every few minutes, and those never judged in each cycle as long as it `has_time`.

        After a start without state no gate is judged: 10,000 of them take some minutes, and not a day.
        """
        done = Renewed([], [])
        if targets.down or (self.latest is not None and timedelta() < now - self.latest < JUDGING_INTERVAL):
            return done
        here = {one.id: one for one in targets.inventory.workloads if policies.of(one.id).horizontal.gate}
        self.records = {}
        rows = self._rows(list(here), policies, now)
        past = PastDemand(history)

        def look(id_: WorkloadId) -> list[Case] | Unjudged:
            return cases_of(here[id_], policies.of(id_), past)

        first, again = self._turn(here, rows, policies, now)
        new = deque(first)
        ready = self._ready(new, look, done, now, most=self.most_new)
        ready |= self._ready(deque(again), look, done, now, most=len(again))
        self._judge(ready, done, now)
        while new and has_time():
            self._judge(self._ready(new, look, done, now, most=self.most_new), done, now)
        self.latest = None if new else now
        return done

    def _rows(self, ids: Sequence[WorkloadId], policies: Policies, now: datetime) -> Counts:
        """The rows of these workloads; those that left more than a day ago are given back."""
        self.fleet.rows(ids, now)
        stay = self.fleet.compacted(now, len(self.due))
        if stay is not None:
            self._take(stay)
        new = len(self.fleet.row) - len(self.due)
        if new:
            self._take(np.concatenate([np.arange(len(self.due)), np.full(new, -1)]))
        self.gates = self.gates.covering(policies.signals.demand)
        return self.fleet.rows(ids, now)

    def _take(self, rows: Counts) -> None:
        self.gates = self.gates.take(rows)
        self.judged_at, self.due = (taken(one, rows, np.nan) for one in (self.judged_at, self.due))

    def _turn(
        self, here: Mapping[WorkloadId, Workload], rows: Counts, policies: Policies, now: datetime
    ) -> tuple[list[WorkloadId], list[WorkloadId]]:
        """New workloads, the most urgent first, and those that were judged longest ago."""

        def urgency(id_: WorkloadId) -> tuple[bool, bool, bool, WorkloadId]:
            return not self.first(id_), policies.of(id_).mode == "observe", here[id_].autoscaler is None, id_

        at = now.timestamp()
        due = [
            (id_, float(self.judged_at[row]))
            for id_, row in zip(here, rows.tolist(), strict=True)
            if not self.due[row] > at
        ]
        new = sorted((id_ for id_, judged in due if np.isnan(judged)), key=urgency)
        judged = [(judged, id_) for id_, judged in due if not np.isnan(judged)]
        in_turn = max(BATCH, -(-len(here) * JUDGING_INTERVAL // ROUND))
        return new, [id_ for _, id_ in heapq.nsmallest(in_turn, judged)]

    def _ready(
        self,
        ids: deque[WorkloadId],
        look: Callable[[WorkloadId], list[Case] | Unjudged],
        done: Renewed,
        now: datetime,
        *,
        most: int,
    ) -> dict[WorkloadId, list[Case]]:
        """Take workloads from `ids` until so many can be judged; record the reason for the others."""
        ready: dict[WorkloadId, list[Case]] = {}
        unjudged: dict[WorkloadId, Unjudged] = {}
        while ids and len(ready) < most:
            id_ = ids.popleft()
            try:
                found = look(id_)
            except Exception as error:  # noqa: BLE001  the boundary: what is wrong with one workload stops no other
                self._failed([id_], error, done, now)
                continue
            if isinstance(found, list):
                ready[id_] = found
            else:
                unjudged[id_] = found
        self._move(unjudged, done, now)
        return ready

    def _judge(self, ready: Mapping[WorkloadId, list[Case]], done: Renewed, now: datetime) -> None:
        """All at once; when that fails one by one, so that it is known which is at fault."""
        try:
            self._move(ready, done, now)
        except Exception:  # noqa: BLE001  the boundary, as above
            for id_, cases in ready.items():
                try:
                    self._move({id_: cases}, done, now)
                except Exception as error:  # noqa: BLE001  the boundary, as above
                    self._failed([id_], error, done, now)

    def _move(self, found: Mapping[WorkloadId, list[Case] | Unjudged], done: Renewed, now: datetime) -> None:
        if not found:
            return
        rows = np.array([self.fleet.row[id_] for id_ in found])
        before = self.gates.take(rows)
        after = judged_gates(before, list(found.values()), now.timestamp(), self.model)
        self.gates = self.gates.put(rows, after)
        judged = np.array([isinstance(one, list) for one in found.values()])
        at = now.timestamp()
        self.judged_at = put(self.judged_at, rows, np.where(judged, at, np.nan))
        self.due = put(self.due, rows, at + np.where(judged, SOONEST.total_seconds(), LOOK_AGAIN.total_seconds()))
        moved = (before.standing != after.standing) | (before.forecaster != after.forecaster)
        for place, id_ in enumerate(found):
            if moved[place]:
                gate, earlier = after.gate(place), STANDINGS[before.standing[place]]
                done.moved.append(f"{id_}: {earlier} to {gate.standing}, {gate.why}")

    def _failed(self, ids: Iterable[WorkloadId], error: Exception, done: Renewed, now: datetime) -> None:
        for id_ in ids:
            done.failures.append(f"{id_}: its decisions could not be judged: {unexpected(error)}")
            self.due[self.fleet.row[id_]] = (now + LOOK_AGAIN).timestamp()
