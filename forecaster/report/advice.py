"""Advice on standard output or in files."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING

import yaml

from forecaster.report.advice_table import joint_lines, proof_lines, table_of
from forecaster.report.advice_view import document, flat
from forecaster.report.formats import AdviceOutput
from forecaster.report.printed import output_console
from forecaster.vertical.admission.patches import file_name, kustomization, patch, patchable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from forecaster.cycle.joint_sizes import JointAdvice
    from forecaster.domain.workload import WorkloadId
    from forecaster.vertical.admission.advice import Advice, ResourcePrices


def print_advice(
    advices: Sequence[Advice],
    output: AdviceOutput,
    prices: ResourcePrices | None,
    *,
    findings: bool = False,
    joint: Mapping[WorkloadId, JointAdvice] | None = None,
) -> None:
    """Print all of it; what cannot be a patch is told on standard error."""
    match output:
        case AdviceOutput.TABLE:
            _print_table(advices, prices, findings=findings)
            _print_joint(advices, joint)
        case AdviceOutput.JSON:
            sys.stdout.write(json.dumps(document(advices, prices, joint), indent=2) + "\n")
        case AdviceOutput.CSV:
            _print_csv(advices, prices)
        case AdviceOutput.PATCHES | AdviceOutput.KUSTOMIZE:
            yaml.safe_dump_all([patch(one) for one in told_patchable(advices)], sys.stdout, sort_keys=False)


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
    """Those that can be written; the others are named with the reason."""
    for one in advices:
        if one.recommended is not None and not patchable(one):
            sys.stderr.write(f"! {one.id}: no patch: {_why(one)}\n")
    return [one for one in advices if patchable(one)]


def _why(one: Advice) -> str:
    if one.proof is not None and one.proof.nearest is None:
        return f"the cluster takes no value near it: {one.proof.refusals[0]}"
    return one.unproved or "the names of its containers are not known; give --objects"


def _print_table(advices: Sequence[Advice], prices: ResourcePrices | None, *, findings: bool) -> None:
    console = output_console()
    console.print(table_of(advices, prices) if advices else "No workload matches.")
    if findings:
        console.print("\n".join(["", *proof_lines(advices)]), markup=False, highlight=False, soft_wrap=True)


def _print_joint(advices: Sequence[Advice], joint: Mapping[WorkloadId, JointAdvice] | None) -> None:
    if joint is not None:
        sys.stdout.write("\n".join(["", *joint_lines((one.id, joint[one.id]) for one in advices), ""]))


def _print_csv(advices: Sequence[Advice], prices: ResourcePrices | None) -> None:
    rows = [flat(one, prices) for one in advices]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
