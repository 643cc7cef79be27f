"""Proxy between the service and its Prometheus: passes requests on, unless a test sets a fault."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Self

import httpx

from tests.support.http_server import HttpRequest, Reply, Running, answering, verdict
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

PASSED_ON = ("Content-Type", "Accept")


class FaultyProxy:
    """Answers for the Prometheus at `url`."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=PATIENCE)
        self._server = Running(answering(self._answer), None)
        self.url = self._server.url
        self.away = False
        self.halves = False
        """Whether every second series is missing from each answer, with status 200."""
        self.slow = ""
        """Queries with this text are not answered before it changes."""
        self.kept_waiting = 0
        self.spoils: Callable[[bytes], bytes] = bytes
        """Changes the body of each answer with status 200."""
        self._changed = threading.Condition()

    def mended(self) -> None:
        """All is well again; what waits is answered."""
        with self._changed:
            self.away, self.halves, self.slow, self.spoils = False, False, "", bytes
            self._changed.notify_all()

    def _answer(self, request: HttpRequest) -> Reply:
        if self.away:
            return verdict(503, "unavailable", "no Prometheus here")
        if self.slow and self.slow in request.form.get("query", ""):
            with self._changed:
                self.kept_waiting += 1
                self._changed.wait_for(lambda: not self.slow, PATIENCE)
        headers = {name: value for name, value in request.headers.items() if name in PASSED_ON}
        answer = self._client.request(request.method, request.path, content=request.body, headers=headers)
        if not answer.is_success:
            return Reply(answer.status_code, answer.content)
        series = self.halves and answer.headers.get("Content-Type", "").startswith("application/json")
        return Reply(answer.status_code, self.spoils(halved(answer.json()) if series else answer.content))

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.mended()
        self._server.__exit__(kind, error, trace)
        self._client.close()


def halved(answer: Any) -> bytes:
    """Every second series of an answer, the first among those that are missing."""
    data = answer["data"]
    if isinstance(data, dict) and isinstance(data.get("result"), list):
        data["result"] = data["result"][1::2]
    return json.dumps(answer).encode()
