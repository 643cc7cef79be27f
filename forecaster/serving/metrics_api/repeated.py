"""Repeated: replies to requests that come again. An HPA asks for the same value four times before it can change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.serving.values import KNOWN

if TYPE_CHECKING:
    from forecaster.serving.metrics_api.answers import Request
    from forecaster.serving.metrics_api.reply import Reply
    from forecaster.serving.reader import Table
    from forecaster.serving.values import Moment, Value

MOST = 20_000
"""Replies kept; at half a kilobyte each they are 10 MB."""
LONGEST = 512
"""Bytes of a query that is worth keeping: an HPA's is a quarter of that, and others shall not fill the memory."""


class Repeated:
    """Replies of one fresh table: what is known does not change before the next. A Table for people shows an age."""

    def __init__(self) -> None:
        self._table: Table | None = None
        self._replies: dict[str, Reply] = {}

    def get(self, table: Table, moment: Moment, request: Request) -> Reply | None:
        """The reply to the same request."""
        if self._table is not table or not moment.fresh:
            self._table, self._replies = table, {}
        return None if request.wants_table else self._replies.get(_key(request))

    def keep(self, request: Request, reply: Reply, value: Value) -> None:
        """For the next time, unless its truth depends on the time."""
        if value.source in KNOWN and len(self._replies) < MOST and len(request.query) <= LONGEST:
            self._replies[_key(request)] = reply


def _key(request: Request) -> str:
    """One string: some thousand tuples would be work for the garbage collector."""
    return f"{request.path}?{request.query.decode('latin-1')}"
