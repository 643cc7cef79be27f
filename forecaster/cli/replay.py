"""`forecaster replay`: what would have happened on recorded, exported or measured demand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecaster.cli.options import grouped
from forecaster.cli.replay_options import PricedOptions

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
    Path | None, typer.Option("--json", metavar="OUT", dir_okay=False, help="All of it, for machines; - prints it.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="OUT", dir_okay=False, help="A page with pictures.")]


@grouped
def replay(
    given: PricedOptions,
    model: Models = None,
    learned: Learned = False,
    tape: TapeFile = None,
    json: Json = None,
    html: Html = None,
) -> None:
    """Replay demand under today's HPA, seasonal naive, our policy and perfect foresight: shortage, pod-hours, frontier.

    Without --export and --from-prometheus the load that comes with the package is replayed. Policies are those of
    --config; with --json - nothing else is printed. With --tape the service's own cycles are played again, and every
    decision is compared with the one that was made.
    """
    if tape is not None:
        play_tape(tape)
        return
    import time

    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of, known_models
    from forecaster.cli.replay_outputs import write_outcome
    from forecaster.horizontal.learned import shipped
    from forecaster.replay import compare, strategies_with

    inputs = inputs_of(given)
    known_models(model or [])
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
    )
    write_outcome(outcome, inputs.assumed, inputs.traces.origin, json, html)
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
