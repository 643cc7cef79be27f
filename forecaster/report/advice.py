"""Advice as a table for people, and as patches. Memory always has a binary suffix, as manifests write it."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml

from forecaster.domain.amounts import UNKNOWN_AMOUNT, cores, listed, memory
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
from forecaster.vertical.admission.advice import file_name, kustomization, patch, patchable, whole_mebibytes
from forecaster.vertical.admission.checks import Verdict
from forecaster.vertical.admission.cluster import milli_of
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE, MEMORY_RESOURCE, text_of
from forecaster.vertical.recommenders.baselines import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from forecaster.cycle.joint_sizes import JointAdvice
    from forecaster.domain.workload import ContainerSize, Prices, Resources, WorkloadId
    from forecaster.vertical.admission.advice import Advice
    from forecaster.vertical.sizing.joint import SizePlan


SEVERITY_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "yellow",
    Severity.OK: "",
    Severity.GOOD: "green",
    Severity.UNKNOWN: "dim",
}
SAME = "="
DAYS_A_YEAR = 365
NEVER_DAYS = 100_000
"""Days between two OOM kills from which none is said to be expected."""


def print_advice(
    advices: Sequence[Advice],
    output: AdviceOutput,
    prices: Prices | None,
    *,
    findings: bool = False,
    joint: Mapping[WorkloadId, JointAdvice] | None = None,
) -> None:
    """Print all of it; what cannot be a patch is told on standard error."""
    if output in {AdviceOutput.PATCHES, AdviceOutput.KUSTOMIZE}:
        yaml.safe_dump_all([patch(one) for one in told_patchable(advices)], sys.stdout, sort_keys=False)
        return
    if output is AdviceOutput.MARKDOWN:
        columns = [
            one for one in columns_of([replace(one, baselines={}) for one in advices], prices) if one.head != "OFF BY"
        ]
        sys.stdout.write("\n\n".join([markdown_table(columns), *totals_lines(advices, prices)]) + "\n")
        return

    def table(wide: bool) -> None:  # noqa: FBT001  as `Printable` has it
        _print_table(advices, prices, findings=findings, wide=wide)
        if joint is not None:
            print_text("", *(f"{one.id}: {joint_line(joint[one.id])}" for one in advices))

    result = Printable(
        table=table,
        document=lambda: document(advices, prices, joint),
        rows=lambda: [flat(one, prices) for one in advices],
        ids=lambda: (one.id for one in advices),
    )
    print_as(Output(output.value), result)


def _print_table(advices: Sequence[Advice], prices: Prices | None, *, findings: bool, wide: bool) -> None:
    if not advices:
        print_text("No workload matches.")
        return
    print_table(columns_of(advices, prices), [SEVERITY_STYLES[one.severity] for one in advices], wide=wide)
    print_text("", *totals_lines(advices, prices))
    print_text(" ".join(ADVICE_LEGEND), style="dim")
    if any(one.refused for one in advices) and not findings:
        print_text("CLUSTER refuses: --findings says by which rule, -o wide has the nearest values that pass.")
    if findings:
        print_text("", *proof_lines(advices))


def columns_of(advices: Sequence[Advice], prices: Prices | None) -> list[PrintedColumn]:
    """One row per workload, by importance; columns without any value are left out."""
    risks = any(one.sizes for one in advices)
    before = any(one.previous is not None for one in advices)
    others = list(dict.fromkeys(name for one in advices for name in one.baselines))
    return [
        PrintedColumn("WORKLOAD", [str(one.id) for one in advices]),
        PrintedColumn("SEVERITY", [str(one.severity) for one in advices], rank=1),
        *(_sizes(advices, "request", 0)),
        *(
            [PrintedColumn(f"COST A MONTH{_in(prices)}", [_cost(one, prices) for one in advices], rank=2, right=True)]
            if prices
            else []
        ),
        *([PrintedColumn("SINCE LAST", [_since(one) for one in advices], rank=2, words=True)] if before else []),
        PrintedColumn("OFF BY", [off_by(one) for one in advices], rank=3),
        PrintedColumn("CLUSTER", [_answer(one) for one in advices], rank=4),
        PrintedColumn("PODS", [str(one.replicas) for one in advices], rank=5, right=True),
        *(risk_columns([one.sizes for one in advices]) if risks else []),
        *(_sizes(advices, "limit", 8)),
        *(column for name in others for column in _other(advices, name)),
        PrintedColumn("WHY", [_cluster(one) for one in advices], rank=9, words=True),
    ]


def _sizes(advices: Sequence[Advice], kind: str, rank: int) -> list[PrintedColumn]:
    """CPU and memory of one pod, now and recommended."""
    return [
        PrintedColumn(
            f"{name.upper()} {kind.upper()}", [_size(one, name, kind) for one in advices], rank=rank, right=True
        )
        for name in (CPU_RESOURCE, MEMORY_RESOURCE)
    ]


def _size(one: Advice, name: str, kind: str) -> str:
    now, wanted = (_of(resources, name, kind) for resources in (one.now, one.recommended or one.now))
    return change(now, wanted)


def _of(resources: Resources, name: str, kind: str) -> str:
    value = getattr(resources, f"{name}_{kind}")
    return milli(value) if name == CPU_RESOURCE else mebi(None if value is None else whole_mebibytes(value))


def off_by(one: Advice) -> str:
    """What is requested too much (`idle`) or too little (`short`) in each pod: a shortage is not a saving."""
    wanted = one.recommended
    if wanted is None:
        return UNKNOWN_AMOUNT
    pairs = ((one.now.cpu_request, wanted.cpu_request, milli), (one.now.memory_request, wanted.memory_request, mebi))
    told = [
        f"{spoken(abs(old - new))} {'idle' if old > new else 'short'}"
        for old, new, spoken in pairs
        if old is not None and new is not None and spoken(old) != spoken(new)
    ]
    return ", ".join(told) or SAME


ADVICE_LEGEND = (
    "SEVERITY as KRR has it, by the worst of requests and limits, too much and too little alike: CRITICAL from half a",
    "core or 500Mi off, WARNING from 250m or 250Mi, OK from 100m or 100Mi, GOOD below; UNKNOWN while it holds.",
    "OFF BY, in one pod: requested and not needed (idle), or needed and not requested (short).",
)


def totals_lines(advices: Sequence[Advice], prices: Prices | None) -> list[str]:
    """Requests of all pods, now and as recommended; what is freed apart from what is missing; money with prices."""
    found = totals(advices, prices)
    if not found.with_a_recommendation:
        return []
    amounts = "; ".join(
        f"{of.now / unit:.1f} → {of.recommended / unit:.1f} {name} ({of.freed / unit:.1f} freed, "
        f"{of.added / unit:.1f} added)"
        for of, unit, name in (
            (found.cpu_request_cores, 1, "cores"),
            (found.memory_request_bytes, 2**30, "GiB of memory"),
        )
    )
    known, all_ = found.with_a_recommendation, found.workloads
    lines = [f"All pods of {known} of {all_} workloads that have a recommendation request: {amounts}."]
    if cost := found.cost_a_month:
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


def _worst(of: Iterable[float | None]) -> float | None:
    return max((value for value in of if value is not None), default=None)


def _once_in(a_year: float | None) -> str:
    if a_year is None:
        return UNKNOWN_AMOUNT
    days = DAYS_A_YEAR / a_year if a_year else math.inf
    return f"once in {days:,.0f} days" if days < NEVER_DAYS else "none"


def _pair(resources: Resources, name: str) -> str:
    request, limit = (spoken(name, getattr(resources, f"{name}_{kind}")) for kind in ("request", "limit"))
    return request if request == limit else f"{request}/{limit}"


def spoken(name: str, value: float | None) -> str:
    """Cores or bytes as a manifest writes them; memory to a whole MiB."""
    if value is None:
        return UNKNOWN_AMOUNT
    return text_of(milli_of(name, whole_mebibytes(value) if name == MEMORY_RESOURCE else value), name)


def _in(prices: Prices | None) -> str:
    return f", {prices.currency}" if prices and prices.currency else ""


def in_currency(prices: Prices | None) -> str:
    """Return the currency, to stand behind a word."""
    return _in(prices) or ", in the currency of the prices"


def _cost(one: Advice, prices: Prices) -> str:
    now, wanted = (one.cost_a_month(of, prices) for of in (one.now, one.recommended or one.now))
    return told_cost(now, wanted)


def told_cost(now: float | None, wanted: float | None) -> str:
    """Money of a month now and as recommended."""
    return change(*(UNKNOWN_AMOUNT if value is None else f"{value:,.2f}" for value in (now, wanted)))


def _other(advices: Sequence[Advice], name: str) -> list[PrintedColumn]:
    """Requests that another recommender would set."""
    said = [one.baselines.get(name) for one in advices]
    cpu = [milli(of.cpu_request) if of else UNKNOWN_AMOUNT for of in said]
    sums = [mebi(of.memory_request) if of else UNKNOWN_AMOUNT for of in said]
    head = name.upper().replace("_", " ")
    heads = (f"{head} CPU", f"{head} MEMORY")
    return [PrintedColumn(head, cells, rank=7, right=True) for head, cells in zip(heads, (cpu, sums), strict=True)]


def _since(one: Advice) -> str:
    if one.previous is None:
        return "new"
    told = [
        f"{name.replace('_', ' ')} {spoken(name.partition('_')[0], old)} → {spoken(name.partition('_')[0], new)}"
        for name, (old, new) in changes(one).items()
    ]
    return ", ".join(told) or SAME


def _answer(one: Advice) -> str:
    """What the proof says, in a word."""
    if one.recommended is None:
        return "not asked"
    if one.proof is None:
        return "no proof"
    return "accepts" if one.proof.accepted else "refuses"


def _cluster(one: Advice) -> str:
    """What the proof says, in a few words; and what would be accepted instead."""
    if one.recommended is None:
        return one.message
    if one.proof is None:
        return f"no proof: {one.unproved}"
    if one.proof.accepted:
        free = one.proof.free
        waiting = f", {free.waiting} wait for nodes" if free and free.waiting else ""
        open_ = sum(finding.verdict is Verdict.UNKNOWN for finding in one.proof.findings)
        return f"accepts{waiting}" + (f" ({open_} rules unknown)" if open_ else "")
    applied = one.applied
    nearest = (
        "nothing near would pass"
        if applied is None
        else f"nearest {_pair(applied, CPU_RESOURCE)} {_pair(applied, MEMORY_RESOURCE)}"
    )
    return f"refuses: {one.proof.refusals[0]}; {nearest}"


def proof_lines(advices: Iterable[Advice]) -> list[str]:
    """Every finding about every workload, to be read from top to bottom."""
    return [
        line
        for one in advices
        for line in (
            f"{one.id.kind} {one.id}: {one.message}",
            *(f"  {finding}" for finding in (*map(str, one.vpas), *finding_lines(one))),
        )
    ]


def finding_lines(one: Advice) -> list[str]:
    """What each rule of the cluster says to one workload's sizes; also for `explain`."""
    targets = target_lines(one)
    if one.proof is None:
        return [*targets, f"not proved: {one.unproved or one.reason}"]
    return [*targets, *(f"{finding.verdict:<8} {finding}" for finding in one.proof.findings)]


