"""`forecaster hpa`: the next actions of a HorizontalPodAutoscaler, from files or totals, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from forecaster.cli.options import OutputForm, existing_file
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.hpa.observation import Observation
    from forecaster.hpa.reconcile import SimulatedPass
    from forecaster.hpa.spec import Controller, HpaSpec
    from forecaster.report.printed import PrintedColumn

app = typer.Typer(
    help="What a HorizontalPodAutoscaler would do, offline and exact.", no_args_is_help=True, rich_markup_mode=None
)

Manifest = Annotated[Path, existing_file("--hpa", "HPA manifest, autoscaling/v1 or v2.")]
Pods = Annotated[Path | None, existing_file("--pods", "Pods, as `kubectl get pods -o json`.")]
Metrics = Annotated[
    Path | None,
    existing_file(
        "--metrics", "Answers of the metrics APIs: PodMetricsList, MetricValueList, ExternalMetricValueList."
    ),
]
Replicas = Annotated[
    int | None,
    typer.Option("--replicas", min=0, max=150_000, help="Replicas of the target now; default: live pods of --pods."),
]
Usage = Annotated[
    list[str] | None,
    typer.Option("--usage", metavar="METRIC=QUANTITY", help="Total of a metric over all pods, in place of files."),
]
Requests = Annotated[
    list[str] | None,
    typer.Option("--request", metavar="RESOURCE=QUANTITY", help="Request of one pod, in place of files."),
]
Others = Annotated[list[Path] | None, existing_file("--other", "Another HPA, to compare targets.")]
Vertical = Annotated[
    list[str] | None,
    typer.Option("--vertical", metavar="RESOURCE", help="A resource whose requests a VPA changes."),
]
Instant = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Instant of the pass (RFC 3339); default: the latest sample, else now."),
]
ServerVersion = Annotated[
    str,
    typer.Option(
        "--server-version",
        metavar="1.37",
        help="Version of Kubernetes, for its feature gates and wording; the arithmetic is that of 1.35 and later.",
    ),
]
ScaleToZero = Annotated[
    bool | None,
    typer.Option("--scale-to-zero/--no-scale-to-zero", help="The feature gate HPAScaleToZero; default: on from 1.37."),
]
LATEST_RELEASE = "1.37"

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
    hpa: Annotated[Path | None, existing_file("--hpa", "As FILE.")] = None,
    pods: Pods = None,
    metrics: Metrics = None,
    replicas: Replicas = None,
    usage: Usage = None,
    request: Requests = None,
    other: Others = None,
    vertical: Vertical = None,
    at: Instant = None,
    server_version: ServerVersion = LATEST_RELEASE,
    scale_to_zero: ScaleToZero = None,
) -> None:
    """Say what an HPA aims at, what it will do at the next sync and why, and what to beware of.

    A ScaledObject is explained as the HPA that KEDA makes of it. Without pods or replicas only the aims are said, and
    what to beware of.
    """
    from forecaster.cli.hpa_inputs import controller_of, observation_of, specs_of, streamed
    from forecaster.report.printed import print_text

    controller = controller_of(server_version, scale_to_zero=scale_to_zero)
    hpas = streamed([*(manifests or []), *([hpa] if hpa else [])], controller)
    given_others, lines = specs_of(other or [], controller), []
    for parsed in hpas:
        if len(hpas) > 1 or parsed.note:
            lines.append(f"{parsed.title}:")
        others = [each.spec for each in hpas if each is not parsed and each.spec.namespace == parsed.spec.namespace]
        others += given_others
        if pods is None and replicas is None and not (usage or request or metrics):
            observed = None
        else:
            observed = observation_of(parsed.spec, pods, metrics, replicas, usage or [], request or [], at)
        lines += explained(parsed.spec, observed, controller, others, frozenset(vertical or ()))
    print_text(*lines)


@app.command(epilog=SIMULATE_EPILOG)
def simulate(
    hpa: Manifest,
    pods: Pods = None,
    metrics: Metrics = None,
    replicas: Replicas = None,
    usage: Usage = None,
    request: Requests = None,
    at: Instant = None,
    server_version: ServerVersion = LATEST_RELEASE,
    scale_to_zero: ScaleToZero = None,
    passes: Annotated[int, typer.Option(min=1, max=10_000, help="How many passes, one sync period apart.")] = 1,
    output: OutputForm = Output.TABLE,
) -> None:
    """Run passes of this HPA and print what each one asks for, what it writes and which limit binds.

    The first pass is exact. Later ones hold the total load constant and spread it evenly over pods that are ready at
    once.
    """
    from forecaster.cli.hpa_inputs import controller_of, observation_of, specs_of
    from forecaster.hpa.reconcile import carry_on

    controller = controller_of(server_version, scale_to_zero=scale_to_zero)
    (spec,) = specs_of([hpa], controller)
    observation, now = observation_of(spec, pods, metrics, replicas, usage or [], request or [], at)
    print_passes(carry_on(spec, observation, now, passes, controller), output)


def explained(
    spec: HpaSpec,
    observed: tuple[Observation, datetime] | None,
    controller: Controller,
    others: Sequence[HpaSpec],
    vertical: frozenset[str],
) -> Iterator[str]:
    """The aims, the next pass in a sentence and in steps, and the cautions; without pods those at the lowest count."""
    from forecaster.hpa.cautions import cautions
    from forecaster.hpa.explain import aims
    from forecaster.hpa.observation import ScaleSubresource

    replicas, pods = max(1, spec.bounds.min_replicas), observed[0].pods if observed else ()
    yield f"Aims: {'; '.join(aims(spec))}. The largest proposal wins."
    if observed is None:
        yield "Give --replicas N and --usage METRIC=QUANTITY, or --pods FILE, for what it does at the next sync."
    else:
        yield from _next_pass(spec, *observed, controller)
        scale = observed[0].scale
        replicas = scale.spec_replicas if isinstance(scale, ScaleSubresource) else 0
    warnings = cautions(spec, replicas, controller=controller, pods=pods, others=others, vertical_resources=vertical)
    yield from (f"! {caution}" for caution in warnings)


def _next_pass(spec: HpaSpec, observation: Observation, now: datetime, controller: Controller) -> Iterator[str]:
    from forecaster.hpa.explain import explain as explained_pass
    from forecaster.hpa.reconcile import reconcile
    from forecaster.hpa.state import NEW_HPA

    decided = reconcile(spec, observation, NEW_HPA, now, controller)
    explanation = explained_pass(spec, observation, NEW_HPA, decided, now, controller)
    yield explanation.summary
    yield from (f"  - {step}" for step in explanation.steps)


class ConditionView(msgspec.Struct, frozen=True, gc=False):
    """One condition of the HPA's status, as printed."""

    type: str
    status: str
    reason: str
    message: str


