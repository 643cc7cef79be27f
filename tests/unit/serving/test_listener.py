from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.server import ServerState

from forecaster.serving.connection import PATIENCE_SECONDS, Connection
from forecaster.serving.secured import server_context
from forecaster.serving.server import _config, same_trust
from tests.support.control_plane.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_certificate_is_the_same_trust_and_a_new_authority_is_not(tmp_path: Path) -> None:
    own = Authority(tmp_path / "ours", "ours")
    old, new = (Authority(tmp_path / name, name) for name in ("old", "new"))
    first, second = own.issue("first", "localhost"), own.issue("second", "localhost")
    before = server_context(*first, old.certificate.read_text())
    assert same_trust(before, server_context(*second, old.certificate.read_text()))
    assert not same_trust(before, server_context(*first, new.certificate.read_text()))
    assert not same_trust(before, server_context(*first))


class Unread(asyncio.Transport):
    """The way to a client that reads nothing."""

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Let the client's next requests wait."""

    def close(self) -> None:
        """The connection has gone."""


async def never(_scope: Any, _receive: Any, _send: Any) -> None:
    await asyncio.Event().wait()


async def waits_for_a_reader() -> tuple[bool, bool]:
    """Whether a connection is overdue that asks for more instead of reading its answer: at once, and later."""
    connection = Connection(_config(never), ServerState(), {}, secure=False, refused=lambda _why, _peer: None)
    connection.connection_made(Unread())
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    connection.data_received(request)
    connection.pause_writing()
    connection.data_received(request)
    now = connection.loop.time()
    overdue = connection.overdue(now), connection.overdue(now + PATIENCE_SECONDS + 1)
    connection.connection_lost(None)
    return overdue


def test_a_client_that_asks_again_instead_of_reading_is_not_waited_for_for_ever() -> None:
    assert asyncio.run(waits_for_a_reader()) == (False, True)
