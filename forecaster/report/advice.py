"""Advice as a table for people, and as patches. Memory always has a binary suffix, as manifests write it."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from forecaster.domain.amounts import UNKNOWN_AMOUNT, cores, counted, listed, memory
from forecaster.errors import StoreError
from forecaster.report.advice_view import changes, document, flat, totals
from forecaster.report.formats import AdviceOutput, Output
from forecaster.report.printed import (
    Printable,
    PrintedColumn,
    change,
    markdown_table,
    mebi,
    milli,
    print_as,
    print_table,
    print_text,
)
from forecaster.vertical.admission.advice import Advice, file_name, kustomization, patch, patchable, whole_mebibytes
from forecaster.vertical.admission.checks import Verdict
from forecaster.vertical.admission.cluster import milli_of
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE, MEMORY_RESOURCE, text_of
from forecaster.vertical.recommenders.baselines import Severity

if TYPE_CHECKING:
    from forecaster.cycle.advice import JointAdvice
    from forecaster.domain.workload import ContainerSize, Prices, Resources, WorkloadId
    from forecaster.vertical.sizing.joint import SizePlan

SEVERITY_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "yellow",
    Severity.OK: "",
    Severity.GOOD: "green",
    Severity.UNKNOWN: "dim",
}
SAME = "="
NEVER_DAYS = 100_000
"""Days between two expected OOM kills above which a cell says `none`."""


def print_advice(
    advices: Sequence[Advice],
    output: AdviceOutput,
    prices: Prices | None,
    *,
    findings: bool = False,
    joint: Mapping[WorkloadId, JointAdvice] | None = None,
) -> None:
    """Print all advice; advice that cannot be a patch goes to standard error."""
    if output in {AdviceOutput.PATCHES, AdviceOutput.KUSTOMIZE}:
        yaml.safe_dump_all([patch(advice) for advice in writable_advices(advices)], sys.stdout, sort_keys=False)
        return
    if output is AdviceOutput.MARKDOWN:
        plain = [replace(advice, baselines={}) for advice in advices]
        columns = [column for column in columns_of(plain, prices) if column.head != "OFF BY"]
        sys.stdout.write("\n\n".join([markdown_table(columns), *totals_lines(advices, prices)]) + "\n")
        return

    def table(wide: bool) -> None:  # noqa: FBT001  as `Printable` has it
        _print_table(advices, prices, findings=findings, wide=wide)
        if joint is not None:
            print_text("", *(f"{advice.id}: {joint_line(joint[advice.id])}" for advice in advices))

    result = Printable(
        table=table,
        document=lambda: document(advices, prices, joint),
        rows=lambda: [flat(advice, prices) for advice in advices],
        ids=lambda: (advice.id for advice in advices),
    )
    print_as(Output(output.value), result)


def _print_table(advices: Sequence[Advice], prices: Prices | None, *, findings: bool, wide: bool) -> None:
    if not advices:
        print_text("No workload matches.")
        return
    print_table(columns_of(advices, prices), [SEVERITY_STYLES[advice.severity] for advice in advices], wide=wide)
    print_text("", *totals_lines(advices, prices))
    print_text(" ".join(ADVICE_LEGEND), style="dim")
    if any(advice.refused for advice in advices) and not findings:
        print_text("CLUSTER refuses: --findings says by which rule, -o wide has the nearest values that pass.")
    if findings:
        print_text("", *proof_lines(advices))


def columns_of(advices: Sequence[Advice], prices: Prices | None) -> list[PrintedColumn]:
    """One row per workload, by importance; columns without any value are left out."""
    risks = any(advice.sizes for advice in advices)
    before = any(advice.previous is not None for advice in advices)
    others = list(dict.fromkeys(name for advice in advices for name in advice.baselines))
    costs = [_cost(advice, prices) for advice in advices] if prices else []
    return [
        PrintedColumn("WORKLOAD", [str(advice.id) for advice in advices]),
        PrintedColumn("SEVERITY", [str(advice.severity) for advice in advices], rank=1),
        *(_sizes(advices, "request", 0)),
        *([PrintedColumn(f"COST A MONTH{_in(prices)}", costs, rank=2, right=True)] if prices else []),
        *([PrintedColumn("SINCE LAST", [_since(advice) for advice in advices], rank=2, words=True)] if before else []),
        PrintedColumn("OFF BY", [off_by(advice) for advice in advices], rank=3),
        PrintedColumn("CLUSTER", [_answer(advice) for advice in advices], rank=4),
        PrintedColumn("PODS", [str(advice.replicas) for advice in advices], rank=5, right=True),
        *(risk_columns([advice.sizes for advice in advices]) if risks else []),
        *(_sizes(advices, "limit", 8)),
        *(column for name in others for column in _other(advices, name)),
        PrintedColumn("WHY", [_cluster(advice) for advice in advices], rank=9, words=True),
    ]


def _sizes(advices: Sequence[Advice], kind: str, rank: int) -> list[PrintedColumn]:
    """Return the cells with CPU and memory of one pod, now and recommended."""
    return [
        PrintedColumn(
            f"{name.upper()} {kind.upper()}", [_size(advice, name, kind) for advice in advices], rank=rank, right=True
        )
        for name in (CPU_RESOURCE, MEMORY_RESOURCE)
    ]


def _size(advice: Advice, name: str, kind: str) -> str:
    now, recommended = (_of(resources, name, kind) for resources in (advice.now, advice.recommended or advice.now))
    return change(now, recommended)


def _of(resources: Resources, name: str, kind: str) -> str:
    value = getattr(resources, f"{name}_{kind}")
    return milli(value) if name == CPU_RESOURCE else mebi(None if value is None else whole_mebibytes(value))


def off_by(advice: Advice) -> str:
    """Return the excess (`idle`) or lack (`short`) of requests in each pod: a shortage is not a saving."""
    now, recommended = advice.now, advice.recommended
    if recommended is None:
        return UNKNOWN_AMOUNT
    pairs = ((now.cpu_request, recommended.cpu_request, milli), (now.memory_request, recommended.memory_request, mebi))
    differences = [
        f"{spoken(abs(old - new))} {'idle' if old > new else 'short'}"
        for old, new, spoken in pairs
        if old is not None and new is not None and spoken(old) != spoken(new)
    ]
    return ", ".join(differences) or SAME


ADVICE_LEGEND = (
    "SEVERITY as KRR has it, by the worst of requests and limits, too much and too little alike: CRITICAL from half a",
    "core or 500Mi off, WARNING from 250m or 250Mi, OK from 100m or 100Mi, GOOD below; UNKNOWN while it holds.",
    "OFF BY, in one pod: requested and not needed (idle), or needed and not requested (short).",
)


def totals_lines(advices: Sequence[Advice], prices: Prices | None) -> list[str]:
    """Requests of all pods, now and as recommended; what is freed apart from what is missing; money with prices."""
    sums = totals(advices, prices)
    if not sums.with_a_recommendation:
        return []
    amounts = "; ".join(
        f"{total.now / unit:.1f} → {total.recommended / unit:.1f} {name} ({total.freed / unit:.1f} freed, "
        f"{total.added / unit:.1f} added)"
        for total, unit, name in (
            (sums.cpu_request_cores, 1, "cores"),
            (sums.memory_request_bytes, 2**30, "GiB of memory"),
        )
    )
    known, all_ = sums.with_a_recommendation, sums.workloads
    lines = [f"All pods of {known} of {all_} workloads that have a recommendation request: {amounts}."]
    if absent := sums.without_a_request:
        lines.append(f"Not in these sums: {counted(absent, 'workload')} without a request of CPU or memory today.")
    if cost := sums.cost_a_month:
        lines.append(
            f"Cost a month{in_currency(prices)}: {cost.now:,.2f} → {cost.recommended:,.2f}: {cost.freed:,.2f} saved "
            f"where too much is requested, {cost.added:,.2f} more where too little is."
        )
    return lines


def risk_columns(rows: Sequence[Sequence[ContainerSize]]) -> list[PrintedColumn]:
    """Time that CPU wants more than the request, and how often a peak of memory kills; of the worst in each row."""
    cpu = [_worst(size.cpu.over_request for size in row if size.cpu) for row in rows]
    kills = [_worst(size.memory.kills_a_year for size in row if size.memory) for row in rows]
    shares = [UNKNOWN_AMOUNT if share is None else f"{share:.1%}" for share in cpu]
    return [
        PrintedColumn("CPU RISK", shares, rank=6, right=True),
        PrintedColumn("OOM KILL EXPECTED", [_once_in(a_year) for a_year in kills], rank=6, right=True),
    ]


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _once_in(a_year: float | None) -> str:
    if a_year is None:
        return UNKNOWN_AMOUNT
    days = 365 / a_year if a_year else math.inf
    return f"once in {days:,.0f} days" if days < NEVER_DAYS else "none"


def _pair(resources: Resources, name: str) -> str:
    request, limit = (spoken(name, getattr(resources, f"{name}_{kind}")) for kind in ("request", "limit"))
    return request if request == limit else f"{request}/{limit}"


def spoken(name: str, value: float | None) -> str:
    """Format cores or bytes as in a manifest; memory in whole MiB."""
    if value is None:
        return UNKNOWN_AMOUNT
    return text_of(milli_of(name, whole_mebibytes(value) if name == MEMORY_RESOURCE else value), name)


def _in(prices: Prices | None) -> str:
    return f", {prices.currency}" if prices and prices.currency else ""


def in_currency(prices: Prices | None) -> str:
    """Return the words that name the currency, to stand behind an amount's label."""
    return _in(prices) or ", in the currency of the prices"


