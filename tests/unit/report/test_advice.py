from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.workload import Resources, WorkloadId
from forecaster.report.advice import proof_lines, spoken, totals_lines, writable_advices
from forecaster.report.advice_view import changes, document, read_previous
from forecaster.vertical.admission.advice import Advice
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.recommenders.baselines import Severity
from tests.support.cluster_rules import APP, block, context, limits
from tests.support.recommendations import GIB

if TYPE_CHECKING:
    import pytest

    from forecaster.vertical.admission.proof import Proof

WEB = WorkloadId("shop", "Deployment", "web")
NOW = Resources(1.0, None, GIB, GIB)
WANTED = Resources(0.6, None, GIB, GIB)


def advice(name: str = APP, *, proof: Proof | None = None, previous: Resources | None = None) -> Advice:
    proof = proof or prove({name: block("600m", "1Gi")}, context())
    return Advice(WEB, 3, NOW, WANTED, "sized", "why", Severity.WARNING, proof=proof, previous=previous)


def test_a_pod_whose_containers_nobody_names_has_no_patch_and_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert writable_advices([advice("pod")]) == []
    assert "the names of its containers are not known; give --objects" in capsys.readouterr().err


def test_where_nothing_near_would_pass_the_reason_is_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = prove({APP: block("600m", "1Gi")}, context(limit_ranges=(limits(min={"cpu": "2"}, max={"cpu": "1"}),)))
    assert writable_advices([advice(proof=nothing)]) == []
    assert "minimum 2 is above maximum 1" in capsys.readouterr().err


def test_amounts_are_written_as_manifests_write_them() -> None:
    texts = [
        spoken("cpu", 0.5),
        spoken("cpu", 12.0),
        spoken("memory", 1.5 * GIB),
        spoken("memory", 1e9),
        spoken("cpu", None),
    ]
    assert texts == ["500m", "12", "1536Mi", "954Mi", "–"]


def test_a_document_is_the_previous_run_of_the_next_one() -> None:
    assert read_previous(msgspec.to_builtins(document([advice()], None))) == {WEB: WANTED}


def test_only_what_differs_has_changed() -> None:
    before = Resources(0.5, None, GIB, GIB)
    assert changes(advice(previous=before)) == {"cpu_request": (0.5, 0.6)}
    assert changes(advice(previous=WANTED)) == {}


def test_a_workload_without_a_request_is_in_no_sum_and_that_is_said() -> None:
    """Nothing may be requested today, or that is not known: neither is a sum of its pods."""
    without = replace(advice(), id=WEB._replace(name="best"), now=Resources(None, None, GIB, GIB))
    first, left_out = totals_lines([advice(), without], None)
    assert first.startswith("All pods of 2 of 2 workloads that have a recommendation request: 3.0 → 1.8 cores")
    assert left_out == "Not in these sums: 1 workload without a request of CPU or memory today."
    assert document([without, advice()], None).totals.without_a_request == 1
    assert len(totals_lines([advice()], None)) == 1


def test_the_proof_is_told_rule_by_rule() -> None:
    lines = proof_lines([advice()])
    assert lines[0] == "Deployment shop/web: why"
    assert any(line.startswith("  unknown  node fit") for line in lines)
