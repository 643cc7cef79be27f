"""The leader writes a warning Event beside an HPA whose selector has no answer, and repeats it after an hour."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from forecaster.actuators.misread import MAX_WARNINGS, HpaWarnings
from forecaster.actuators.settings import ActingSettings
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.kube.objects import HorizontalPodAutoscalerMeta
from forecaster.sources.live_objects import Misread
from tests.support.fences import Fence
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from forecaster.actuators.marks import EventObject
    from forecaster.kube.client import ApiClient


class Events:
    """An API server that records the Events created in it, and refuses those beside some HPAs."""

    def __init__(self) -> None:
        self.created: list[tuple[str, EventObject]] = []
        self.refuses: dict[str, ApiError] = {}

    def create(self, path: str, event: EventObject, _kind: type[EventObject]) -> EventObject:
        if error := self.refuses.get(event.involved_object.name):
            raise error
        self.created.append((path, event))
        return event


class Story:
    """A service in whose cluster the HPAs in `misread` read a signal that is not measured."""

    def __init__(self, acting: ActingSettings | None = None, *, leads: bool = True) -> None:
        self.events, self.misread = Events(), ["web"]
        fence = Fence(left=1000 if leads else 0)
        self.warnings = HpaWarnings(
            cast("ApiClient", self.events), self._misread_hpas, fence, acting or ActingSettings()
        )

    def _misread_hpas(self) -> list[Misread]:
        return [Misread(HorizontalPodAutoscalerMeta(name, "shop", uid=name), "no signal cpus") for name in self.misread]

    def events_after(self, *minutes: int) -> list[int]:
        """Run a cycle in each of these minutes, and count the Events so far after each."""
        counts = []
        for each in minutes:
            self.warnings.act(NOON + timedelta(minutes=each))
            counts.append(len(self.events.created))
        return counts


def test_one_event_an_hour_while_an_hpa_is_misread() -> None:
    story = Story()
    assert story.events_after(0, 1, 59, 60, 61) == [1, 1, 1, 2, 2]
    (path, event), (_, later) = story.events.created
    assert (path, event.reason, event.type) == ("/api/v1/namespaces/shop/events", "MetricMisread", "Warning")
    assert event.message == "no signal cpus"
    assert event.metadata.name != later.metadata.name


def test_two_replicas_in_turn_make_one_event() -> None:
    first, second = Story(), Story()
    assert first.events_after(0) == second.events_after(1) == [1]
    assert first.events.created[0][1].metadata.name == second.events.created[0][1].metadata.name


def test_an_hpa_that_is_mended_and_broken_again_is_warned_of_again() -> None:
    story = Story()
    story.events_after(0)
    story.misread = []
    assert story.events_after(1) == [1]
    story.misread = ["web"]
    assert story.events_after(2) == [2]


def test_a_fleet_of_them_takes_several_cycles() -> None:
    story = Story()
    story.misread = [f"web-{each}" for each in range(MAX_WARNINGS + 5)]
    assert story.events_after(0, 1, 2) == [MAX_WARNINGS, MAX_WARNINGS + 5, MAX_WARNINGS + 5]


@pytest.mark.parametrize("acting", [ActingSettings(paused=True), ActingSettings(dry_run=True)])
def test_nothing_is_written_in_a_pause_or_a_dry_run(acting: ActingSettings) -> None:
    assert Story(acting).events_after(0) == [0]


def test_a_namespace_with_thousands_of_them_leaves_no_other_without_its_event() -> None:
    story = Story()
    story.misread = [*(f"a-{each:04}" for each in range(61 * MAX_WARNINGS)), "web"]
    story.warnings.fence = Fence(left=100_000)
    story.events_after(*range(70))
    assert "web" in {event.involved_object.name for _, event in story.events.created}


def test_an_hpa_beside_which_no_event_comes_through_keeps_no_other_without_its_event() -> None:
    story = Story()
    story.misread = ["bad", "web"]
    story.events.refuses = {"bad": UnreachableError("its webhook does not answer in time")}
    for minute in (0, 1):
        with pytest.raises(UnreachableError):
            story.events_after(minute)
    assert [event.involved_object.name for _, event in story.events.created] == ["web"]


def test_a_clock_that_was_ahead_delays_no_event() -> None:
    assert Story().events_after(60 * 24 * 300, 0, 1, 60) == [1, 2, 2, 3]


def test_nothing_is_written_by_a_replica_that_does_not_lead() -> None:
    assert Story(leads=False).events_after(0) == [0]


def test_a_namespace_that_refuses_events_keeps_no_other_from_its_own() -> None:
    story = Story()
    story.misread = ["bad", "web"]
    story.events.refuses = {"bad": ApiError("the namespace is being terminated", 403)}
    effected = story.warnings.act(NOON)
    assert [event.involved_object.name for _, event in story.events.created] == ["web"]
    assert effected.failures == ("Event beside HPA shop/bad not written: the namespace is being terminated",)


def test_an_api_server_that_is_away_is_asked_again_in_the_next_cycle() -> None:
    story = Story()
    story.events.refuses = {"web": UnreachableError("no answer")}
    with pytest.raises(UnreachableError):
        story.warnings.act(NOON)
    story.events.refuses = {}
    assert story.events_after(1) == [1]
