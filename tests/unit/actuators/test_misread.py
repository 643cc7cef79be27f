"""An HPA that has no answer is warned of beside it: at once, again after an hour, and by the replica that leads."""

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
    """What was created, by path."""

    def __init__(self) -> None:
        self.created: list[tuple[str, EventObject]] = []
        self.refuses: dict[str, ApiError] = {}

    def create(self, path: str, event: EventObject, _kind: type[EventObject]) -> EventObject:
        if error := self.refuses.get(event.involved_object.name):
            raise error
        self.created.append((path, event))
        return event


class Story:
    """HPAs named `misread` read a signal that is not measured."""

    def __init__(self, acting: ActingSettings | None = None, *, leads: bool = True) -> None:
        self.events, self.misread = Events(), ["web"]
        fence = Fence(left=1000 if leads else 0)
        self.warnings = HpaWarnings(cast("ApiClient", self.events), self._told, fence, acting or ActingSettings())

    def _told(self) -> list[Misread]:
        return [Misread(HorizontalPodAutoscalerMeta(one, "shop", uid=one), "no signal cpus") for one in self.misread]

    def said(self, *minutes: int) -> list[int]:
        """The number of Events after cycles in these minutes."""
        counts = []
        for each in minutes:
            self.warnings.act(NOON + timedelta(minutes=each))
            counts.append(len(self.events.created))
        return counts


def test_one_event_an_hour_while_it_stands() -> None:
    story = Story()
    assert story.said(0, 1, 59, 60, 61) == [1, 1, 1, 2, 2]
    (path, event), (_, later) = story.events.created
    assert (path, event.reason, event.type) == ("/api/v1/namespaces/shop/events", "MetricMisread", "Warning")
    assert event.message == "no signal cpus"
    assert event.metadata.name != later.metadata.name


def test_two_replicas_in_turn_make_one_event_of_it() -> None:
    first, second = Story(), Story()
    assert first.said(0) == second.said(1) == [1]
    assert first.events.created[0][1].metadata.name == second.events.created[0][1].metadata.name


def test_mended_and_broken_again_it_is_told_again() -> None:
    story = Story()
    story.said(0)
    story.misread = []
    assert story.said(1) == [1]
    story.misread = ["web"]
    assert story.said(2) == [2]


def test_a_fleet_of_them_takes_several_cycles() -> None:
    story = Story()
    story.misread = [f"web-{each}" for each in range(MAX_WARNINGS + 5)]
    assert story.said(0, 1, 2) == [MAX_WARNINGS, MAX_WARNINGS + 5, MAX_WARNINGS + 5]


@pytest.mark.parametrize("acting", [ActingSettings(paused=True), ActingSettings(dry_run=True)])
def test_nothing_is_written_in_a_pause_or_a_dry_run(acting: ActingSettings) -> None:
    assert Story(acting).said(0) == [0]


def test_a_namespace_with_thousands_of_them_leaves_no_other_untold() -> None:
    story = Story()
    story.misread = [*(f"a-{each:04}" for each in range(61 * MAX_WARNINGS)), "web"]
    story.warnings.fence = Fence(left=100_000)
    story.said(*range(70))
    assert "web" in {event.involved_object.name for _, event in story.events.created}


def test_an_hpa_beside_which_no_event_comes_through_keeps_no_other_untold() -> None:
    story = Story()
    story.misread = ["bad", "web"]
    story.events.refuses = {"bad": UnreachableError("its webhook does not answer in time")}
    for minute in (0, 1):
        with pytest.raises(UnreachableError):
            story.said(minute)
    assert [event.involved_object.name for _, event in story.events.created] == ["web"]


def test_a_clock_that_was_ahead_delays_no_event() -> None:
    assert Story().said(60 * 24 * 300, 0, 1, 60) == [1, 2, 2, 3]


def test_nothing_is_written_by_a_replica_that_does_not_lead() -> None:
    assert Story(leads=False).said(0) == [0]


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
    assert story.said(1) == [1]
