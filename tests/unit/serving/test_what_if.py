"""Questions of readers on their way to the process that replays: limits, what it does not answer, its end."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from forecaster.serving.rest import ProblemError
from forecaster.serving.what_if import AT_ONCE, PER_SECOND, CallerLimit, WhatIfProcess, changes_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ECHO = "import sys\nfor line in sys.stdin: print(line.strip() + '!', flush=True)"
DEAD = "import sys; sys.stdin.readline()"
REFUSES = 'import sys\nfor line in sys.stdin: print(\'{"refused":"no HPA"}\', flush=True)'


def run_story(program: str, story: Callable[[WhatIfProcess], Awaitable[None]]) -> None:
    async def play() -> None:
        process = WhatIfProcess("socket", (sys.executable, "-c", program))
        try:
            await story(process)
        finally:
            await process.close()

    asyncio.run(play())


def test_questions_are_answered_one_after_the_other_by_one_process() -> None:
    async def story(process: WhatIfProcess) -> None:
        assert await process.ask(b"one", "me") == b"one!\n"
        first = process.process
        assert await asyncio.gather(process.ask(b"two", "me"), process.ask(b"three", "me")) == [b"two!\n", b"three!\n"]
        assert process.process is first

    run_story(ECHO, story)


def test_one_may_wait_and_a_third_is_refused() -> None:
    async def story(process: WhatIfProcess) -> None:
        answers = await asyncio.gather(*(process.ask(b"x", "me") for _ in range(3)), return_exceptions=True)
        assert answers[:2] == [b"x!\n"] * 2
        assert isinstance(answers[2], ProblemError)
        assert answers[2].problem.status == 429

    run_story(ECHO, story)


def test_a_process_that_was_killed_between_two_questions_is_started_anew() -> None:
    async def story(process: WhatIfProcess) -> None:
        await process.ask(b"one", "me")
        assert process.process is not None
        process.process.kill()
        await process.process.wait()
        assert await process.ask(b"two", "me") == b"two!\n"

    run_story(ECHO, story)


def test_a_process_that_cannot_be_started_is_not_called_slow() -> None:
    async def story() -> None:
        with pytest.raises(ProblemError, match="the process that replays: No such file or directory"):
            await WhatIfProcess("socket", ("/nowhere/python",)).ask(b"x", "me")

    asyncio.run(story())


def test_a_process_that_ends_is_told_and_started_anew() -> None:
    async def story(process: WhatIfProcess) -> None:
        for _ in range(2):
            with pytest.raises(ProblemError, match="ended"):
                await process.ask(b"x", "me")
            assert process.process is None

    run_story(DEAD, story)


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that loads what it needs has more time than a process that has answered."""
    monkeypatch.setattr("forecaster.serving.what_if.ANSWER_SECONDS", 0.05)

    async def story(process: WhatIfProcess) -> None:
        assert await process.ask(b"x", "me") == b"x\n"
        with pytest.raises(ProblemError, match="in time"):
            await process.ask(b"x", "me")
        assert process.process is None
        monkeypatch.setattr("forecaster.serving.what_if.FIRST_SECONDS", 0.05)
        with pytest.raises(ProblemError, match="in time"):
            await process.ask(b"x", "me")

    run_story(
        "import sys, time; time.sleep(0.1); print(sys.stdin.readline(), end='', flush=True); sys.stdin.read()", story
    )


def test_a_reader_who_leaves_takes_no_answer_from_the_next() -> None:
    async def story(process: WhatIfProcess) -> None:
        await process.ask(b"warm", "me")
        left = asyncio.create_task(process.ask(b"left", "me"))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        assert await process.ask(b"next", "me") == b"next!\n"

    run_story(ECHO, story)


def test_it_ends_when_nobody_asks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecaster.serving.what_if.IDLE_SECONDS", 0.0)

    async def story(process: WhatIfProcess) -> None:
        await process.ask(b"x", "me")
        child = process.process
        assert child is not None
        assert await child.wait() == 0
        assert process.process is None

    run_story(ECHO, story)


def test_a_refusal_is_a_problem() -> None:
    async def story(process: WhatIfProcess) -> None:
        with pytest.raises(ProblemError, match="no HPA") as refused:
            await process.ask(b"x", "me")
        assert refused.value.problem.status == 422

    run_story(REFUSES, story)


def test_each_caller_has_a_limit_of_its_own() -> None:
    now = 0.0
    limit = CallerLimit(lambda: now)
    assert [limit.allows("me") for _ in range(int(AT_ONCE) + 1)] == [True] * int(AT_ONCE) + [False]
    assert limit.allows("you")
    now = 1.0
    assert sum(limit.allows("me") for _ in range(int(AT_ONCE))) == PER_SECOND


def test_callers_are_forgotten() -> None:
    limit = CallerLimit(lambda: 0.0)
    for caller in range(5000):
        limit.allows(str(caller))
    assert len(limit.left) == 1000


def test_numbers_and_flags_are_changes() -> None:
    assert changes_of({"quantile": "0.9", "gate": "false"}) == {"quantile": 0.9, "gate": False}


@pytest.mark.parametrize(
    "query", [{"quantile": "nan"}, {"quantile": "1e9"}, {"quantile": ""}, {"Quan": "1"}, {"x" * 50: "1"}, {"a": "."}]
)
def test_what_is_no_number_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(ProblemError) as refused:
        changes_of(query)
    assert refused.value.problem.status == 400
