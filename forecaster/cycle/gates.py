"""Where forecasts stand on each workload, judged anew when it is their turn: newcomers first, everyone once a day."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from forecaster.cycle.places import NOWHERE, Place, kept, restored
from forecaster.cycle.rehearse import Past, cases_of, rehearsed
from forecaster.decisions.gate import judged_on_all, unjudged

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping
    from datetime import datetime

    from forecaster.cycle.places import KeptPlace
    from forecaster.cycle.rehearse import Case, Rounds
    from forecaster.cycle.targets import Targets
    from forecaster.decisions.gate import Gate
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Histories

NEWCOMERS = 12
"""Workloads judged for the first time in one cycle, besides those whose turn it is."""
ROUND = 1200
"""Cycles in which everyone has his turn: with SOONEST still less than a day of them, so that nobody waits longer."""
SOONEST = timedelta(hours=4)
"""Nobody is judged again sooner: three days are hardly others by then."""
KEPT = timedelta(days=1)
"""Since it was due, after which one that is gone is forgotten."""
LOOK_AGAIN = timedelta(hours=1)
"""After which one that could not be judged is looked at again: its history may have been filled up meanwhile."""


class Renewed(NamedTuple):
    """One sentence for each gate that moved, and one for each workload that could not be judged."""

    moved: list[str]
    failures: list[str]


@dataclass(slots=True)
class Gates:
    """The gates of the workloads whose policy asks for one; a workload that is new stands at the beginning."""

    newcomers: int = NEWCOMERS
    first: Callable[[WorkloadId], bool] = field(default=lambda _: False)
    """Whom somebody is waiting for."""
    places: dict[WorkloadId, Place] = field(default_factory=dict)

    def of(self, id_: WorkloadId) -> Gate:
        """Where the forecast stands on this workload."""
        return self.places.get(id_, NOWHERE).gate

    def standings(self) -> Counter[tuple[str, str]]:
        """Workloads by standing and voice."""
        return Counter((place.gate.standing.value, place.gate.voice.value) for place in self.places.values())

    def kept(self) -> tuple[KeptPlace, ...]:
        """What outlives the process."""
        return kept(self.places)

    def restore(self, places: Iterable[KeptPlace]) -> None:
        """Go on where an earlier process stood."""
        self.places = restored(places)

    def renew(self, history: Histories, policies: Policies, targets: Targets, now: datetime) -> Renewed:
        """Judge those whose turn it is."""
        done = Renewed([], [])
        if targets.down:
            return done
        here = {one.id: one for one in targets.inventory.workloads if policies.of(one.id).horizontal.gate}
        self._forget(here, now)
        past = Past(history)

        def look(id_: WorkloadId) -> list[Case] | str:
            return cases_of(here[id_], policies.of(id_), past)

        new, again = self._turn(here, policies, now)
        ready = self._ready(new, look, done, now, most=self.newcomers)
        ready |= self._ready(again, look, done, now, most=len(again))
        for id_, rounds in self._rehearsed(ready, done, now):
            self._judge(id_, rounds, done, now)
        return done

    def _forget(self, here: Container[WorkloadId], now: datetime) -> None:
        """Who has not been here for long; one that is missing from a few answers stands where it stood."""
        self.places = {
            id_: place
            for id_, place in self.places.items()
            if id_ in here or (place.due is not None and now - place.due < KEPT)
        }

    def _turn(
        self, here: Mapping[WorkloadId, Workload], policies: Policies, now: datetime
    ) -> tuple[list[WorkloadId], list[WorkloadId]]:
        """Newcomers, the most urgent first, and those who were judged longest ago."""

        def urgency(id_: WorkloadId) -> tuple[bool, bool, bool, WorkloadId]:
            return not self.first(id_), policies.of(id_).mode != "publish", here[id_].autoscaler is None, id_

        places = ((id_, self.places.get(id_, NOWHERE)) for id_ in here)
        due = {id_: place for id_, place in places if place.due is None or place.due <= now}
        new = sorted((id_ for id_, place in due.items() if place.judged_at is None), key=urgency)
        judged = ((place.judged_at, id_) for id_, place in due.items() if place.judged_at is not None)
        return new, [id_ for _, id_ in heapq.nsmallest(-(-len(here) // ROUND), judged)]

    def _ready(
        self,
        ids: Iterable[WorkloadId],
        look: Callable[[WorkloadId], list[Case] | str],
        done: Renewed,
        now: datetime,
        *,
        most: int,
    ) -> dict[WorkloadId, list[Case]]:
        """Those that can be judged, at most so many; of the others it is said why not."""
        ready: dict[WorkloadId, list[Case]] = {}
        for id_ in ids:
            if len(ready) == most:
                break
            try:
                found = look(id_)
            except Exception as error:  # noqa: BLE001  the boundary: what is wrong with one workload stops no other
                self._failed(id_, error, done, now)
                continue
            if isinstance(found, str):
                self._move(id_, Place(unjudged(self.of(id_), found, now), None, now + LOOK_AGAIN), done)
            else:
                ready[id_] = found
        return ready

    def _rehearsed(
        self, ready: Mapping[WorkloadId, list[Case]], done: Renewed, now: datetime
    ) -> Iterable[tuple[WorkloadId, Rounds]]:
        """All at once; when that fails one by one, so that it is known who is at fault."""
        try:
            yield from rehearsed(case for cases in ready.values() for case in cases).items()
        except Exception:  # noqa: BLE001  the boundary, as above
            for id_, cases in ready.items():
                try:
                    yield from rehearsed(cases).items()
                except Exception as error:  # noqa: BLE001  the boundary, as above
                    self._failed(id_, error, done, now)

    def _judge(self, id_: WorkloadId, rounds: Rounds, done: Renewed, now: datetime) -> None:
        gate = self.of(id_)
        for targets in rounds:
            gate = judged_on_all(gate, targets, now)
        self._move(id_, Place(gate, now, now + SOONEST), done)

    def _failed(self, id_: WorkloadId, error: Exception, done: Renewed, now: datetime) -> None:
        done.failures.append(f"{id_}: its decisions could not be judged: {type(error).__name__}: {error}")
        self.places[id_] = self.places.get(id_, NOWHERE)._replace(due=now + LOOK_AGAIN)

    def _move(self, id_: WorkloadId, place: Place, done: Renewed) -> None:
        before = self.of(id_)
        self.places[id_] = place
        if (before.standing, before.voice) != (place.gate.standing, place.gate.voice):
            done.moved.append(f"{id_}: {before.standing} to {place.gate.standing}, {place.gate.why}")
