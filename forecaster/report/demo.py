"""The demo from beginning to end, as lists of steps."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from itertools import takewhile
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from forecaster.app.demo import (
    DEMO_HISTORY,
    PlayedMinute,
    Stage,
    compared,
    floors_of,
    on_dashboard,
    play,
    setups_of,
    staged,
)
from forecaster.domain.decision import Reason
from forecaster.domain.window import HOUR, MINUTE
from forecaster.publish.views import RecommendationView, recommendation_view
from forecaster.replay.account import total
from forecaster.replay.comparison import BENEFIT_MEANS, Comparison
from forecaster.replay.realised import DecidedCount
from forecaster.report.comparison import EACH, left_out_lines, sentences, workload_columns
from forecaster.report.comparison_view import ComparisonView, comparison_view
from forecaster.report.formats import Output
from forecaster.report.printed import print_json, print_table, print_text, print_yaml
from forecaster.report.progress import shown_progress
from forecaster.report.recommendations import print_outcome, table_of

if TYPE_CHECKING:
    from types import FrameType

    from forecaster.app.demo import Simulated
    from forecaster.cycle.run import Outcome
    from forecaster.domain.workload import WorkloadId

    Decisions = dict[WorkloadId, list[DecidedCount]]

PLAYED = timedelta(hours=12)
"""720 cycles: a night and a morning, and short enough to wait for."""


class DemoView(msgspec.Struct, frozen=True):
    """The last recommendations in the form of `once`, and the outcome; null of one cycle alone (`--once`)."""

    recommendations: list[RecommendationView]
    outcome: ComparisonView | None = None


def show_one_cycle(output: Output = Output.TABLE) -> None:
    """Print the output of `forecaster once` for the recorded load."""
    with interruptible(), shown_progress("demo") as shown, staged() as stage:
        stage.cycle.watch = shown
        outcome = stage.cycle.run(stage.begin)
    _print_recommendations(outcome, output)


def show_play(output: Output = Output.TABLE, *, length: timedelta = PLAYED) -> None:
    """Play, compare, print. For machines the play goes to standard error, so that the answer stays alone."""
    people = output in {Output.TABLE, Output.WIDE}
    console = Console(stderr=not people)
    with interruptible() as interrupt, staged() as stage:
        played = _played(stage, console, interrupt, length)
    if output in {Output.JSON, Output.YAML}:
        (print_json if output is Output.JSON else print_yaml)(demo_view(*played))
        return
    _print_recommendations(played.last.outcome, output)
    if people:
        print_played(played.compared)
        console.print("These hours as pictures in a browser: [bold]./dev demo --serve[/bold]", highlight=False)


AS_MEASURED = (
    "It compares the hours that are over by what Prometheus measured: a rate over two minutes, whose peaks are lower "
    "than those of the play, so both sides are short less."
)
"""Reason why the dashboard's figures differ from the outcome of the play."""


def show_dashboard(
    port: int, *, length: timedelta = PLAYED, stay: Callable[[], object] = lambda: Event().wait()
) -> None:
    """Play with the dashboard open, compare, print, and leave the dashboard open as long as `stay` lasts.

    Raises StoreError where nothing can listen on that port.
    """
    console = Console()
    with interruptible() as interrupt, staged() as stage, on_dashboard(stage, port) as address:
        console.print(f"The dashboard of these hours: [bold]{address}[/bold]", highlight=False)
        print_played(_played(stage, console, interrupt, length).compared)
        console.print(f"Played. It stays at [bold]{address}[/bold] until Ctrl-C.", highlight=False)
        console.print(AS_MEASURED, style="dim", highlight=False)
        stay()


class _Played(NamedTuple):
    """End of the play, and the comparison with the plain HPA."""

    last: PlayedMinute
    compared: Comparison


def _played(stage: Stage, console: Console, interrupt: Interrupt, length: timedelta) -> _Played:
    setups, _ = setups_of(stage)
    decisions: Decisions = defaultdict(list)
    moments = noted(interrupt.between(play(stage, setups, length)), decisions)
    last = watch(moments, stage.begin, length, console)
    console.print("Now the plain HPA with other targets, for a comparison at equal cost.", style="dim")
    return _Played(last, compared(stage, decisions, last.now))


def noted(moments: Iterable[PlayedMinute], decisions: Decisions) -> Iterator[PlayedMinute]:
    """Note down each count that is decided, on its way to the screen."""
    for moment in moments:
        for id_, replicas in floors_of(moment.outcome.recommendations).items():
            decisions[id_].append(DecidedCount(moment.now - MINUTE, replicas))
        yield moment


def demo_view(last: PlayedMinute, whole: Comparison) -> DemoView:
    """Return the result of the demo as one document."""
    rows = sorted(last.outcome.recommendations, key=lambda row: row.id)
    return DemoView([recommendation_view(row) for row in rows], comparison_view(whole, tracks=False))


def _print_recommendations(outcome: Outcome, output: Output) -> None:
    print_outcome(outcome, {row.id for row in outcome.recommendations}, output)


ORIGIN = "The load is real (Crane, NASA-HTTP, Numenta NAB, Bitbrains), the cluster around it is made up: docs/demo.md."


