"""Followed: collections that are watched from the moment at which they could be listed, each in a thread.

A kind that may not be installed, or not be listed, is asked for by its reader at each look, as without this; once it
answers, its reader is told what a watch knows, and asks no more.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from forecaster.kube.collection import Collection
from forecaster.kube.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.kube.client import ApiClient

FOLLOWED_CONNECTIONS = 8
"""Connections of the client: one for each collection, and one for lists."""
AGED_SECONDS = 60.0
"""What was confirmed longer ago is asked for again."""
V = TypeVar("V")


class Followed:
    """Collections by path; `close` ends their watches."""

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.time) -> None:
        self._client, self._clock = client, clock
        self._watches: dict[str, Watch[Any, Any]] = {}
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def objects(self, path: str) -> list[Any] | None:
        """All of a collection as they are now; None where they are not watched, or not known."""
        watch = self._watches.get(path)
        if watch is None or not watch.synced.is_set() or watch.health.refused:
            return None
        aged = self._clock() - watch.confirmed() > AGED_SECONDS
        return None if aged else list(watch.objects.values())

    def begin(self, path: str, kind: type[Any], reduce: Callable[[Any], V]) -> None:
        """Watch a collection, if it is not watched yet; `reduce` leaves what is needed of an object."""
        if path in self._watches or self._stop.is_set():
            return
        watch = self._watches[path] = Watch(Collection(path, kind), reduce, clock=self._clock)
        thread = threading.Thread(target=watch.run, args=(self._client, self._stop), name=f"watch {path}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self, timeout: float = 5.0) -> None:
        """End all watches."""
        self._stop.set()
        self._client.close()
        for thread in self._threads:
            thread.join(timeout)
