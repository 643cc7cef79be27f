"""Remembered: answers that hold for some seconds, each asked for once however many wait for it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from cachetools import TTLCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
SECONDS = 10.0
"""As the Kubernetes servers themselves remember both what is allowed and what is not."""
RENEW_AFTER = 0.5
"""Share of that time after which an answer that is used again is asked for once more, while nobody waits."""
ENTRIES = 16384
WAITING = 256
"""Different questions under way at a time. Somebody who asks with invented names fills this, and not our memory."""


class TooManyReviewsError(Exception):
    """No more questions now."""


class ReviewCache(Generic[K, V]):
    """A question's answer by its key. Failures are not remembered."""

    def __init__(
        self, ask: Callable[[K], Awaitable[V]], seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._renew_after = seconds * RENEW_AFTER
        self._known: TTLCache[K, tuple[V, float]] = TTLCache(ENTRIES, seconds, clock)
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def of(self, key: K) -> V:
        """The answer, asked for if it is not known.

        Raises:
            TooManyError: too many others are being asked for.
        """
        known = self._known.get(key)
        if known is None:
            return await asyncio.shield(self._asked(key))
        answer, since = known
        if self._clock() - since > self._renew_after and len(self._under_way) < WAITING:
            self._asked(key)
        return answer

    def _asked(self, key: K) -> asyncio.Task[V]:
        """One question for all who wait. It goes on when the one who asked first has hung up."""
        found = self._under_way.get(key)
        if found is None:
            if len(self._under_way) >= WAITING:
                raise TooManyReviewsError
            found = self._under_way[key] = asyncio.create_task(self._answered(key))
            found.add_done_callback(lambda task: self._done(key, task))
        return found

    async def _answered(self, key: K) -> V:
        answer = await self._ask(key)
        self._known[key] = answer, self._clock()
        return answer

    def _done(self, key: K, task: asyncio.Task[V]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # seen by those who wait; nobody may be left
