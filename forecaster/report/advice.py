"""Advice on standard output or in files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import yaml

from forecaster.report.advice_table import ADVICE_LEGEND, columns_of, joint_lines, proof_lines, styles_of, totals_lines
from forecaster.report.advice_view import document, flat
from forecaster.report.formats import AdviceOutput, Output
from forecaster.report.printed import Printable, print_as, print_table, print_text
from forecaster.vertical.admission.advice import file_name, kustomization, patch, patchable

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
    if output in {AdviceOutput.PATCHES, AdviceOutput.KUSTOMIZE}:
        yaml.safe_dump_all([patch(one) for one in told_patchable(advices)], sys.stdout, sort_keys=False)
        return

    def table(wide: bool) -> None:  # noqa: FBT001  as `Printable` has it
        _print_table(advices, prices, findings=findings, wide=wide)
        _print_joint(advices, joint)

    result = Printable(
        table=table,
        document=lambda: document(advices, prices, joint),
        rows=lambda: [flat(one, prices) for one in advices],
        ids=lambda: (one.id for one in advices),
    )
    print_as(Output(output.value), result)


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
    """Return the advices that can be written, and print the others with the reason."""
    for one in advices:
        if one.recommended is not None and not patchable(one):
            sys.stderr.write(f"! {one.id}: no patch: {_why(one)}\n")
    return [one for one in advices if patchable(one)]


def _why(one: Advice) -> str:
    if one.proof is not None and one.proof.nearest is None:
        return f"the cluster takes no value near it: {one.proof.refusals[0]}"
    return one.unproved or "the names of its containers are not known; give --objects"


def _print_table(advices: Sequence[Advice], prices: ResourcePrices | None, *, findings: bool, wide: bool) -> None:
    if not advices:
        print_text("No workload matches.")
        return
    print_table(columns_of(advices, prices), styles_of(advices), wide=wide)
    print_text("", *totals_lines(advices, prices))
    print_text(" ".join(ADVICE_LEGEND), style="dim")
    if any(one.refused for one in advices) and not findings:
        print_text("CLUSTER refuses: --findings says by which rule, -o wide has the nearest values that pass.")
    if findings:
        print_text("", *proof_lines(advices))


def _print_joint(advices: Sequence[Advice], joint: Mapping[WorkloadId, JointAdvice] | None) -> None:
    if joint is not None:
        print_text("", *joint_lines((one.id, joint[one.id]) for one in advices))
