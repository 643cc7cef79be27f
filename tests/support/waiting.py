"""Waiting for another process: asked again and again, within a stated time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE = 0.1


def wait_until(happened: Callable[[], bool], *, timeout: float, what: str) -> None:
    until = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < until, f"{what} did not come within {timeout} s"
        time.sleep(PAUSE)
