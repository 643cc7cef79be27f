"""`forecaster recommend`: requests and limits for the load that is coming, and whether the cluster would take them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import CycleOptions, Pattern, chosen, existing_file, finished, grouped, of_namespaces
from forecaster.cli.streams import tell
from forecaster.report.formats import AdviceOutput

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.domain.workload import Prices, Resources, WorkloadId
    from forecaster.publish.settings import PriceSettings
    from forecaster.report.helm_values import HelmFiles
    from forecaster.vertical.admission.advice import Advice
    from forecaster.vertical.recommenders.baselines import Severity
    from forecaster.vertical.sizing.joint import ResourceCosts

Objects = Annotated[
    list[Path] | None,
    existing_file(
        "--objects",
        "Objects of the cluster, as `kubectl get -o json` prints them; default: those of kube-state-metrics.",
    ),
]
ServerVersion = Annotated[
    str | None,
    typer.Option(
        "--server-version", metavar="1.37", help="Version of the API server; default: that of the latest kubelet."
    ),
]

Paths = Annotated[
    Path | None,
    existing_file(
        "--paths", "Paths of containers' resources in the values: `NAMESPACE/NAME/CONTAINER: web.resources`."
    ),
]
Values = Annotated[list[Path] | None, existing_file("--values", "Values that Helm reads before --to.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceOptions(CycleOptions):
    """Selected workloads, their source, prices, and the terms of the admission proof."""

    workload: Pattern = "*"
    kind: Annotated[str | None, typer.Option("--kind", help="Only workloads of this kind.")] = None
    severity: Annotated[
        str | None, typer.Option("--severity", metavar="LEAST", help="Only OK, WARNING or CRITICAL and worse.")
    ] = None
    refused: Annotated[bool, typer.Option("--refused", help="Only sizes that the cluster would refuse.")] = False
    moved: Annotated[
        str | None,
        typer.Option("--moved", metavar="10%", help="Only what moves by more; with -o helm-values, from what Git has."),
    ] = None
    price_core_hour: Annotated[
        float | None, typer.Option("--price-core-hour", min=0, help="Price of a requested core for an hour.")
    ] = None
    price_gib_hour: Annotated[
        float | None, typer.Option("--price-gib-hour", min=0, help="Price of a requested GiB for an hour.")
    ] = None
    price_pod_start: Annotated[
        float, typer.Option("--price-pod-start", min=0, help="With --joint: price of starting or stopping a pod once.")
    ] = 0.0
    previous: Annotated[Path | None, existing_file("--previous", "Compare with an earlier `-o json`.")] = None
    since_ledger: Annotated[
        bool, typer.Option("--since-ledger", help="Compare with the last decision that the service has recorded.")
    ] = False
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Prove a resize of the running pods instead of a rollout.")
    ] = False
    accept_qos_change: Annotated[
        bool, typer.Option("--accept-qos-change", help="Accept sizes that change the QoS class.")
    ] = False
    static_cpu: Annotated[
        bool, typer.Option("--static-cpu", help="The kubelets run the static CPU manager: keep whole CPUs whole.")
    ] = False
    objects: Objects = None
    server_version: ServerVersion = None


@grouped
def recommend(
    given: AdviceOptions,
    output: Annotated[AdviceOutput, typer.Option("--output", "-o", help="Output format.")] = AdviceOutput.TABLE,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="PATH", help="Folder of the kustomize overlay, or file of values.")
    ] = None,
    paths: Paths = None,
    values: Values = None,
    base: Annotated[str, typer.Option("--base", help="Base of the kustomize overlay.")] = "../base",
    compare: Annotated[bool, typer.Option("--compare/--no-compare", help="Show what VPA and KRR advise.")] = True,
    findings: Annotated[bool, typer.Option("--findings", help="Print the finding of every cluster rule.")] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="Choose count and size together where an HPA scales by CPU utilization.")
    ] = False,
) -> None:
    """Recommend requests and limits: how far off today's are, what they cost, what the cluster would refuse."""
    from forecaster.cli.once import workloads_of
    from forecaster.cli.snapshot import requested_snapshot, with_vpas
    from forecaster.report.advice import print_advice, write_overlay
    from forecaster.report.helm_values import HelmFiles
    from forecaster.report.progress import shown_progress
    from forecaster.vertical.admission.context import ApplyTerms

    share = share_of(given.moved)
    check_written(output, to, paths, moved=share is not None)
    settings = given.settings
    prices = prices_of(given.price_core_hour, given.price_gib_hour, settings.prices)
    earlier = previous_of(given.previous, settings if given.since_ledger else None)
    terms = ApplyTerms(given.in_place, given.accept_qos_change, given.static_cpu)
    with shown_progress("recommend") as shown:
        snapshot = requested_snapshot(settings, given, shown)
        if compare and not given.demo:
            snapshot = replace(snapshot, cluster=with_vpas(snapshot.cluster, settings, snapshot.outcome.report.at))
        shown.began("advice", 1.0)
        advices = snapshot.advices(earlier, compare=compare, terms=terms)
        joint_advices = snapshot.joint(costs_of(prices, given.price_pod_start), terms) if joint else None
    snapshot.tell_faults()
    if not advices:
        workloads_of(snapshot.outcome, given.workload, settings)  # says so where another name was meant
        raise typer.Exit(1)
    selected = selection(advices, given, settings, share if paths is None else None)
    if paths is not None and to is not None:
        known = [advice for advice in advices if given.kind in {None, advice.id.kind}]
        write_values(known, selected, HelmFiles(paths, values or [], to), share or 0.0, prices)
    elif to is not None:
        patches, stay = write_overlay(selected, advices, to, base)
        before = f", {stay} of them as before: no other size is recommended" if stay else ""
        tell(f"{patches} patches in {to}{before}")
    else:
        print_advice(selected, output, prices, findings=findings, joint=joint_advices)
    finished(shown)


