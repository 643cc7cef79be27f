from __future__ import annotations

import asyncio

import pytest

from forecaster.serving import review_cache
from forecaster.serving.review_cache import HoldTimes, ReviewCache, ReviewTurns, TooManyReviewsError

HOLD = HoldTimes(10.0, 4.0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Reviews:
    """Answers with how often it was asked; waits where it is told to."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.failing = self.denying = False
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, key: str) -> int:
        self.keys.append(key)
        await self.go.wait()
        if self.failing:
            raise OSError(key)
        return 0 if self.denying else len(self.keys)


def cache_of(reviews: Reviews, clock: Clock | None = None, open_max: int = 64) -> ReviewCache[str, int]:
    return ReviewCache(reviews, HOLD, ReviewTurns(64, open_max), clock or Clock())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_answer_is_reviewed_once_while_it_holds() -> None:
    async def story() -> None:
        clock, reviews = Clock(), Reviews()
        cache = cache_of(reviews, clock)
        assert [await cache.of("a", "eve"), await cache.of("a", "eve")] == [1, 1]
        clock.now = 10.1
        assert await cache.of("a", "eve") == 2

    asyncio.run(story())


def test_a_negative_answer_holds_for_its_own_time_and_is_not_renewed() -> None:
    async def story() -> None:
        clock, reviews = Clock(), Reviews()
        cache = cache_of(reviews, clock)
        reviews.denying = True
        await cache.of("a", "eve")
        clock.now = 3.9
        assert await cache.of("a", "eve") == 0
        await settle()
        assert reviews.keys == ["a"]
        reviews.denying, clock.now = False, 4.1
        assert await cache.of("a", "eve") == 2

    asyncio.run(story())


def test_an_answer_in_use_is_renewed_before_it_ends_and_no_request_waits() -> None:
    async def story() -> None:
        clock, reviews = Clock(), Reviews()
        cache = cache_of(reviews, clock)
        await cache.of("a", "eve")
        clock.now = 6.0
        reviews.go.clear()
        assert await cache.of("a", "eve") == 1
        reviews.go.set()
        await settle()
        assert await cache.of("a", "eve") == 2
        clock.now = 12.0
        assert await cache.of("a", "eve") == 2

    asyncio.run(story())


def test_many_requests_that_wait_for_one_answer_are_one_review() -> None:
    async def story() -> None:
        reviews = Reviews()
        cache = cache_of(reviews, open_max=1)
        assert set(await asyncio.gather(*[cache.of("a", "eve") for _ in range(50)])) == {1}
        assert reviews.keys == ["a"]

    asyncio.run(story())


def test_a_failure_is_the_answer_of_all_that_wait_and_not_kept() -> None:
    async def story() -> None:
        reviews = Reviews()
        cache = cache_of(reviews)
        reviews.failing = True
        answers = await asyncio.gather(*[cache.of("a", "eve") for _ in range(3)], return_exceptions=True)
        assert all(isinstance(answer, OSError) for answer in answers)
        reviews.failing = False
        assert await cache.of("a", "eve") == 2

    asyncio.run(story())


def test_invented_names_exhaust_the_budget_of_their_caller_only() -> None:
    async def story() -> None:
        reviews = Reviews()
        reviews.go.clear()
        cache = cache_of(reviews, open_max=2)
        waiting = [asyncio.create_task(cache.of(key, "eve")) for key in "ab"]
        await settle()
        with pytest.raises(TooManyReviewsError, match="2 reviews of eve"):
            await cache.of("c", "eve")
        waiting.append(asyncio.create_task(cache.of("c", "hpa")))
        await settle()
        reviews.go.set()
        assert len(await asyncio.gather(*waiting)) == 3
        assert await cache.of("d", "eve") == 4  # what has been answered is not open any more

    asyncio.run(story())


def test_callers_take_turns_however_many_reviews_one_of_them_has_open() -> None:
    async def story() -> None:
        reviews = Reviews()
        reviews.go.clear()
        cache = ReviewCache(reviews, HOLD, ReviewTurns(1, 64), Clock())
        callers = [("eve-1", "eve"), ("eve-2", "eve"), ("eve-3", "eve"), ("hpa", "hpa"), ("ann", "ann")]
        waiting = [asyncio.create_task(cache.of(*caller)) for caller in callers]
        await settle()
        reviews.go.set()
        await asyncio.gather(*waiting)
        assert reviews.keys == ["eve-1", "eve-2", "hpa", "ann", "eve-3"]

    asyncio.run(story())


def test_a_request_that_is_given_up_does_not_end_the_review_of_others() -> None:
    async def story() -> None:
        reviews = Reviews()
        reviews.go.clear()
        cache = cache_of(reviews)
        first, second = (asyncio.create_task(cache.of("a", "eve")) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        reviews.go.set()
        assert await second == 1

    asyncio.run(story())


def test_a_request_waits_for_its_review_no_longer_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_cache, "WAIT_SECONDS", 0.01)

    async def story() -> None:
        reviews = Reviews()
        reviews.go.clear()
        cache = cache_of(reviews)
        with pytest.raises(TimeoutError):
            await cache.of("a", "eve")
        reviews.go.set()
        assert await cache.of("a", "eve") == 1  # of the same review, which went on

    asyncio.run(story())