class PassView(msgspec.Struct, frozen=True, rename={"number": "pass"}):
    """One pass: counts of pods, null where it did not get that far."""

    number: int
    at: datetime
    replicas: int
    recommendation: int | None
    stabilized: int | None
    desired: int | None
    written: bool
    conditions: list[ConditionView]


class SimulationView(msgspec.Struct, frozen=True):
    """Simulated passes, in their order."""

    passes: list[PassView]


def print_passes(steps: Iterable[SimulatedPass], output: Output) -> None:
    """Print a table row for each pass, with `-` where a pass did not get that far."""
    from forecaster.report.printed import print_listing

    passes = [_pass_view(number, step) for number, step in enumerate(steps, start=1)]
    rows = [msgspec.to_builtins(view) | {"conditions": _reasons(view)} for view in passes]
    print_listing(SimulationView(passes), rows, _columns(passes), output)


def _pass_view(number: int, step: SimulatedPass) -> PassView:
    desired = step.outcome.desired
    return PassView(
        number=number,
        at=step.at,
        replicas=step.replicas,
        recommendation=desired.recommendation.replicas if desired.recommendation else None,
        stabilized=desired.limited.stabilized if desired.limited else None,
        desired=desired.replicas if desired.written or desired.recommendation else None,
        written=desired.written,
        conditions=[ConditionView(c.type, c.status, c.reason, c.message) for c in step.outcome.conditions],
    )


def _columns(passes: Sequence[PassView]) -> list[PrintedColumn]:
    from forecaster.report.printed import PrintedColumn, columns_from

    counts = [(view.number, view.replicas, view.recommendation, view.stabilized, view.desired) for view in passes]
    cells = [["-" if count is None else str(count) for count in row] for row in counts]
    heads = ("PASS", "REPLICAS", "RECOMMENDED", "STABILIZED", "DESIRED")
    reasons = PrintedColumn("CONDITIONS", [_reasons(view) for view in passes], words=True)
    return [*columns_from(heads, cells, (0,) * len(heads), texts=0), reasons]


def _reasons(view: PassView) -> str:
    return " ".join(condition.reason for condition in view.conditions)
