"""The demo from beginning to end, as lists of steps."""

from __future__ import annotations

from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from forecaster.app.demo import on_dashboard, play, setups_of, staged
from forecaster.app.demo_comparison import compare, curves
from forecaster.report.demo_screen import interruptible, watch
from forecaster.report.demo_summary import print_summary
from forecaster.report.demo_view import demo_view
from forecaster.report.formats import Output
from forecaster.report.printed import print_json, print_yaml
from forecaster.report.recommendations import print_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forecaster.app.demo import Moment, Setups, Stage
    from forecaster.app.demo_comparison import FloorComparison
    from forecaster.cycle.run import Outcome
    from forecaster.domain.workload import WorkloadId
    from forecaster.report.demo_screen import Interrupt

PLAYED = timedelta(hours=12)
"""720 cycles: a night and a morning, and short enough to wait for."""


def show_one_cycle(output: Output = Output.TABLE) -> None:
    """What `forecaster once` would print if the recorded load were a cluster."""
    with interruptible(), staged() as stage:
        outcome = stage.cycle.run(stage.begin)
    _print_recommendations(outcome, output)


def show_play(output: Output = Output.TABLE, *, length: timedelta = PLAYED) -> None:
    """Play, compare, print. For machines the play goes to standard error, so that the answer stays alone."""
    people = output in {Output.TABLE, Output.WIDE}
    console = Console(stderr=not people)
    with interruptible() as interrupt, staged() as stage:
        last, setups, left_out, compared = _played(stage, console, interrupt, length)
    if output in {Output.JSON, Output.YAML}:
        view = demo_view(stage.begin, last, setups, compared, left_out)
        (print_json if output is Output.JSON else print_yaml)(view)
        return
    _print_recommendations(last.outcome, output)
    if people:
        print_summary(console, compared, left_out, length)
        console.print("These hours as pictures in a browser: [bold]./dev demo --serve[/bold]", highlight=False)


def show_dashboard(
    port: int, *, length: timedelta = PLAYED, stay: Callable[[], object] = lambda: Event().wait()
) -> None:
    """Play with the dashboard open, compare, print, and leave the dashboard open as long as `stay` lasts.

    Raises:
        StoreError: nothing can listen on that port.
    """
    console = Console()
    with interruptible() as interrupt, staged() as stage, on_dashboard(stage, port) as address:
        console.print(f"The dashboard of these hours: [bold]{address}[/bold]", highlight=False)
        played = _played(stage, console, interrupt, length)
        print_summary(console, played.compared, played.left_out, length)
        console.print(f"Played. It stays at [bold]{address}[/bold] until Ctrl-C.", highlight=False)
        stay()


class _Played(NamedTuple):
    """What the play ended with, and the comparison with the plain HPA."""

    last: Moment
    setups: Setups
    left_out: Mapping[WorkloadId, str]
    compared: Mapping[WorkloadId, FloorComparison]


def _played(stage: Stage, console: Console, interrupt: Interrupt, length: timedelta) -> _Played:
    setups, left_out = setups_of(stage)
    last = watch(interrupt.between(play(stage, setups, length)), stage.begin, length, console)
    console.print("Now the plain HPA with other targets, for a comparison at equal cost.", style="dim")
    return _Played(last, setups, left_out, compare(last, interrupt.between(curves(stage, setups, length))))


def _print_recommendations(outcome: Outcome, output: Output) -> None:
    print_outcome(outcome, {one.id for one in outcome.recommendations}, output)