def _cost(advice: Advice, prices: Prices) -> str:
    sizes = (advice.now, advice.recommended or advice.now)
    return cost_change(*(advice.cost_a_month(size, prices) for size in sizes))


def cost_change(now: float | None, recommended: float | None) -> str:
    """Format the cost of a month, now and as recommended."""
    return change(*(UNKNOWN_AMOUNT if value is None else f"{value:,.2f}" for value in (now, recommended)))


def _other(advices: Sequence[Advice], name: str) -> list[PrintedColumn]:
    """Requests that another recommender would set."""
    baselines = [advice.baselines.get(name) for advice in advices]
    cpu = [milli(baseline.cpu_request) if baseline else UNKNOWN_AMOUNT for baseline in baselines]
    sums = [mebi(baseline.memory_request) if baseline else UNKNOWN_AMOUNT for baseline in baselines]
    head = name.upper().replace("_", " ")
    heads = (f"{head} CPU", f"{head} MEMORY")
    return [PrintedColumn(head, cells, rank=7, right=True) for head, cells in zip(heads, (cpu, sums), strict=True)]


def _since(advice: Advice) -> str:
    if advice.previous is None:
        return "new"
    differences = [
        f"{name.replace('_', ' ')} {spoken(name.partition('_')[0], old)} → {spoken(name.partition('_')[0], new)}"
        for name, (old, new) in changes(advice).items()
    ]
    return ", ".join(differences) or SAME


