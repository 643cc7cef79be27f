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


EXPLAIN_EPILOG = """\b
Examples:
  forecaster hpa explain hpa.yaml --replicas 4 --usage cpu=5.2 \\
      --request cpu=500m
  kubectl get hpa -A -o yaml | forecaster hpa explain -
  helm template ./chart | forecaster hpa explain -"""
SIMULATE_EPILOG = """\b
Examples:
  forecaster hpa simulate --hpa hpa.yaml --replicas 4 --usage cpu=5.2 \\
      --request cpu=500m --passes 20"""


@app.command(epilog=EXPLAIN_EPILOG)
def explain(
    manifests: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Manifests, or - for standard input: streams, lists, Helm's output; HPAs, and ScaledObjects of KEDA.",
        ),
    ] = None,
    hpa: Annotated[
        Path | None, typer.Option("--hpa", metavar="FILE", exists=True, dir_okay=False, help="The same, one file.")
    ] = None,
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
    """Say what an HPA aims at, what it will do at the next sync and why, and what to beware of.

    A ScaledObject is explained as the HPA that KEDA makes of it. Without pods or replicas only the aims are said, and
    what to beware of.
    """
    from forecaster.cli.hpa_inputs import controller_with, look, specs_of, streamed
    from forecaster.cli.hpa_report import aims_and_cautions, explained
    from forecaster.report.printed import print_text

    controller = controller_with(scale_to_zero=scale_to_zero)
    found = streamed([*(manifests or []), *([hpa] if hpa else [])], controller)
    beside, said = specs_of(other or [], controller), []
    for one in found:
        if len(found) > 1 or one.note:
            said.append(f"{one.title}:")
        others = [each.spec for each in found if each is not one and each.spec.namespace == one.spec.namespace]
        others += beside
        if pods is None and replicas is None and not (usage or request or metrics):
            said += aims_and_cautions(one.spec, controller, others, frozenset(vertical or ()))
        else:
            seen, now = look(one.spec, pods, metrics, replicas, usage or [], request or [], at)
            said += explained(one.spec, seen, now, controller, others, frozenset(vertical or ()))
    print_text(*said)


@app.command(epilog=SIMULATE_EPILOG)
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
    from forecaster.hpa.reconcile import carry_on
    from forecaster.report.passes import print_passes

    controller = controller_with(scale_to_zero=scale_to_zero)
    (spec,) = specs_of([hpa], controller)
    seen, now = look(spec, pods, metrics, replicas, usage or [], request or [], at)
    print_passes(carry_on(spec, seen, now, passes, controller), output)
