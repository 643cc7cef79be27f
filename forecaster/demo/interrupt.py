"""Ctrl-C: the first one stops the demo at once, the others must not disturb its cleaning up."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

Step = TypeVar("Step")


class Interrupt:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of the signal."""
        if not self.asked:
            self.asked = True
            raise KeyboardInterrupt

    def between(self, steps: Iterable[Step]) -> Iterator[Step]:
        """The steps, as long as nobody asked to stop.

        Python drops an exception that a signal raises inside a finalizer, so the wish is looked up again here.

        Raises:
            KeyboardInterrupt: somebody did.
        """
        for step in steps:
            if self.asked:
                raise KeyboardInterrupt
            yield step


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Ctrl-C as described above for the length of the block; main thread only."""
    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt.note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
