"""Whichever request of a cycle the process dies with, its successor reaches the end of a quiet run."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_api_server import KilledError
from tests.support.hands import MODES, STATED, WISHED, Hands, end_of, raised, released_objects_of, server_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tests.support.fake_api_server import FakeApiServer


def raises(server: FakeApiServer, mode: str, now: datetime | None = None) -> None:
    hands = Hands(server, mode) if now is None else Hands(server, mode, now)
    hands.cycles(3)


def leaves(server: FakeApiServer, mode: str, now: datetime | None = None) -> None:
    assert now is not None
    Hands(server, mode, now, acts=False, reactive=1).cycles(4)


def releases(server: FakeApiServer, mode: str, now: datetime | None = None) -> None:
    assert now is not None
    released_objects_of(server, mode, now)


def requests_of(begin: FakeApiServer, does: Callable[..., None], mode: str, now: datetime | None) -> tuple[int, dict]:
    """Number of requests of an undisturbed run, and the state that it ends in."""
    quiet = deepcopy(begin)
    quiet.requests = []
    does(quiet, mode, now)
    return len(quiet.requests), end_of(quiet)


@pytest.mark.parametrize("answered", [False, True], ids=["before it arrives", "before its answer"])
@pytest.mark.parametrize("does", [raises, leaves, releases], ids=lambda does: does.__name__)
@pytest.mark.parametrize("mode", MODES)
def test_wherever_the_process_dies_the_next_one_ends_where_a_quiet_run_does(
    mode: str, does: Callable[..., None], *, answered: bool
) -> None:
    begin, now = (server_of(mode), None) if does is raises else raised(mode)
    count, end = requests_of(begin, does, mode, now)
    assert count > 3
    wished = WISHED if does is raises else STATED
    assert {state["value"] for state in end.values()} == {wished[mode]}
    for number in range(count):
        server = deepcopy(begin)
        server.requests, server.kill_at, server.answered = [], number, answered
        with pytest.raises(KilledError):
            does(server, mode, now)
        server.kill_at = None
        does(server, mode, now)
        does(server, mode, now)
        assert end_of(server) == end, f"killed at {server.requests[number]}"
