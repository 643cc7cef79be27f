"""An object that arrives beside a workload after a cycle has looked stops the writes that it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forecaster.actuators.neighbours import CycleNeighbours
from forecaster.app.effects import CONCERNS
from forecaster.resources.neighbours import SCALED_OBJECTS, VPAS, ScaledObject, VpaNeighbour
from tests.support.recommendations import NOON
from tests.support.scales import live_scale_of

if TYPE_CHECKING:
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.collection import Key

WEB = live_scale_of().id
OFF = VpaNeighbour("web", WEB, "Off", {})
ARRIVALS: dict[str, tuple[str, Any]] = {
    "VPA": (VPAS, OFF._replace(mode="Auto")),
    "VPA of memory": (VPAS, OFF._replace(mode="Auto", resources=frozenset({"memory"}))),
    "VPA that is Off": (VPAS, OFF),
    "ScaledObject": (SCALED_OBJECTS, ScaledObject("web", WEB, "")),
    "of another workload": (SCALED_OBJECTS, ScaledObject("web", WEB._replace(name="other"), "")),
    "HPA": ("", "second"),
}
STOPS = {
    "floor": {"ScaledObject", "HPA"},
    "scale": {"VPA", "ScaledObject", "HPA"},
    "resize": {"VPA", "VPA of memory"},
}


class Watched:
    """The watched objects of a cluster beside its HPAs; stands in for `Followed`."""

    def __init__(self) -> None:
        self.watched: dict[str, list[Any]] = {SCALED_OBJECTS: [], VPAS: []}
        self.hpas: dict[WorkloadId, set[Key]] = {WEB: {("shop", "first")}}

    def objects(self, path: str) -> list[Any]:
        return self.watched[path]

    def add(self, path: str, arrival: Any) -> None:
        if path:
            self.watched[path] = [*self.watched[path], arrival]
        else:
            self.hpas[WEB].add(("shop", arrival))

    def beside(self) -> CycleNeighbours:
        client: Any = None  # nothing is listed that is watched
        followed: Any = self
        return CycleNeighbours(client, (SCALED_OBJECTS, VPAS), followed, self.hpas)


@pytest.mark.parametrize("mode", CONCERNS)
@pytest.mark.parametrize("arrival", ARRIVALS)
def test_what_comes_after_the_look_stops_the_writes_that_it_concerns(arrival: str, mode: str) -> None:
    cluster = Watched()
    beside, concern = cluster.beside(), CONCERNS[mode]
    beside.begin()
    beside(NOON)
    assert not beside.since(WEB, concern)
    cluster.add(*ARRIVALS[arrival])
    assert bool(beside.since(WEB, concern)) is (arrival in STOPS[mode])
    beside.begin()
    beside(NOON.replace(minute=1))
    assert not beside.since(WEB, concern), "the next cycle decides by it"


def test_a_cycle_that_did_not_look_is_stopped_by_nothing_that_was_there_before() -> None:
    cluster = Watched()
    beside = cluster.beside()
    beside.begin()
    beside(NOON)
    cluster.add(*ARRIVALS["VPA"])
    beside.begin()
    assert not beside.since(WEB, CONCERNS["resize"])