def selection(advices: Sequence[Advice], given: AdviceOptions, settings: Settings, share: float | None) -> list[Advice]:
    """Advice on the workloads that are named, of a kind and severity; with `share` only what moves by more."""
    from forecaster.vertical.admission.advice import moved

    ids = of_namespaces((advice.id for advice in advices), given.namespace if given.demo else None)
    named = chosen(ids, given.workload, None if given.demo else settings)
    selected = filtered(advices, named, given.kind, given.severity, refused=given.refused)
    if share is None:
        return selected
    return [advice for advice in selected if advice.recommended and moved(advice.now, advice.recommended, share)]


def prices_of(core_hour: float | None, gib_hour: float | None, stated: PriceSettings) -> Prices | None:
    """Return the prices of CPU and memory from both options, else from the settings; one option alone is refused."""
    from forecaster.domain.workload import Prices

    if core_hour is not None and gib_hour is not None:
        return Prices(core_hour, gib_hour, stated.currency)
    if core_hour is not None or gib_hour is not None:
        raise typer.BadParameter("give both --price-core-hour and --price-gib-hour", param_hint="--price-core-hour")
    return stated.stated


def share_of(text: str | None) -> float | None:
    """The share that `--moved` states, as a ratio."""
    if text is not None and re.fullmatch(r"\d+(\.\d+)?%", text) is None:
        raise typer.BadParameter(f"{text!r}: write a share such as 10%", param_hint="--moved")
    return None if text is None else float(text[:-1]) / 100


def check_written(output: AdviceOutput, to: Path | None, paths: Path | None, *, moved: bool) -> None:
    """Refuse options that do not belong together, and what could not be written, before the work."""
    from forecaster.cli.streams import check_writable

    helm, kustomize = output is AdviceOutput.HELM_VALUES, output is AdviceOutput.KUSTOMIZE
    if (to is None) is (helm or kustomize):
        raise typer.BadParameter("-o kustomize and -o helm-values need --to, and no other form takes it")
    if (paths is None) is helm:
        raise typer.BadParameter("-o helm-values needs it, and no other form takes it", param_hint="--paths")
    if moved and kustomize:
        raise typer.BadParameter("a patch that is left out takes its size back; leave --moved out with -o kustomize")
    if kustomize and to is not None:
        writable_folder(to)
    check_writable(to if helm else None)


