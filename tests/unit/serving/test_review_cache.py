from __future__ import annotations

import asyncio

import pytest

from forecaster.serving import review_cache
from forecaster.serving.review_cache import ReviewCache, TooManyReviewsError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """Answers with how often it was asked; waits where it is told to."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.failing = False
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, key: str) -> int:
        self.keys.append(key)
        await self.go.wait()
        if self.failing:
            raise OSError(key)
        return len(self.keys)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_answer_is_asked_for_once_while_it_holds() -> None:
    async def story() -> None:
        clock, ask = Clock(), Asked()
        known = ReviewCache(ask, 10, clock)
        assert [await known.of("a"), await known.of("a")] == [1, 1]
        clock.now = 10.1
        assert await known.of("a") == 2

    asyncio.run(story())


def test_an_answer_in_use_is_renewed_before_it_ends_and_nobody_waits() -> None:
    async def story() -> None:
        clock, ask = Clock(), Asked()
        known = ReviewCache(ask, 10, clock)
        await known.of("a")
        clock.now = 6.0
        ask.go.clear()
        assert await known.of("a") == 1
        ask.go.set()
        await settle()
        assert await known.of("a") == 2
        clock.now = 12.0
        assert await known.of("a") == 2

    asyncio.run(story())


def test_many_who_wait_for_one_answer_ask_once() -> None:
    async def story() -> None:
        ask = Asked()
        known = ReviewCache(ask)
        assert set(await asyncio.gather(*[known.of("a") for _ in range(50)])) == {1}
        assert ask.keys == ["a"]

    asyncio.run(story())


def test_a_failure_is_told_to_all_who_wait_and_not_remembered() -> None:
    async def story() -> None:
        ask = Asked()
        known = ReviewCache(ask)
        ask.failing = True
        told = await asyncio.gather(*[known.of("a") for _ in range(3)], return_exceptions=True)
        assert all(isinstance(one, OSError) for one in told)
        ask.failing = False
        assert await known.of("a") == 2

    asyncio.run(story())


def test_invented_names_fill_a_queue_and_not_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_cache, "WAITING", 2)

    async def story() -> None:
        ask = Asked()
        ask.go.clear()
        known = ReviewCache(ask)
        waiting = [asyncio.create_task(known.of(key)) for key in "ab"]
        await settle()
        with pytest.raises(TooManyReviewsError):
            await known.of("c")
        ask.go.set()
        assert len(await asyncio.gather(*waiting)) == 2

    asyncio.run(story())


def test_who_hangs_up_does_not_end_the_question_of_others() -> None:
    async def story() -> None:
        ask = Asked()
        ask.go.clear()
        known = ReviewCache(ask)
        first, second = (asyncio.create_task(known.of("a")) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        ask.go.set()
        assert await second == 1

    asyncio.run(story())
