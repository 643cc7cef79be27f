"""`forecaster replay`: what would have happened on recorded, exported or measured demand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecaster.cli.options import ConfigFile, Namespaces, Pattern, PrometheusUrl
from forecaster.cli.replay_options import (
    Cache,
    Every,
    Export,
    FromPrometheus,
    Hpas,
    MetricsDelay,
    NoCache,
    PodCapacity,
    Request,
    StartUps,
    Sync,
    Until,
)

Length = Annotated[str, typer.Option("--length", metavar="DURATION", help="How much is replayed, up to the end.")]
CoreHour = Annotated[float | None, typer.Option("--core-hour", min=0, help="Price of a core for an hour, for money.")]
GibHour = Annotated[float | None, typer.Option("--gib-hour", min=0, help="Price of a GiB for an hour, for money.")]
TapeFile = Annotated[
    Path | None,
    typer.Option(
        "--tape", metavar="FILE", exists=True, dir_okay=False, help="A tape of the service (setting state.tape)."
    ),
]


def replay(
    workload: Pattern = "*",
    export: Export = None,
    from_prometheus: FromPrometheus = False,
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    namespaces: Namespaces = None,
    hpa: Hpas = None,
    request: Request = None,
    pod_capacity: PodCapacity = None,
    length: Length = "1d",
    until: Until = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="NAME", help="Also with this model; may be repeated.")
    ] = None,
    learned: Annotated[bool, typer.Option("--learned", help="Also with the learned policies.")] = False,
    start_up: StartUps = None,
    metrics_delay: MetricsDelay = "0s",
    sync: Sync = "15s",
    every: Every = 1,
    core_hour: CoreHour = None,
    gib_hour: GibHour = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    tape: TapeFile = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="OUT", dir_okay=False, help="All of it, for machines; - prints it."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT", dir_okay=False, help="A page with pictures.")
    ] = None,
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

    from forecaster.cli.options import settings_of
    from forecaster.cli.replay_inputs import Options, inputs_of
    from forecaster.cli.replay_outputs import write_outcome
    from forecaster.compose import prepare_process
    from forecaster.learning.policy import shipped
    from forecaster.replay import compare, line_up

    settings = settings_of(config, prometheus, namespaces)
    inputs = inputs_of(
        Options(
            settings,
            workload,
            export,
            from_prometheus,
            hpa or [],
            request or [],
            pod_capacity,
            length,
            until,
            start_up or [],
            metrics_delay,
            sync,
            every,
            core_hour,
            gib_hour,
            cache,
            caching=not no_cache,
        )
    )
    prepare_process()
    outcome = compare(
        inputs.traces,
        inputs.policies,
        line_up(settings.forecast.model, model or [], learned=shipped() if learned else None, gated=True),
        begin=inputs.begin,
        until=inputs.until,
        terms=inputs.terms,
        foresee=inputs.foresee,
        seconds=time.perf_counter,
    )
    write_outcome(outcome, inputs.terms, inputs.traces.origin, json, html)
    if not outcome.workloads:
        raise typer.Exit(1)


def play_tape(path: Path) -> None:
    """Play the service's own cycles again and say whether every decision is the same to the last digit."""
    from forecaster.retell import retell

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
