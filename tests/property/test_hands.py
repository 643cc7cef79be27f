"""Two rules over all actuators of counts, through pauses, reloads, restarts, kills, foreign writes.

Nothing takes away what the measured demand needs, and nothing but the measured demand rises without a limit.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.actuators.limits import MIN_GROWTH, MIN_PODS
from tests.support.api_objects import own_marks
from tests.support.fake_api_server import FakeApiServer, KilledError
from tests.support.hands import Hands, object_of, owner_sets, path_of, released_objects_of, value_of

NAMESPACES = ("alpha", "middle", "zulu")
counts = st.integers(1, 60)
events = st.one_of(
    *[st.tuples(st.just("recommended"), st.tuples(counts, counts))] * 4,
    st.tuples(st.just("unknown"), st.none()),
    st.tuples(st.just("mode"), st.booleans()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("minutes"), st.integers(1, 90)),
    st.tuples(st.just("owner"), st.tuples(st.sampled_from(NAMESPACES), st.integers(1, 20))),
    st.tuples(st.just("dies"), st.tuples(st.integers(0, 12), st.booleans())),
)


class Story:
    """One leader after the other over three workloads of one mode."""

    def __init__(self, mode: str) -> None:
        self.mode, self.server = mode, FakeApiServer()
        for namespace in NAMESPACES:
            self.server.add(path_of(mode, namespace), object_of(mode))
        self.hands = Hands(self.server, mode)
        self.hands.wished = 3

    def counts(self) -> list[int]:
        return [int(value_of(self.server.objects[path_of(self.mode, namespace)])) for namespace in NAMESPACES]

    def happens(self, event: str, value: Any) -> None:
        hands = self.hands
        match event:
            case "recommended":
                hands.wished, hands.reactive = max(value), min(value)
            case "unknown":
                hands.wished = None
            case "mode":
                self.hands = replace(hands, acts=value)
            case "restart":
                self.hands = replace(hands)
            case "pause":
                self.hands = replace(hands, paused=value)
            case "minutes":
                hands.now += timedelta(minutes=value)
            case "owner":
                owner_sets(self.server, self.mode, *value)
            case _:
                later, self.server.answered = value
                self.server.kill_at = len(self.server.requests) + later

    def cycle(self) -> None:
        """One cycle; where the process dies in it another one takes over in the next."""
        try:
            self.hands.cycle()
        except KilledError:
            self.hands = replace(self.hands, now=self.hands.now + timedelta(minutes=1))
        finally:
            self.server.kill_at = None


stories = st.lists(events, min_size=5, max_size=25)


@settings(max_examples=60)
@given(stories)
def test_nothing_takes_away_what_the_measured_demand_needs(happened: list[tuple[str, Any]]) -> None:
    story = Story("scale")
    for event, value in happened:
        story.happens(event, value)
        before, needed = story.counts(), story.hands.reactive if story.hands.wished is not None else 10**9
        story.cycle()
        for was, now in zip(before, story.counts(), strict=True):
            assert now >= min(was, needed)


@settings(max_examples=60)
@given(stories)
def test_no_floor_of_ours_goes_below_what_its_owner_stated(happened: list[tuple[str, Any]]) -> None:
    """Above the floor the HPA follows its own metrics: a floor takes nothing away."""
    story, stated = Story("floor"), dict.fromkeys(NAMESPACES, 2)
    for event, value in happened:
        before = story.counts()
        story.happens(event, value)
        if event == "owner" and story.counts() != before:
            stated[value[0]] = value[1]
        story.cycle()
        assert all(now >= stated[name] for name, now in zip(NAMESPACES, story.counts(), strict=True))


@pytest.mark.parametrize("mode", ["floor", "scale"])
@settings(max_examples=60)
@given(happened=stories)
def test_nothing_but_the_measured_demand_rises_without_a_limit(mode: str, happened: list[tuple[str, Any]]) -> None:
    story = Story(mode)
    for event, value in happened:
        story.happens(event, value)
        before, measured = story.counts(), story.hands.reactive if mode == "scale" else 0
        there = [max(count, 4) if mode == "floor" else count for count in before]
        story.cycle()
        added = [max(0, now - max(was, measured)) for was, now in zip(there, story.counts(), strict=True)]
        assert sum(added) <= max(MIN_PODS, int(0.2 * sum(there)))
        assert all(more <= max(MIN_GROWTH, was) for more, was in zip(added, there, strict=True))


@settings(max_examples=30)
@given(stories)
def test_a_pause_freezes_everything_the_expiry_of_the_service_included(happened: list[tuple[str, Any]]) -> None:
    story = Story("floor")
    for event, value in happened:
        story.happens(event, value)
        story.cycle()
    story.hands = replace(story.hands, paused=True)
    before = story.counts()
    for _ in range(3):
        story.hands.now += timedelta(minutes=30)
        story.cycle()
    assert story.counts() == before


@pytest.mark.parametrize("mode", ["floor", "scale"])
@settings(max_examples=30)
@given(happened=stories)
def test_whatever_happened_a_release_leaves_nothing_of_ours(mode: str, happened: list[tuple[str, Any]]) -> None:
    story = Story(mode)
    for event, value in happened:
        story.happens(event, value)
        story.cycle()
    released_objects_of(story.server, mode, story.hands.now)
    for document in story.server.objects.values():
        assert own_marks(document) == set()
        assert not [each for each in document["metadata"]["managedFields"] if each["manager"] == "forecaster"]
