"""One line on standard error for each kind of denial, and a count of all."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias

import msgspec
from cachetools import TTLCache

if TYPE_CHECKING:
    from http import HTTPStatus

REPEAT_SECONDS = 60.0
"""Seconds in which the same denial is logged once: an attacker must not fill the log."""
MAX_KINDS = 1024
_Written: TypeAlias = TTLCache[tuple[Any, ...], None]


class Denial(NamedTuple):
    """A refused request."""

    status: HTTPStatus
    message: str
    """Message for the client."""
    why: str
    user: str
    client: str
    """Address of the client."""
    request: str
    """Method and path."""


class Audit:
    """Writes denials as JSON. Neither tokens nor headers are in them."""

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._refusals, self._notes = (_Written(MAX_KINDS, REPEAT_SECONDS, clock) for _ in range(2))
        self.denials: Counter[str] = Counter()
        """Denials by status, or `connection` for those that never became a request."""

    def denied(self, denial: Denial) -> None:
        """A request was refused."""
        self.denials[str(int(denial.status))] += 1
        facts = {"status": int(denial.status), "why": denial.why, "user": denial.user, "client": denial.client}
        line = {"event": "request_denied", **facts, "request": denial.request}
        self._once(self._refusals, tuple(facts.values()), line)

    def refused(self, why: str, client: str) -> None:
        """A connection was closed before it became a request."""
        self.denials["connection"] += 1
        self._once(self._refusals, (why, client), {"event": "connection_refused", "why": why, "client": client})

    def note(self, event: str, **facts: str) -> None:
        """Log another event that a person should know, however many requests are refused at the time."""
        self._once(self._notes, (event, *facts.values()), {"event": event, **facts})

    def _once(self, written: _Written, key: tuple[Any, ...], line: dict[str, Any]) -> None:
        if key in written or len(written) >= MAX_KINDS:
            return
        written[key] = None
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        text = msgspec.json.encode({"level": "warning", "timestamp": at, **line}).decode()
        out = self._out or sys.stderr
        out.write(text + "\n")
        out.flush()