def _answer(advice: Advice) -> str:
    """Return the result of the proof, in a word."""
    if advice.recommended is None:
        return "not asked"
    if advice.proof is None:
        return "no proof"
    return "accepts" if advice.proof.accepted else "refuses"


def _cluster(advice: Advice) -> str:
    """Return the result of the proof, in a few words, and the nearest accepted size."""
    if advice.recommended is None:
        return advice.message
    if advice.proof is None:
        return f"no proof: {advice.unproved}"
    if advice.proof.accepted:
        free = advice.proof.free
        waiting = f", {free.waiting} wait for nodes" if free and free.waiting else ""
        open_ = sum(finding.verdict is Verdict.UNKNOWN for finding in advice.proof.findings)
        return f"accepts{waiting}" + (f" ({open_} rules unknown)" if open_ else "")
    applied = advice.applied
    nearest = (
        "nothing near would pass"
        if applied is None
        else f"nearest {_pair(applied, CPU_RESOURCE)} {_pair(applied, MEMORY_RESOURCE)}"
    )
    return f"refuses: {advice.proof.refusals[0]}; {nearest}"


def proof_lines(advices: Iterable[Advice]) -> list[str]:
    """Every finding about every workload, to be read from top to bottom."""
    return [
        line
        for advice in advices
        for line in (
            f"{advice.id.kind} {advice.id}: {advice.message}",
            *(f"  {finding}" for finding in (*map(str, advice.vpas), *finding_lines(advice))),
        )
    ]


