"""The command line. Commands import what they need when they run, so that `--help` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster import __version__
from forecaster.cli import (
    backtest,
    catalogue,
    certificates,
    demo,
    doctor,
    explain,
    hpa,
    nodes,
    once,
    outcome,
    recommend,
    replay,
    run,
    settings,
    tune,
)

app = typer.Typer(
    name="forecaster",
    help="Predictive autoscaler for Kubernetes: what each workload will need, how many replicas and which requests "
    "that takes, and why. Reads Prometheus, touches nothing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("once")(once.once)
app.command("run")(run.run)
app.command("explain")(explain.explain)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("recommend")(recommend.recommend)
app.command("nodes")(nodes.nodes)
app.command("replay")(replay.replay)
app.command("tune")(tune.tune)
app.command("outcome")(outcome.outcome)
app.command("models")(catalogue.models)
app.command("settings")(settings.settings)
app.command("certificates")(certificates.certificates)
app.add_typer(backtest.app, name="backtest")
app.add_typer(hpa.app, name="hpa")


def _print_version(asked: bool) -> None:  # noqa: FBT001  typer's callback
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say it.")] = False,
) -> None:
    """Say the version, or run a command."""
