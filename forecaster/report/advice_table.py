"""Advice as a table for people. Memory always has a binary suffix, as manifests write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from forecaster.domain.amounts import UNKNOWN, cores, memory
from forecaster.report.advice_view import changes
from forecaster.vertical.admission.advice import whole_mebibytes
from forecaster.vertical.admission.checks import Verdict
from forecaster.vertical.admission.cluster import milli_of
from forecaster.vertical.cluster_rules.resource_list import CPU, MEMORY, text_of
from forecaster.vertical.recommenders.krr import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.cycle.joint_sizes import JointAdvice
    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.vertical.admission.advice import Advice, ResourcePrices
    from forecaster.vertical.sizing.joint import SizePlan


STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "yellow",
    Severity.OK: "",
    Severity.GOOD: "green",
    Severity.UNKNOWN: "dim",
}
_SAME = "="


def table_of(advices: Sequence[Advice], prices: ResourcePrices | None) -> Table:
    """One row per workload; columns without any value are left out."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ["WORKLOAD", "PODS", "SEVERITY", "CPU", "MEMORY"]
    risks = any(one.sizes for one in advices)
    columns += ["RISK"] if risks else []
    columns += ["COST A MONTH"] if prices else []
    others = list(dict.fromkeys(name for one in advices for name in one.baselines))
    columns += [name.upper() for name in others]
    before = any(one.previous is not None for one in advices)
    columns += [*(["SINCE LAST"] if before else []), "CLUSTER"]
    for name in columns:
        table.add_column(name, no_wrap=name not in {"CLUSTER", "SINCE LAST"})
    for one in advices:
        cells = [str(one.id), str(one.replicas), str(one.severity), *_sizes(one)]
        cells += [_risk(one)] if risks else []
        cells += [_cost(one, prices)] if prices else []
        cells += [_other(one.baselines.get(name)) for name in others]
        cells += [_since(one)] if before else []
        table.add_row(*cells, _cluster(one), style=STYLES[one.severity])
    return table


def _sizes(one: Advice) -> list[str]:
    """Request/limit now and recommended, of one pod."""
    return [
        _change(_pair(one.now, name), _pair(one.recommended, name) if one.recommended else None)
        for name in (CPU, MEMORY)
    ]


def _risk(one: Advice) -> str:
    """Time that CPU wants more than the request, and the chance that a peak of memory passes its bound; the worst."""
    cpu = [size.cpu.over_request for size in one.sizes if size.cpu and size.cpu.over_request is not None]
    bounds = [
        size.memory.over_request if size.memory.over_limit is None else size.memory.over_limit
        for size in one.sizes
        if size.memory
    ]
    memory_ = [bound for bound in bounds if bound is not None]
    told = [f"cpu {max(cpu):.1%}"] if cpu else []
    return ", ".join([*told, *([f"memory {max(memory_):.1%}"] if memory_ else [])]) or UNKNOWN


def _change(now: str, wanted: str | None) -> str:
    if wanted is None:
        return f"{now} (hold)"
    return now if now == wanted else f"{now} → {wanted}"


def _pair(resources: Resources, name: str) -> str:
    request, limit = (spoken(name, getattr(resources, f"{name}_{kind}")) for kind in ("request", "limit"))
    return request if request == limit else f"{request}/{limit}"


def spoken(name: str, value: float | None) -> str:
    """Cores or bytes as a manifest writes them; memory to a whole MiB."""
    if value is None:
        return UNKNOWN
    return text_of(milli_of(name, whole_mebibytes(value) if name == MEMORY else value), name)


def _cost(one: Advice, prices: ResourcePrices | None) -> str:
    if prices is None:
        return ""
    now, wanted = (prices.a_month(of, one.replicas) if of else None for of in (one.now, one.recommended))
    texts = [UNKNOWN if value is None else f"{value:,.2f}" for value in (now, wanted)]
    return texts[0] if wanted is None or texts[0] == texts[1] else " → ".join(texts)


def _other(said: Resources | None) -> str:
    return UNKNOWN if said is None else f"{spoken(CPU, said.cpu_request)} {spoken(MEMORY, said.memory_request)}"


def _since(one: Advice) -> str:
    if one.previous is None:
        return "new"
    told = [
        f"{name.replace('_', ' ')} {spoken(name.partition('_')[0], old)} → {spoken(name.partition('_')[0], new)}"
        for name, (old, new) in changes(one).items()
    ]
    return ", ".join(told) or _SAME


def _cluster(one: Advice) -> str:
    """What the proof says, in a few words; and what would be accepted instead."""
    if one.recommended is None:
        return f"hold: {one.reason}"
    if one.proof is None:
        return f"no proof: {one.unproved}"
    if one.proof.accepted:
        free = one.proof.free
        waiting = f", {free.waiting} wait for nodes" if free and free.waiting else ""
        open_ = sum(finding.verdict is Verdict.UNKNOWN for finding in one.proof.findings)
        return f"accepts{waiting}" + (f" ({open_} rules unknown)" if open_ else "")
    applied = one.applied
    nearest = (
        "nothing near would pass" if applied is None else f"nearest {_pair(applied, CPU)} {_pair(applied, MEMORY)}"
    )
    return f"refuses: {one.proof.refusals[0]}; {nearest}"


def proof_lines(advices: Iterable[Advice]) -> list[str]:
    """Every finding about every workload, to be read from top to bottom."""
    return [
        line
        for one in advices
        for line in (f"{one.id.kind} {one.id}: {one.message}", *("  " + finding for finding in finding_lines(one)))
    ]


def finding_lines(one: Advice) -> list[str]:
    """What each rule of the cluster says to one workload's sizes; also for `explain`."""
    targets = [f"the HPA's {of.metric} target goes with it: {of.value * 100:.0f} %" for of in one.targets]
    if one.proof is None:
        return [*targets, f"not proved: {one.unproved or one.reason}"]
    return [*targets, *(f"{finding.verdict:<8} {finding}" for finding in one.proof.findings)]


def joint_lines(found: Iterable[tuple[WorkloadId, JointAdvice]]) -> list[str]:
    """One paragraph for each workload."""
    return [f"{id_}: {joint_line(one)}" for id_, one in found]


def joint_line(one: JointAdvice) -> str:
    """`4 to 9 pods of 700m and 1Gi ...`, or why size and count stay as they are."""
    if one.plan is None or one.now is None:
        return f"count and size are not changed together: {one.reason}"
    before, after = (cores(point) for point in one.scale_point)
    saved = 1 - one.plan.cost / one.now.cost
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