def finding_lines(advice: Advice) -> list[str]:
    """Return the findings of the cluster's rules about one workload's sizes; also for `explain`."""
    targets = target_lines(advice)
    if advice.proof is None:
        return [*targets, f"not proved: {advice.unproved or advice.reason}"]
    return [*targets, *(f"{finding.verdict:<8} {finding}" for finding in advice.proof.findings)]


def target_lines(advice: Advice) -> list[str]:
    """Targets of the HPA that go with the sizes."""
    return [f"the HPA's {target.metric} target goes with it: {target.value * 100:.0f} %" for target in advice.targets]


def joint_line(joint: JointAdvice) -> str:
    """`4 to 9 pods of 700m and 1Gi ...`, or why size and count stay as they are."""
    if joint.plan is None or joint.now is None:
        return f"count and size are not changed together: {joint.reason}"
    before, after = (cores(point) for point in joint.scale_point)
    saved = 1 - joint.plan.cost / joint.now.cost if joint.now.cost else 0.0
    return (
        f"{_pods(joint.plan)} instead of {_pods(joint.now)} over the coming day, {_percent(saved)} cheaper; the HPA's "
        f"target stays {_percent(joint.utilization)} and acts at {after} a pod instead of {before}; "
        f"{_cluster_clause(joint)}"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _pods(plan: SizePlan) -> str:
    count = str(plan.replicas) if plan.least == plan.replicas else f"{plan.least} to {plan.replicas}"
    return f"{count} pods of {cores(plan.cpu)} and {memory(plan.memory)}"


def _cluster_clause(joint: JointAdvice) -> str:
    advice = joint.advice
    if advice is None or advice.proof is None:
        return f"not proved: {advice.unproved if advice else 'the cluster is not known'}"
    return "the cluster accepts it"


# Patches.


def write_overlay(advices: Sequence[Advice], known: Sequence[Advice], folder: Path, base: str) -> tuple[int, int]:
    """Write an overlay; return how many patches it has, and how many of an earlier run stay. Raises StoreError.

    A patch of a `known` workload stays until another one replaces it: its size fits by then, and left out it goes back.
    """
    writable = writable_advices(advices)
    before = patches_of(folder / "kustomization.yaml") - {file_name(advice) for advice in writable}
    stay = [advice for advice in known if file_name(advice) in before and not advice.made_by]
    documents = {file_name(advice): patch(advice) for advice in writable}
    documents["kustomization.yaml"] = kustomization([*writable, *stay], base)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, written in documents.items():
            (folder / name).write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"--to {folder}: {error.strerror}; it has a part of the overlay") from error
    return len(writable) + len(stay), len(stay)


def patches_of(overlay: Path) -> set[str]:
    """Return the files of the patches that an overlay has; none where there is no overlay of ours."""
    try:
        return {str(stated["path"]) for stated in yaml.safe_load(overlay.read_text(encoding="utf-8"))["patches"]}
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return set()


def writable_advices(advices: Sequence[Advice]) -> list[Advice]:
    """Return the advices that can be written, and print the others, a line a reason."""
    unpatched: dict[str, list[str]] = defaultdict(list)
    for advice in advices:
        if advice.recommended is not None and not patchable(advice):
            unpatched[why_unpatched(advice)].append(str(advice.id))
    sys.stderr.writelines(f"! {listed(ids)}: no patch: {why}\n" for why, ids in unpatched.items())
    return [advice for advice in advices if patchable(advice)]


def why_unpatched(advice: Advice) -> str:
    """Say why a recommended size cannot be written."""
    if advice.made_by:
        return f"it is made from {advice.made_by}, which would take it back; state its size there"
    if advice.proof is not None and advice.proof.nearest is None:
        return f"the cluster takes no value near it: {advice.proof.refusals[0]}"
    return advice.unproved or "the names of its containers are not known; give --objects"
