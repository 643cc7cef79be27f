"""`forecaster replay`: what would have happened on recorded, exported or measured demand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecaster.cli.options import OutputForm, finished, grouped
from forecaster.cli.replay_options import PricedOptions
from forecaster.report.formats import Output

Models = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME", help="Also with this model; may be repeated.")
]
Learned = Annotated[bool, typer.Option("--learned", help="Also with the learned policies.")]
TapeFile = Annotated[
    Path | None,
    typer.Option(
        "--tape", metavar="FILE", exists=True, dir_okay=False, help="A tape of the service (setting state.tape)."
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", dir_okay=False, help="Write all of it there, for machines.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="OUT", dir_okay=False, help="Write a page with pictures there.")
]


@grouped
def replay(
    given: PricedOptions,
    model: Models = None,
    learned: Learned = False,
    tape: TapeFile = None,
    output: OutputForm = Output.TABLE,
    json: Json = None,
    html: Html = None,
) -> None:
    """Replay demand under today's HPA, seasonal naive, our policy and perfect foresight: shortage, pod-hours, frontier.

    Without --export and --from-prometheus the load that comes with the package is replayed. Policies are those of
    --config. With --tape the service's own cycles are played again, and every decision is compared with the one that
    was made.
    """
    if tape is not None:
        play_tape(tape)
        return
    import time

    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of, known_models
    from forecaster.cli.streams import check_writable, write_file
    from forecaster.replay.compare import compare
    from forecaster.replay.learned import shipped
    from forecaster.replay.strategies import strategies_with
    from forecaster.report.comparison_page import page
    from forecaster.report.comparison_view import comparison_view, print_comparison
    from forecaster.report.printed import json_text
    from forecaster.report.progress import shown_progress

    check_writable(json, html)
    known_models(model or [])
    with shown_progress("replay") as shown:
        shown.began("history", 0.0)
        inputs = inputs_of(given)
        prepare_process()
        outcome = compare(
            inputs.traces,
            inputs.policies,
            strategies_with(
                inputs.settings.forecast.model, model or [], learned=shipped() if learned else None, gated=True
            ),
            begin=inputs.begin,
            until=inputs.until,
            assumed=inputs.assumed,
            forecasting=inputs.forecasting,
            seconds=time.perf_counter,
            watch=shown,
        )
    if json is not None:
        write_file(json, json_text(comparison_view(outcome)))
    if html is not None:
        write_file(html, page(outcome))
    print_comparison(outcome, output)
    finished(shown)
    if not outcome.workloads:
        raise typer.Exit(1)


def play_tape(path: Path) -> None:
    """Play the service's own cycles again and say whether every decision is the same to the last digit."""
    from forecaster.app.tape_replay import retell

    cycles = decisions = 0
    other: list[str] = []
    for told in retell(path):
        cycles, decisions = cycles + 1, decisions + len(told.outcome.recommendations)
        other += [f"{told.at:%Y-%m-%d %H:%M} UTC: {name}" for name in told.differences()]
    typer.echo(f"{cycles} cycles with {decisions} decisions played again; {len(other)} of them are not the same.")
    for line in other[:20]:
        typer.echo(f"  {line}")
    if other:
        raise typer.Exit(1)
