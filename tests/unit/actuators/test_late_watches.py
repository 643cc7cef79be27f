"""Late watches, and restarts behind them, lead to the end of an undisturbed run.

Delays go from no change to all changes of the undisturbed run, each with a restart after every one of its cycles.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.api_objects import own_marks
from tests.support.hands import (
    MODES,
    NAMESPACES,
    STATED,
    WISHED,
    Hands,
    end_of,
    object_of,
    owner_sets,
    path_of,
    raised,
    released_objects_of,
    server_of,
    value_of,
)
from tests.support.late_watches import LateWatches

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.fake_api_server import FakeApiServer

CYCLES = 4
"""Cycles of a run; the process may be replaced after each."""
SETTLED = 6
"""Cycles after which every change is delivered, and written."""


class Run:
    """Processes over one cluster, each with watches that are late."""

    def __init__(self, hands: Hands, late: int) -> None:
        self.hands, self.late = hands, late
        self.restart()

    def restart(self) -> None:
        """Let another process take over, which knows only the objects that it lists."""
        now = self.hands.now
        self.watches = LateWatches(self.hands.server, self.seconds, self.late)
        self.hands = replace(self.hands, now=now, live=self.watches.live)

    def seconds(self) -> float:
        """The present instant."""
        return self.hands.now.timestamp()

    def cycle(self) -> None:
        """Run a cycle after the delivered changes; no count goes below the measured demand."""
        self.watches.deliver()
        before = counts(self.hands)
        self.hands.cycle()
        for was, now in zip(before, counts(self.hands), strict=True):
            assert now >= min(was, self.hands.reactive)

    def settle(self) -> None:
        """Deliver every change, and run the cycles that follow."""
        self.watches.late = 0
        for _ in range(SETTLED):
            self.cycle()


def counts(hands: Hands) -> list[int]:
    """Replicas of each workload in mode scale; other modes have none."""
    if hands.mode != "scale":
        return []
    return [int(value_of(hands.server.objects[path_of("scale", namespace)])) for namespace in NAMESPACES]


def nothing(_: Hands) -> None:
    """Change nothing between the cycles."""


def released(hands: Hands) -> None:
    """Release everything, as a person may while the service runs."""
    released_objects_of(hands.server, hands.mode, hands.now)


def began_raised(mode: str) -> Hands:
    server, now = raised(mode)
    return Hands(server, mode, now, acts=False, reactive=1)


def owner_writes(hands: Hands) -> None:
    """Apply another count of the owner over ours."""
    owner_sets(hands.server, hands.mode, NAMESPACES[0], OWNERS)


OWNERS = 4
STORIES: dict[str, tuple[Callable[[str], Hands], Callable[[Hands], None], dict[str, Any]]] = {
    "raises": (lambda mode: Hands(server_of(mode), mode), nothing, WISHED),
    "leaves": (began_raised, nothing, STATED),
    "release": (began_raised, released, STATED),
    "another count of the owner": (lambda mode: Hands(server_of(mode), mode), owner_writes, WISHED),
}
CASES = [(mode, story) for mode in MODES for story in STORIES if mode != "resize" or "owner" not in story]


def ended(begin: Hands, happens: Callable[[Hands], None], late: int, restart: int) -> FakeApiServer:
    """The cluster at the end of a run with this event after its first cycle; `restart` 0 replaces no process."""
    run = Run(replace(begin, server=deepcopy(begin.server)), late)
    for cycle in range(1, CYCLES + 1):
        run.cycle()
        if cycle == 1:
            happens(run.hands)
        if cycle == restart:
            run.restart()
    run.settle()
    return run.hands.server


@pytest.mark.parametrize(("mode", "story"), CASES)
def test_however_late_the_watches_are_the_end_is_that_of_an_undisturbed_run(mode: str, story: str) -> None:
    begun, happens, value = STORIES[story]
    begin = begun(mode)
    quiet = ended(begin, happens, 0, 0)
    end, changes = end_of(quiet), len(quiet.changes) - len(begin.server.changes)
    assert {state["value"] for state in end.values()} - {OWNERS} == {value[mode]}
    assert (OWNERS in {state["value"] for state in end.values()}) == (happens is owner_writes)
    assert changes >= len(NAMESPACES)
    for late in range(changes + 1):
        for restart in range(CYCLES + 1):
            late_end = end_of(ended(begin, happens, late, restart))
            assert late_end == end, f"{late} changes late, replaced after cycle {restart}"


@pytest.mark.parametrize("late", range(8))
def test_an_hpa_that_is_seen_late_takes_the_count_over_all_the_same(late: int) -> None:
    """Our count stays until the HPA is delivered; then no mark of ours is left."""
    server, now = raised("scale")
    run = Run(Hands(server, "scale", now), late)
    server.add(path_of("floor", "shop"), object_of("floor"))
    for _ in range(CYCLES):
        run.cycle()
    run.settle()
    workload = server.objects[path_of("scale", "shop")]
    assert own_marks(workload) == set()
    assert value_of(workload) == WISHED["scale"]
    assert value_of(server.objects[path_of("scale", "team")]) == WISHED["scale"]
