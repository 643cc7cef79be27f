"""A collection is watched once it could be listed, and asked for again where what is known of it is no longer all."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.kube.objects import Scalable
from forecaster.kube.watch import AGED_SECONDS, Followed
from tests.support.api_objects import ScriptedServer, deployment, event, page, refusal
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATH = "/apis/apps/v1/deployments"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server(ScriptedServer):
    """Keeps its stream open until it is closed."""

    ended = threading.Event()

    def _pieces(self, pieces: Sequence[bytes]) -> Iterator[bytes]:
        yield from pieces
        self.ended.wait()

    def close(self) -> None:
        self.ended.set()


def names(followed: Followed) -> list[Any] | None:
    return followed.objects(PATH)


def test_what_it_streams_is_known_without_another_list() -> None:
    server = Server.of(page(deployment("a", 1)), [event("ADDED", deployment("b", 2, version=2))])
    server.ended = threading.Event()
    with closing(Followed(server)) as followed:  # type: ignore[arg-type]
        assert names(followed) is None
        followed.begin(PATH, Scalable, lambda document: document.metadata.name)
        followed.begin(PATH, Scalable, lambda document: document.metadata.name)
        wait_until(lambda: names(followed) == ["a", "b"], goal="the second one")
        assert len(server.requests) == 2


@pytest.mark.parametrize("last", [refusal(403), refusal(404)])
def test_a_refused_one_is_not_known(last: Any) -> None:
    server = Server.of(page(deployment("a", 1)), last)
    with closing(Followed(server)) as followed:  # type: ignore[arg-type]
        followed.begin(PATH, Scalable, lambda document: document.metadata.name)
        wait_until(lambda: not server.answers, goal="the refusal")
        wait_until(lambda: names(followed) is None, goal="that it is not known")


@pytest.mark.parametrize("later", [AGED_SECONDS + 1, -3600], ids=["for long", "when the clock goes back"])
def test_one_that_was_cut_off_is_not_known(later: float) -> None:
    clock = Clock()
    server = Server.of(page(deployment("a", 1)), refusal(500), *[refusal(500)] * 50)
    with closing(Followed(server, clock)) as followed:  # type: ignore[arg-type]
        followed.begin(PATH, Scalable, lambda document: document.metadata.name)
        wait_until(lambda: names(followed) == ["a"], goal="the list")
        clock.now += later
        assert names(followed) is None
