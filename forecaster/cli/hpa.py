"""`forecaster hpa`: what a HorizontalPodAutoscaler would do, from files or totals, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecaster.report.formats import SimulateOutput

app = typer.Typer(
    help="What a HorizontalPodAutoscaler would do, offline and exact.", no_args_is_help=True, rich_markup_mode=None
)

Manifest = Annotated[
    Path, typer.Option("--hpa", metavar="FILE", exists=True, dir_okay=False, help="HPA manifest, autoscaling/v1 or v2.")
]
Pods = Annotated[
    Path | None,
    typer.Option("--pods", metavar="FILE", exists=True, dir_okay=False, help="Pods, as `kubectl get pods -o json`."),
]
Metrics = Annotated[
    Path | None,
    typer.Option(
        "--metrics",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Answers of the metrics APIs: PodMetricsList, MetricValueList, ExternalMetricValueList.",
    ),
]
Replicas = Annotated[
    int | None, typer.Option("--replicas", min=0, help="Replicas of the target now; default: the pods of --pods.")
]
Usage = Annotated[
    list[str] | None,
    typer.Option("--usage", metavar="METRIC=QUANTITY", help="Total of a metric over all pods, in place of files."),
]
Requests = Annotated[
    list[str] | None,
    typer.Option("--request", metavar="RESOURCE=QUANTITY", help="What one pod requests, in place of files."),
]
Others = Annotated[
    list[Path] | None,
    typer.Option("--other", metavar="FILE", exists=True, dir_okay=False, help="Another HPA, to compare targets."),
]
Vertical = Annotated[
    list[str] | None,
    typer.Option("--vertical", metavar="RESOURCE", help="A resource whose requests something else changes."),
]
Instant = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Instant of the pass (RFC 3339); default: the newest sample, else now."),
]
ScaleToZero = Annotated[bool, typer.Option("--scale-to-zero", help="The gate HPAScaleToZero is on.")]


@app.command()
def explain(
    hpa: Manifest,
    pods: Pods = None,
    metrics: Metrics = None,
    replicas: Replicas = None,
    usage: Usage = None,
    request: Requests = None,
    other: Others = None,
    vertical: Vertical = None,
    at: Instant = None,
    scale_to_zero: ScaleToZero = False,
) -> None:
    """Say what this HPA aims at, what it will do at the next sync and why, and what to beware of."""
    from forecaster.cli.hpa_inputs import controller_with, look, specs_of
    from forecaster.cli.hpa_report import explained

    controller = controller_with(scale_to_zero=scale_to_zero)
    spec, *others = specs_of([hpa, *(other or [])], controller)
    seen, now = look(spec, pods, metrics, replicas, usage or [], request or [], at)
    for line in explained(spec, seen, now, controller, others, frozenset(vertical or ())):
        typer.echo(line)


@app.command()
def simulate(
    hpa: Manifest,
    pods: Pods = None,
    metrics: Metrics = None,
    replicas: Replicas = None,
    usage: Usage = None,
    request: Requests = None,
    at: Instant = None,
    scale_to_zero: ScaleToZero = False,
    passes: Annotated[int, typer.Option(min=1, max=10_000, help="How many passes, one sync period apart.")] = 1,
    output: Annotated[SimulateOutput, typer.Option("--output", "-o", help="How to print.")] = SimulateOutput.TABLE,
) -> None:
    """Run passes of this HPA and print what each one asks for, what it writes and which limit binds.

    The first pass is exact. Later ones hold the total load constant and spread it evenly over pods that are ready at
    once.
    """
    from forecaster.cli.hpa_inputs import controller_with, look, specs_of
    from forecaster.cli.hpa_report import json_lines, rows_of, table_lines
    from forecaster.hpa.reconcile import carry_on

    controller = controller_with(scale_to_zero=scale_to_zero)
    (spec,) = specs_of([hpa], controller)
    seen, now = look(spec, pods, metrics, replicas, usage or [], request or [], at)
    rows = rows_of(carry_on(spec, seen, now, passes, controller))
    for line in json_lines(rows) if output is SimulateOutput.JSON else table_lines(rows):
        typer.echo(line)
