"""Counts that a release would lower, and a mode that a whole fleet leaves, wait for a person's word."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.app.effects import released_objects
from forecaster.config.settings import parse
from tests.support.fake_api_server import FakeApiServer
from tests.support.hands import MODES, STATED, WISHED, Hands, object_of, path_of, raised, value_of

FLEET = [f"team-{number:02}" for number in range(12)]


def released(server: FakeApiServer, hands: Hands, *, at_once: bool) -> list[tuple[str, bool]]:
    """Lines of `forecaster release`, and whether each is done."""
    given = {"expired": False, "dry_run": False, "at_once": at_once}
    lines = released_objects(server.client(), parse({}, "test"), hands.now, **given, chosen=lambda *_: True)
    return [(line.line, line.done) for line in lines]


def test_a_release_leaves_counts_that_would_go_down_and_names_them_unless_it_is_at_once() -> None:
    server, now = raised("scale")
    hands = Hands(server, "scale", now)
    left = released(server, hands, at_once=False)
    assert [done for _, done in left] == [False, False]
    begin = "Deployment shop/web: left at replicas 6: its owner's 3 would come back at once, whatever its load needs"
    assert left[0][0].startswith(begin)
    assert value_of(server.objects[path_of("scale", "shop")]) == WISHED["scale"]
    assert [done for _, done in released(server, hands, at_once=True)] == [True, True]
    assert value_of(server.objects[path_of("scale", "shop")]) == STATED["scale"]


@pytest.mark.parametrize("mode", MODES)
def test_a_fleet_that_leaves_a_mode_in_one_cycle_is_braked_until_a_person_resumes_it(mode: str) -> None:
    server = FakeApiServer()
    for namespace in FLEET:
        server.add(path_of(mode, namespace), object_of(mode))
    hands = Hands(server, mode)
    hands.cycles(4)
    values = [value_of(server.objects[path_of(mode, namespace)]) for namespace in FLEET]
    assert values == [WISHED[mode]] * len(FLEET)
    left = Hands(server, mode, hands.now + timedelta(minutes=10), acts=False, reactive=1)
    effected = left.cycle()
    assert (effected.braked, effected.states["braked"], effected.writes.get(("restore", "written"))) == (True, 12, None)
    left.actuator.writer.fence.resumed_at = left.now
    left.cycles(6)
    values = [value_of(server.objects[path_of(mode, namespace)]) for namespace in FLEET]
    assert values == [STATED[mode]] * len(FLEET)
