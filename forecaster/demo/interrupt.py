"""Ctrl-C ends the demo between two steps, so that no step leaves half a terminal behind."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

Step = TypeVar("Step")


class Interrupt:
    """Remembers the first Ctrl-C; the second one does not wait."""

    def __init__(self) -> None:
        self.asked = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
        if self.asked:
            signal.default_int_handler(number, frame)
        self.asked = True

    def between(self, steps: Iterable[Step]) -> Iterator[Step]:
        """The steps, until somebody asked to stop.

        Raises:
            KeyboardInterrupt: somebody did.
        """
        for step in steps:
            if self.asked:
                raise KeyboardInterrupt
            yield step


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within the block Ctrl-C is only noted, and raised at its end at the latest.

    Raises:
        KeyboardInterrupt: somebody asked to stop.
    """
    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt.note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupt.asked:
        raise KeyboardInterrupt
