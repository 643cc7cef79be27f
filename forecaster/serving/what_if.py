"""What-if questions of dashboard readers, passed to a process that replays (docs/decisions/0020).

That process is started by the first question and ended when none has come for a while. One question is answered at a
time and one may wait; a reader that asks more often than a slider moves is refused, and the page asks again.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus

import msgspec

from forecaster.serving.rest import ProblemError

PROGRAM = (sys.executable, "-m", "forecaster.app.what_if")
ANSWER_SECONDS = 10.0
"""A process that takes longer than this is ended."""
FIRST_SECONDS = 40.0
"""Seconds for the first answer, which loads numpy and forecasts: 1.5 s of CPU that may be shared."""
IDLE_SECONDS = 120.0
"""Seconds without a question after which the process ends; it holds some 60 MB."""
LONGEST_ANSWER = 2**20
PER_SECOND, AT_ONCE = 25.0, 50.0
"""Questions of one caller, on average and in a burst: a page asks twenty times a second while a slider moves."""
MAX_CALLERS = 1000
MAX_PARAMETERS = 16
NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
NUMBER_PATTERN = re.compile(r"[+-]?[0-9.]{1,20}", re.ASCII)
FLAGS = {"true": True, "false": False}
REFUSED_PREFIX = b'{"refused":'


class CallerLimit:
    """Rate limit of each caller."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Questions left by caller, and when that was counted."""

    def allows(self, caller: str) -> bool:
        """Whether this caller may ask now; if so, count the question."""
        now = self._clock()
        left, at = self.left.pop(caller, (AT_ONCE, now))
        left = min(AT_ONCE, left + (now - at) * PER_SECOND)
        allowed = left >= 1.0
        self.left[caller] = (left - allowed, now)
        while len(self.left) > MAX_CALLERS:
            self.left.popitem(last=False)
        return allowed


class WhatIfProcess:
    """The process that replays, for as long as it is needed; `facts` is the socket of the computing one."""

    def __init__(self, facts: str, program: tuple[str, ...] = PROGRAM) -> None:
        self._command = (*program, facts)
        self.process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._idle: asyncio.TimerHandle | None = None
        self.limit = CallerLimit()

    async def ask(self, question: bytes, caller: str) -> bytes:
        """The answer to one line.

        Raises ProblemError: too many questions, no answer in time, or the answer is a refusal.
        """
        if not self.limit.allows(caller) or self._waiting > 1:
            raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "what-if is busy", "Ask again in a moment.")
        self._waiting += 1
        try:
            async with self._turn:
                answer = await self._answer(question)
        finally:
            self._waiting -= 1
        if answer.startswith(REFUSED_PREFIX):
            why = msgspec.json.decode(answer)["refused"]
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, why, "")
        return answer

    async def close(self) -> None:
        """End the process."""
        if self._idle:
            self._idle.cancel()
        process, self.process = self.process, None
        if process:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _answer(self, question: bytes) -> bytes:
        if self._idle:
            self._idle.cancel()
        if self.process and self.process.returncode is not None:
            self.process = None
        try:
            async with asyncio.timeout(ANSWER_SECONDS if self.process else FIRST_SECONDS):
                answer = await self._exchange(question)
        except (TimeoutError, OSError, ValueError) as error:
            await self.close()
            raise _away(getattr(error, "strerror", None) or "it did not answer in time") from error
        except asyncio.CancelledError:
            await self.close()  # its answer would be taken for that to the next question
            raise
        if not answer.endswith(b"\n"):
            await self.close()
            raise _away("it ended; the log of the serving process says why")
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end)
        return answer

    async def _exchange(self, question: bytes) -> bytes:
        process = self.process = self.process or await self._started()
        if process.stdin is None or process.stdout is None:
            raise OSError("it has no pipes")
        process.stdin.write(question + b"\n")
        await process.stdin.drain()
        return await process.stdout.readline()

    async def _started(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, limit=LONGEST_ANSWER)

    def _end(self) -> None:
        """End the process by closing its standard input."""
        process, self.process = self.process, None
        if process and process.stdin:
            process.stdin.close()


def _away(why: str) -> ProblemError:
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, f"the process that replays: {why}", "Try again.")


def changes_of(parameters: Mapping[str, str]) -> dict[str, float | bool]:
    """The changes that a query asks for; which of them there are, and within which range, the replay knows.

    Raises ProblemError where something is no name or no number.
    """
    if len(parameters) > MAX_PARAMETERS:
        raise _bad("too many settings")
    return {_name(name): _value(name, text) for name, text in parameters.items()}


def past_of(parameters: Mapping[str, str]) -> dict[str, object]:
    """The signal and the lead, in seconds, that are looked back at.

    Raises ProblemError where something is no name or no number.
    """
    return {"past": _name(parameters.get("signal", "")), "lead_seconds": _value("lead", parameters.get("lead", "0"))}


def _name(text: str) -> str:
    if not NAME_PATTERN.fullmatch(text):
        raise _bad(f"{text[:40]!r} is no setting")
    return text


def _value(name: str, text: str) -> float | bool:
    if text in FLAGS:
        return FLAGS[text]
    with suppress(ValueError):
        if NUMBER_PATTERN.fullmatch(text) and math.isfinite(number := float(text)):
            return number
    raise _bad(f"{name} is no number")


def _bad(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, detail, "Use e.g. ?quantile=0.9&tolerance=0.2.")
