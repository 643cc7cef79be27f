"""`forecaster recommend`: requests and limits for the load that is coming, and whether the cluster would take them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from forecaster.cli.options import (
    ConfigFile,
    Demo,
    Instant,
    Namespace,
    Pattern,
    PrometheusUrl,
    chosen,
    finished,
    grouped,
    of_namespaces,
    settings_of,
)
from forecaster.cli.streams import tell
from forecaster.report.formats import AdviceOutput

Objects = Annotated[
    list[Path] | None,
    typer.Option(
        "--objects",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Objects of the cluster, as `kubectl get -o json` prints them; default: what kube-state-metrics tells.",
    ),
]
ServerVersion = Annotated[
    str | None,
    typer.Option("--server-version", metavar="1.37", help="Version of the API server; default: the newest kubelet's."),
]


@dataclass(frozen=True, slots=True)
class AdviceOptions:
    """Which workloads, from where, at which prices, and by which terms the cluster is asked."""

    prometheus: PrometheusUrl = None
    config: ConfigFile = None
    namespace: Namespace = None
    workload: Pattern = "*"
    kind: Annotated[str | None, typer.Option("--kind", help="Only workloads of this kind.")] = None
    severity: Annotated[
        str | None, typer.Option("--severity", metavar="LEAST", help="Only OK, WARNING or CRITICAL and worse.")
    ] = None
    refused: Annotated[bool, typer.Option("--refused", help="Only what the cluster would refuse.")] = False
    price_core_hour: Annotated[
        float | None, typer.Option("--price-core-hour", min=0, help="Price of a requested core for an hour.")
    ] = None
    price_gib_hour: Annotated[
        float | None, typer.Option("--price-gib-hour", min=0, help="Price of a requested GiB for an hour.")
    ] = None
    price_pod_start: Annotated[
        float, typer.Option("--price-pod-start", min=0, help="With --joint: price of starting or stopping a pod once.")
    ] = 0.0
    previous: Annotated[
        Path | None,
        typer.Option("--previous", metavar="FILE", exists=True, dir_okay=False, help="An earlier run, `-o json`."),
    ] = None
    since_ledger: Annotated[
        bool, typer.Option("--since-ledger", help="Compare with the last decision that the service has kept.")
    ] = False
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Prove a resize of the running pods instead of a rollout.")
    ] = False
    accept_qos_change: Annotated[
        bool, typer.Option("--accept-qos-change", help="Another QoS class is no reason to refuse.")
    ] = False
    static_cpu: Annotated[
        bool, typer.Option("--static-cpu", help="The kubelets run the static CPU manager: keep whole CPUs whole.")
    ] = False
    objects: Objects = None
    server_version: ServerVersion = None
    demo: Demo = False
    at: Instant = None


@grouped
def recommend(
    given: AdviceOptions,
    output: Annotated[AdviceOutput, typer.Option("--output", "-o", help="How to print.")] = AdviceOutput.TABLE,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", file_okay=False, help="Folder of the kustomize overlay.")
    ] = None,
    base: Annotated[str, typer.Option("--base", help="What the overlay builds on.")] = "../base",
    compare: Annotated[bool, typer.Option("--compare/--no-compare", help="Show VPAs and KRR beside it.")] = True,
    findings: Annotated[bool, typer.Option("--findings", help="Print what every rule of the cluster says.")] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="Choose count and size together where an HPA scales by CPU utilization.")
    ] = False,
) -> None:
    """Say what each pod should request and be limited to, how far off it is, what it costs, and what refuses it."""
    from forecaster.cli.look import look_at, with_vpas
    from forecaster.cli.once import workloads_of
    from forecaster.cli.recommend_inputs import costs_of, filtered, previous_of, prices_of, writable_folder
    from forecaster.report.advice import print_advice, write_overlay
    from forecaster.report.progress import shown_progress
    from forecaster.report.recommendations import NONE_FOUND
    from forecaster.vertical.admission.context import ApplyTerms
    from forecaster.vertical.cluster_rules.qos import SHARED, STATIC

    if (to is None) is (output is AdviceOutput.KUSTOMIZE):
        raise typer.BadParameter("-o kustomize and the folder that it fills belong together", param_hint="--to")
    if to is not None:
        writable_folder(to)
    settings = settings_of(given.config, given.prometheus, given.namespace)
    prices = prices_of(given.price_core_hour, given.price_gib_hour, settings.prices)
    earlier = previous_of(given.previous, settings if given.since_ledger else None)
    terms = ApplyTerms(given.in_place, given.accept_qos_change, STATIC if given.static_cpu else SHARED)
    with shown_progress("recommend") as shown:
        seen = look_at(settings, given, shown)
        if compare and not given.demo:
            seen = replace(seen, cluster=with_vpas(seen.cluster, settings, seen.outcome.report.at))
        shown.began("advice", 1.0)
        advices = seen.advices(earlier, compare=compare, terms=terms)
        together = seen.joint(costs_of(prices, given.price_pod_start), terms) if joint else None
    seen.tell_faults()
    if not advices:
        workloads_of(seen.outcome, given.workload, settings)  # says so where another name was meant
        if not seen.outcome.lost:
            tell(NONE_FOUND)
        raise typer.Exit(1)
    ids = of_namespaces((one.id for one in advices), given.namespace if given.demo else None)
    chosen_ = chosen(ids, given.workload, None if given.demo else settings)
    ours = filtered(advices, chosen_, given.kind, given.severity, refused=given.refused)
    if output is AdviceOutput.KUSTOMIZE and to is not None:
        tell(f"{write_overlay(ours, to, base)} patches in {to}")
    else:
        print_advice(ours, output, prices, findings=findings, joint=together)
    finished(shown)