def print_played(whole: Comparison) -> None:
    """Print the outcome after the play: the table, the sentences, what they leave out, and what to do next."""
    start_up = f"{whole.assumed.start_ups[0] / MINUTE:.0f} min"
    print_text("", f"Outcome of {(whole.until - whole.begin) / HOUR:g} h", style="bold")
    print_text(EACH)
    print_table(workload_columns(whole))
    print_text("", *sentences(whole), "")
    print_text(
        f"Unserved demand is above what the ready pods carry; minutes short have any. A pod carries its CPU request, "
        f"costs from when it is asked for, and serves {start_up} later. With forecaster: the recommended count is the "
        "HPA's floor.",
        BENEFIT_MEANS,
        *left_out_lines(whole.left_out),
        ORIGIN,
    )
    print_text("", "On your own cluster: forecaster once --prometheus http://ADDRESS:9090", style="bold")


# The play on a terminal: a table that lives; where it cannot, a line now and then.


FRAME = timedelta(minutes=5)
"""Virtual time between two pictures: about ten a second."""


def watch(moments: Iterable[PlayedMinute], begin: datetime, length: timedelta, console: Console) -> PlayedMinute:
    """Show all moments; returns the last one. Whatever ends the play, the cursor is visible afterwards."""
    headline = (
        f"{length / HOUR:g} h of recorded load from {begin:%a %d %b %Y %H:%M} UTC on, after {DEMO_HISTORY.days} days "
        "of history; the service reads both from an embedded Prometheus."
    )
    console.print(headline, highlight=False, soft_wrap=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return _live(moments, begin, length, console)
    return _lines(moments, begin, length, console)


def _live(moments: Iterable[PlayedMinute], begin: datetime, length: timedelta, console: Console) -> PlayedMinute:
    last = None
    try:
        with Live(console=console, auto_refresh=False) as live:
            for last in moments:
                if not (last.now - begin - MINUTE) % FRAME:
                    live.update(frame(last, begin, length, console), refresh=True)
            live.transient = True  # Ctrl-C leaves the last picture; at the end the tables that follow replace it
    finally:
        console.show_cursor(show=True)  # also when Ctrl-C came before `with` or amid its end
    return _ended(last)


def _lines(moments: Iterable[PlayedMinute], begin: datetime, length: timedelta, console: Console) -> PlayedMinute:
    last = None
    for last in moments:
        if not (last.now - begin) % HOUR:
            console.print(f"{_clock(last, begin, length)}: {'; '.join(_so_far(last))}", soft_wrap=True, highlight=False)
    return _ended(last)


def _ended(last: PlayedMinute | None) -> PlayedMinute:
    if last is None:
        raise ValueError("nothing was played: the length is less than a minute")
    return last


def frame(moment: PlayedMinute, begin: datetime, length: timedelta, console: Console) -> RenderableType:
    """One picture: clock and progress, the recommendations, the accounts so far."""
    head = Table.grid(padding=(0, 2))
    head.add_row(
        Text(_clock(moment, begin, length), style="bold"),
        ProgressBar(total=length / HOUR, completed=(moment.now - begin) / HOUR, width=20),
        Text("Ctrl-C ends it", style="dim"),
    )
    table = table_of(sorted(moment.outcome.recommendations, key=lambda row: row.id), console.width)
    return Group(head, "", table, "", *_so_far(moment))


def _clock(moment: PlayedMinute, begin: datetime, length: timedelta) -> str:
    return f"{moment.now:%a %d %b %Y %H:%M} UTC, {round((moment.now - begin) / HOUR, 1):g} of {length / HOUR:g} h"


def _so_far(moment: PlayedMinute) -> tuple[str, str]:
    raised = sum(row.replicas.reason is Reason.FORECAST for row in moment.outcome.recommendations)
    return (
        f"plain HPA {_spent(moment.plain)}",
        f"recommended floor {_spent(moment.floored)}, {raised} raised by the forecast now",
    )


def _spent(simulated: Simulated) -> str:
    account = total(run.account for run in simulated.values())
    return f"{account.pod_hours:.0f} pod-hours, {account.short_minutes:.0f} min short"


# Ctrl-C and its like: the first one stops the demo, the others must not disturb its cleaning up.


Step = TypeVar("Step")


class Interrupt:
    """Whether a stop was requested."""

    def __init__(self) -> None:
        self.asked, self._deferred = 0, False

    def note(self, number: int, _frame: FrameType | None) -> None:
        """The handler of the signals."""
        first, self.asked = not self.asked, self.asked or number
        if first and not self._deferred:
            self._end()

    def between(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps until a stop is requested, then end; the running step ends first.

        An exception out of a signal handler may leave a library's lock locked, for ever where a finalizer drops it.
        """
        self._deferred = True
        try:
            yield from takewhile(lambda _: not self.asked, steps)
        finally:
            self._deferred = False
        if self.asked:
            self._end()

    def _end(self) -> NoReturn:
        if self.asked == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.asked)


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Ctrl-C, SIGTERM and a closed terminal as described above for the length of the block; main thread only."""
    interrupt = Interrupt()
    with ExitStack() as restored:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = signal.getsignal(number)
            if number != signal.SIGHUP or before is not signal.SIG_IGN:  # nohup ignores it on purpose
                restored.callback(signal.signal, number, before)
                signal.signal(number, interrupt.note)
        yield interrupt
