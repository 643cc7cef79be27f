"""The order in which callers get reviews and handshakes: in turns."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from cachetools import TLRUCache

T = TypeVar("T")


class FairTurns(Generic[T]):
    """Items of callers, in turns: one of each caller before the second of any."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, caller: str, item: T) -> None:
        """Add an item, behind the others of its caller."""
        self._waiting.setdefault(caller, deque()).append(item)
        self._count += 1

    def take(self) -> T:
        """Remove and return the first item of the caller that is next in turn. Raises KeyError."""
        caller, items = self._waiting.popitem(last=False)
        item = items.popleft()
        if items:
            self._waiting[caller] = items
        self._count -= 1
        return item

    def drop(self) -> T:
        """The first item of the caller that has the most, which is taken out. Raises ValueError."""
        caller, items = max(self._waiting.items(), key=lambda waiting: len(waiting[1]))
        item = items.popleft()
        if not items:
            del self._waiting[caller]
        self._count -= 1
        return item


K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
ENTRIES = 16384
"""Answers kept; the least recently used one goes first."""
WAIT_SECONDS = 10.0
"""Time for which a request waits for its review, as in Kubernetes servers. The review continues for the next request.
"""
RENEW_AFTER = 0.5
"""Share of its time after which a positive answer that is used is reviewed anew, without a request that waits."""


class TooManyReviewsError(Exception):
    """The caller has as many reviews open as it may."""


class HoldTimes(NamedTuple):
    """Lifetime of an answer, in seconds."""

    positive: float
    """A user, or a right that is given."""
    negative: float


class ReviewTurns:
    """Limit reviews to `workers` at a time and `open_max` of one caller; waiting callers take turns.

    So the review of a caller waits for one of each other caller, and not for all that others have asked before.
    """

    def __init__(self, workers: int, open_max: int) -> None:
        self._idle = workers
        self._open_max = open_max
        self._open: Counter[str] = Counter()
        self._waiting: FairTurns[asyncio.Future[None]] = FairTurns()

    def begin(self, caller: str) -> None:
        """Count one more open review; `run` takes it back. Raises TooManyReviewsError."""
        if self._open[caller] >= self._open_max:
            raise TooManyReviewsError(f"{self._open_max} reviews of {caller} are open")
        self._open[caller] += 1

    async def run(self, caller: str, review: Callable[[], Awaitable[V]]) -> V:
        """The answer of a review that has begun, when it is its turn."""
        try:
            await self._turn(caller)
            try:
                return await review()
            finally:
                self._next()
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

    async def _turn(self, caller: str) -> None:
        if self._idle:
            self._idle -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add(caller, turn)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._idle += 1


class ReviewCache(Generic[K, V]):
    """A review's answer by its key. An answer that is false is negative. Failures are not kept."""

    def __init__(
        self,
        review: Callable[[K], Awaitable[V]],
        hold: HoldTimes,
        turns: ReviewTurns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._review = review
        self._hold = hold
        self._turns = turns
        self._clock = clock
        self._known: TLRUCache[K, tuple[V, float]] = TLRUCache(ENTRIES, self._until, clock)
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def of(self, key: K, caller: str) -> V:
        """The answer, reviewed at the expense of `caller` if it is not known.

        Raises:
            TooManyReviewsError: the caller has too many reviews open.
            TimeoutError: there is no answer yet.
        """
        known = self._known.get(key)
        if known is None:
            return await asyncio.wait_for(asyncio.shield(self._reviewed(key, caller)), WAIT_SECONDS)
        answer, since = known
        if answer and self._clock() - since > RENEW_AFTER * self._hold.positive:
            with suppress(TooManyReviewsError):  # then a later use renews it
                self._reviewed(key, caller)
        return answer

    def _reviewed(self, key: K, caller: str) -> asyncio.Task[V]:
        """One review for all requests that wait. It goes on when the first of them has been given up."""
        review = self._under_way.get(key)
        if review is None:
            self._turns.begin(caller)
            review = self._under_way[key] = asyncio.create_task(self._answered(key, caller))
            review.add_done_callback(lambda task: self._done(key, task))
        return review

    async def _answered(self, key: K, caller: str) -> V:
        answer = await self._turns.run(caller, lambda: self._review(key))
        self._known[key] = answer, self._clock()
        return answer

    def _done(self, key: K, task: asyncio.Task[V]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # taken note of: there may be no request left that waits

    def _until(self, _key: K, known: tuple[V, float], now: float) -> float:
        return now + (self._hold.positive if known[0] else self._hold.negative)
