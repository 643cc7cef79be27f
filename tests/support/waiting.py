"""Waiting for another process: asked again and again, until it has happened."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 240.0
"""Seconds after which something will not come any more, also on a machine whose two cores belong to others."""
PAUSE = 0.1


def wait_until(happened: Callable[[], bool], *, goal: str, timeout: float = PATIENCE) -> None:
    """Wait at no more cost than the thing itself; the limit only ends a test that would wait for ever."""
    until = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < until, f"{goal} did not come within {timeout:g} s"
        time.sleep(PAUSE)


def end(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> None:
    """Ask it to end; one that does not listen is killed."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
