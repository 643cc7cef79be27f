"""Watches of an API server in memory that are some changes behind, delivered one by one when a test says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecaster.sources.live import LiveCluster
from tests.support.api_objects import event, page, played

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.fake_api_server import Document, FakeApiServer


@dataclass
class LateWatches:
    """The live facts of one process. Its first lists are as late as its events: a store that lags serves both."""

    server: FakeApiServer
    clock: Callable[[], float]
    late: int = 0
    """Changes that are not delivered yet."""
    live: LiveCluster = field(init=False)
    shown: int = 0
    """Changes that were delivered."""

    def __post_init__(self) -> None:
        self.live = LiveCluster(clock=self.clock)
        first: dict[str, Document] = {}
        self.shown = max(self._objects_at_first(), len(self.server.changes) - self.late)
        for path, document in self.server.changes[: self.shown]:
            first.pop(path, None)
            first |= {} if document is None else {path: document}
        for watch in self.live.watches:
            played(
                watch,
                page(*(document for path, document in first.items() if _plural(path) == _plural(f"{watch.path}/x"))),
            )

    def deliver(self) -> None:
        """Stream the events that are not late any more; every stream goes on, as if it knew everything."""
        until = max(self.shown, len(self.server.changes) - self.late)
        new, self.shown = self.server.changes[self.shown : until], until
        for watch in self.live.watches:
            changes = [
                self._event(path, document) for path, document in new if _plural(path) == _plural(f"{watch.path}/x")
            ]
            played(watch, changes)

    def _objects_at_first(self) -> int:
        return len({path for path, _ in self.server.changes})

    def _event(self, path: str, document: Document | None) -> bytes:
        if document is not None:
            return event("MODIFIED", document)
        last: Any = next(each for at, each in reversed(self.server.changes) if at == path and each is not None)
        return event("DELETED", last)


def _plural(path: str) -> str:
    return path.split("/")[-2]
