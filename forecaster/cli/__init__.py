"""The command line. Commands import what they need when they run, so that `--help` answers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_CODES = """\b
Exit codes:
  0    done
  1    refused, not found or not well: a message says what
       (doctor: a check is BAD; tune: no proposal; replay: nothing to replay)
  2    the command line itself is wrong
  130  Ctrl-C: what was known until then is printed
  141  the reader of standard output has gone"""

app = typer.Typer(
    name="forecaster",
    help="Predictive autoscaler for Kubernetes: what each workload will need, how many replicas and which requests "
    "that takes, and why. Reads Prometheus; touches nothing but the floors of workloads whose policy says so.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AT = "--prometheus http://prometheus:9090"
COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "once": (
        once.once,
        (f"once {AT}", f"once {AT} -n shop -o wide", f"once {AT} shop/checkout -o json"),
    ),
    "run": (run.run, (f"run {AT}", "run --config /etc/forecaster")),
    "explain": (
        explain.explain,
        (f"explain {AT} shop/checkout", f"explain {AT} shop/checkout --set quantile=0.95 --set lead_time=5m"),
    ),
    "doctor": (doctor.doctor, (f"doctor {AT}", "doctor --config settings.yaml")),
    "demo": (demo.demo, ("demo", "demo --once -o json")),
    "recommend": (
        recommend.recommend,
        (
            f"recommend {AT} 'shop/*' --price-core-hour 0.03 --price-gib-hour 0.004",
            f"recommend {AT} --severity WARNING -o patches | kubectl diff -f -",
        ),
    ),
    "nodes": (nodes.nodes, (f"nodes {AT}", f"nodes {AT} --quantile 0.9 -o json")),
    "replay": (
        replay.replay,
        ("replay", f"replay 'shop/*' --from-prometheus {AT} --length 14d --html replay.html"),
    ),
    "tune": (tune.tune, (f"tune 'shop/*' --from-prometheus {AT} --length 14d >overrides.yaml",)),
    "outcome": (outcome.outcome, ("outcome --config settings.yaml --length 7d",)),
    "models": (catalogue.models, ("models", "models adaptive")),
    "settings": (
        settings.settings,
        ("settings policy.horizontal.lead_time", "settings --config settings.yaml --origin", "settings --schema"),
    ),
    "release": (run.release, ("release", "release 'shop/*' --dry-run", "release --expired")),
    "certificates": (
        certificates.certificates,
        ("certificates --service monitoring/forecaster --secret monitoring/forecaster-tls",),
    ),
}


SHORT = {
    "once": "Recommendations for all workloads, once.",
    "run": "The service: a cycle a minute, until SIGTERM.",
    "explain": "How the numbers of a workload came about.",
    "doctor": "What is missing, and what to do about it.",
    "demo": "The main job on recorded load, no cluster needed.",
    "recommend": "Requests and limits, their risk and cost.",
    "nodes": "Node pools ahead: nodes needed, and when.",
    "replay": "What would have happened, against the HPA.",
    "tune": "Which policy would have been better.",
    "outcome": "What last week's decisions were worth.",
    "models": "The forecasting models there are.",
    "settings": "All settings, one explained, a file checked.",
    "certificates": "Our own certificate for the aggregated API.",
}


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  forecaster {line}" for line in lines)])


for name, (command, lines) in COMMANDS.items():
    app.command(name, short_help=SHORT[name], epilog=examples(*lines))(command)
app.add_typer(backtest.app, name="backtest")
app.add_typer(hpa.app, name="hpa")


def _print_version(asked: bool) -> None:  # noqa: FBT001  typer's callback
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", "-v", callback=_print_version, is_eager=True, help="Say it.")
    ] = False,
) -> None:
    """Say the version, or run a command."""
