"""An object of a bad owner harms only itself in every plan, write, undo, release and expiry."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.bad_objects import BAD
from tests.support.fake_api_server import FakeApiServer
from tests.support.hands import MODES, STATED, WISHED, Hands, object_of, path_of, released_objects_of, value_of

if TYPE_CHECKING:
    from forecaster.kube.connections import RawRequest
    from tests.support.bad_objects import Bad

GOOD = ("alpha", "middle", "zulu")
"""Namespaces before, between and after those of the bad objects."""


class Cluster:
    """Good objects, and bad ones in namespaces of their own, which come first, last and between."""

    def __init__(self, mode: str, bad: dict[str, Bad]) -> None:
        self.mode, self.server = mode, FakeApiServer()
        self.answers = {f"bad-{number}": fault.answer for number, fault in enumerate(bad.values())}
        for namespace in GOOD:
            self.server.add(path_of(mode, namespace), object_of(mode))
        for namespace, fault in zip(self.answers, bad.values(), strict=True):
            spoilt = object_of(mode)
            fault.spoil(spoilt, mode)
            self.server.add(path_of(mode, namespace), spoilt)

    def turn_bad(self) -> None:
        """Answer writes and reads of the bad objects from now on as their fault states."""
        self.server.fault = self._answer

    def _answer(self, request: RawRequest) -> int | Exception | None:
        answers = self.answers.items()
        return next((answer for name, answer in answers if f"/namespaces/{name}/" in request.target), None)

    def good(self) -> list[object]:
        return [value_of(self.server.objects[path_of(self.mode, namespace)]) for namespace in GOOD]


CASES = [*([name] for name in BAD), list(BAD)]
IDS = [*BAD, "all at once"]


@pytest.mark.parametrize("names", CASES, ids=IDS)
@pytest.mark.parametrize("mode", MODES)
def test_the_others_are_written_in_the_first_cycle(mode: str, names: list[str]) -> None:
    cluster = Cluster(mode, {name: BAD[name] for name in names})
    cluster.turn_bad()
    Hands(cluster.server, mode).cycle()
    assert cluster.good() == [WISHED[mode]] * len(GOOD)


@pytest.mark.parametrize("names", CASES, ids=IDS)
@pytest.mark.parametrize("mode", MODES)
def test_the_others_are_undone_when_the_mode_is_left(mode: str, names: list[str]) -> None:
    cluster = Cluster(mode, {name: BAD[name] for name in names})
    hands = Hands(cluster.server, mode)
    hands.cycles(4)
    assert cluster.good() == [WISHED[mode]] * len(GOOD)
    cluster.turn_bad()
    left = Hands(cluster.server, mode, hands.now, acts=False, reactive=1)
    left.actuator.writer.fence.resumed_at = left.now  # the brake would hold a change of all of them at once
    left.cycles(3)
    assert cluster.good() == [STATED[mode]] * len(GOOD)


@pytest.mark.parametrize("names", CASES, ids=IDS)
@pytest.mark.parametrize(
    ("mode", "expired"), [("floor", True), *((mode, False) for mode in MODES)], ids=["expiry", *MODES]
)
def test_release_and_expiry_go_on_past_them_and_name_them(mode: str, names: list[str], *, expired: bool) -> None:
    cluster = Cluster(mode, {name: BAD[name] for name in names})
    hands = Hands(cluster.server, mode)
    hands.cycles(4)
    assert cluster.good() == [WISHED[mode]] * len(GOOD)
    cluster.turn_bad()
    later = hands.now + timedelta(hours=1)
    lines = released_objects_of(cluster.server, mode, later, expired=expired)
    assert cluster.good() == [STATED[mode]] * len(GOOD)
    assert sum(line.done for line in lines) >= len(GOOD)
    unread = [line.line for line in lines if not line.done]
    assert all("bad-" in line for line in unread)