def target_lines(one: Advice) -> list[str]:
    """Targets of the HPA that go with the sizes."""
    return [f"the HPA's {of.metric} target goes with it: {of.value * 100:.0f} %" for of in one.targets]


def joint_line(one: JointAdvice) -> str:
    """`4 to 9 pods of 700m and 1Gi ...`, or why size and count stay as they are."""
    if one.plan is None or one.now is None:
        return f"count and size are not changed together: {one.reason}"
    before, after = (cores(point) for point in one.scale_point)
    saved = 1 - one.plan.cost / one.now.cost if one.now.cost else 0.0
    return (
        f"{_pods(one.plan)} instead of {_pods(one.now)} over the coming day, {_percent(saved)} cheaper; the HPA's "
        f"target stays {_percent(one.utilization)} and acts at {after} a pod instead of {before}; "
        f"{_cluster_clause(one)}"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _pods(plan: SizePlan) -> str:
    count = str(plan.replicas) if plan.least == plan.replicas else f"{plan.least} to {plan.replicas}"
    return f"{count} pods of {cores(plan.cpu)} and {memory(plan.memory)}"


def _cluster_clause(one: JointAdvice) -> str:
    advice = one.advice
    if advice is None or advice.proof is None:
        return f"not proved: {advice.unproved if advice else 'nothing is known of the cluster'}"
    return "the cluster accepts it"


# Patches.


def write_overlay(advices: Sequence[Advice], folder: Path, base: str) -> int:
    """A kustomize overlay in `folder`; how many patches it has. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = told_patchable(advices)
    for one in ours:
        (folder / file_name(one)).write_text(yaml.safe_dump(patch(one), sort_keys=False), encoding="utf-8")
    text = yaml.safe_dump(kustomization(ours, base), sort_keys=False)
    (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
    return len(ours)


def told_patchable(advices: Sequence[Advice]) -> list[Advice]:
    """Return the advices that can be written, and print the others, a line a reason."""
    unpatched: dict[str, list[str]] = defaultdict(list)
    for one in advices:
        if one.recommended is not None and not patchable(one):
            unpatched[why_unpatched(one)].append(str(one.id))
    sys.stderr.writelines(f"! {listed(ids)}: no patch: {why}\n" for why, ids in unpatched.items())
    return [one for one in advices if patchable(one)]


def why_unpatched(one: Advice) -> str:
    """Why a recommended size cannot be written."""
    if one.made_by:
        return f"it is made from {one.made_by}, which would take it back; state its size there"
    if one.proof is not None and one.proof.nearest is None:
        return f"the cluster takes no value near it: {one.proof.refusals[0]}"
    return one.unproved or "the names of its containers are not known; give --objects"