def write_values(
    advices: Sequence[Advice], chosen: Sequence[Advice], files: HelmFiles, share: float, prices: Prices | None
) -> None:
    """Write the overlay of values, and print its changes as Markdown."""
    from forecaster.cli.streams import write_file
    from forecaster.report.helm_values import changes_text, helm_values

    overlay = helm_values(advices, {advice.id for advice in chosen}, files, share)
    for line in overlay.unwritten:
        tell(f"! {line}")
    if overlay.changes or files.overlay.exists():
        write_file(files.overlay, overlay.text)
    typer.echo(changes_text(overlay, share, prices), nl=False)


def writable_folder(folder: Path) -> None:
    """Make the folder that is going to be written to, before the work rather than after it."""
    import os

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{folder}: {error.strerror}", param_hint="--to") from error
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"{folder} may not be written to", param_hint="--to")


def costs_of(prices: Prices | None, pod_start: float) -> ResourceCosts:
    """Return the costs for joint choices; without prices a GiB costs 0.13 of a core, about the ratio of clouds."""
    from forecaster.vertical.sizing.joint import ResourceCosts

    if prices is None:
        return ResourceCosts(pod_start=pod_start)
    return ResourceCosts(core_hour=prices.core_hour, gib_hour=prices.gib_hour, pod_start=pod_start)


def previous_of(file: Path | None, settings: Settings | None) -> dict[WorkloadId, Resources]:
    """Return the earlier recommendations: from a file, or from the ledger of the service."""
    import json

    from forecaster.report.advice_view import read_previous

    if file is not None:
        try:
            return read_previous(json.loads(file.read_bytes()))
        except (OSError, ValueError, RecursionError) as error:
            raise typer.BadParameter(f"{file}: {error}", param_hint="--previous") from error
    return {} if settings is None else _from_ledger(settings)


def _from_ledger(settings: Settings) -> dict[WorkloadId, Resources]:
    from contextlib import closing

    from forecaster.cli.decisions import recorded_ledger
    from forecaster.domain.workload import Resources

    with closing(recorded_ledger(settings.state)) as ledger:
        latest = ledger.latest()
    return {
        id_: Resources(decided.cpu_request, decided.cpu_limit, decided.memory_request, decided.memory_limit)
        for id_, decided in latest.items()
        if decided.resources_verdict == "resize"
    }


def filtered(
    advices: Sequence[Advice], chosen: set[WorkloadId], kind: str | None, least: str | None, *, refused: bool
) -> list[Advice]:
    """Return the selected advice, the worst first.

    Raises:
        UnknownName: no workload is of this kind.
    """
    from forecaster.errors import UnknownName

    severities, kinds = _at_least(least), {advice.id.kind for advice in advices}
    if kind is not None and kind not in kinds:
        raise UnknownName("kind", kind, kinds)
    selected = [
        advice
        for advice in advices
        if advice.id in chosen
        and (kind is None or advice.id.kind == kind)
        and advice.severity in severities
        and (advice.refused or not refused)
    ]
    return sorted(selected, key=lambda advice: (severities.index(advice.severity), advice.id))


def _at_least(text: str | None) -> list[Severity]:
    """Return the severities from the worst down to the requested one; all without a request."""
    from forecaster.vertical.recommenders.baselines import Severity

    order = [*reversed(Severity)]
    if text is not None and text.upper() not in order[:3]:
        raise typer.BadParameter(f"{text!r}: use one of {', '.join(order[:3])}", param_hint="--severity")
    return order if text is None else order[: order.index(Severity(text.upper())) + 1]
