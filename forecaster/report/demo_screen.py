"""The play on a terminal: a table that lives; where it cannot, a line now and then."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from forecaster.app.demo import DEMO_HISTORY, Moment
from forecaster.domain.decision import Reason
from forecaster.domain.window import HOUR, MINUTE
from forecaster.replay.account import total
from forecaster.report.recommendations import table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from forecaster.app.demo import Simulated


FRAME = timedelta(minutes=5)
"""Virtual time between two pictures: about ten a second."""


def watch(moments: Iterable[Moment], begin: datetime, length: timedelta, console: Console) -> Moment:
    """Show all moments; returns the last one. Whatever ends the play, the cursor is visible afterwards."""
    console.print(_headline(begin, length), highlight=False, soft_wrap=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return _live(moments, begin, length, console)
    return _lines(moments, begin, length, console)


def _headline(begin: datetime, length: timedelta) -> str:
    return (
        f"{length / HOUR:g} h of recorded load from {begin:%a %d %b %Y %H:%M} UTC on, after {DEMO_HISTORY.days} days "
        "of history; the service reads both from an embedded Prometheus."
    )


def _live(moments: Iterable[Moment], begin: datetime, length: timedelta, console: Console) -> Moment:
    last = None
    try:
        with Live(console=console, auto_refresh=False) as live:
            for last in moments:
                if not (last.now - begin - MINUTE) % FRAME:
                    live.update(frame(last, begin, length, console), refresh=True)
            live.transient = True  # Ctrl-C leaves the last picture; at the end the tables that follow replace it
    finally:
        console.show_cursor(show=True)  # also when Ctrl-C came before `with` or amid its end
    return _played(last)


def _lines(moments: Iterable[Moment], begin: datetime, length: timedelta, console: Console) -> Moment:
    last = None
    for last in moments:
        if not (last.now - begin) % HOUR:
            console.print(f"{_clock(last, begin, length)}: {'; '.join(_so_far(last))}", soft_wrap=True, highlight=False)
    return _played(last)


def _played(last: Moment | None) -> Moment:
    if last is None:
        raise ValueError("nothing was played: the length is less than a minute")
    return last


def frame(moment: Moment, begin: datetime, length: timedelta, console: Console) -> RenderableType:
    """One picture: clock and progress, the recommendations, the accounts so far."""
    head = Table.grid(padding=(0, 2))
    head.add_row(
        Text(_clock(moment, begin, length), style="bold"),
        ProgressBar(total=length / HOUR, completed=(moment.now - begin) / HOUR, width=20),
        Text("Ctrl-C ends it", style="dim"),
    )
    table = table_of(sorted(moment.outcome.recommendations, key=lambda one: one.id), console.width)
    return Group(head, "", table, "", *_so_far(moment))


def _clock(moment: Moment, begin: datetime, length: timedelta) -> str:
    return f"{moment.now:%a %d %b %Y %H:%M} UTC, {round((moment.now - begin) / HOUR, 1):g} of {length / HOUR:g} h"


def _so_far(moment: Moment) -> tuple[str, str]:
    raised = sum(one.replicas.reason is Reason.FORECAST for one in moment.outcome.recommendations)
    return (
        f"plain HPA {_spent(moment.plain)}",
        f"recommended floor {_spent(moment.floored)}, {raised} raised by the forecast now",
    )


def _spent(simulated: Simulated) -> str:
    account = total(one.account for one in simulated.values())
    return f"{account.pod_hours:.0f} pod-hours, {account.short_minutes:.0f} min short"


# Ctrl-C: the first one stops the demo at once, the others must not disturb its cleaning up.


Step = TypeVar("Step")


class Interrupt:
    """Whether a stop was asked for."""

    def __init__(self) -> None:
        self.asked = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of the signal."""
        if not self.asked:
            self.asked = True
            raise KeyboardInterrupt

    def between(self, steps: Iterable[Step]) -> Iterator[Step]:
        """The steps, until a stop is asked for.

        Python drops an exception that a signal raises inside a finalizer, so the wish is looked up again here.

        Raises:
            KeyboardInterrupt: it was.
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
