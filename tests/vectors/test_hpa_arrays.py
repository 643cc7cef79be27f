"""Every case of the HPA vectors that meets arithmetic, combination, stabilization or bounds, with the arrays in them.

The files come from `--hpa-vectors DIR`, as in `test_hpa_vectors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vectors.conftest import HERE
from tests.vectors.documents import load
from tests.vectors.hpa_arrays import Arrays
from tests.vectors.test_hpa_vectors import SHOWN, compare

if TYPE_CHECKING:
    from pathlib import Path

LEAST = {
    "utilization": 1700,
    "average": 900,
    "per-pod value": 6000,
    "combination": 8000,
    "stabilization": 2300,
    "bounds": 2300,
}
"""Answers of the arrays over all cases."""
FAMILIES = {"limit_legacy", "reconcile", "replica_calculation", "stabilize_legacy", "trace", "trajectory"}


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> Arrays:
    installed = Arrays()
    installed.install(monkeypatch)
    return installed


@pytest.mark.usefixtures("arrays")
def test_every_case_agrees_with_the_arrays_in_the_controller(hpa_vectors: Path) -> None:
    document = load(hpa_vectors)
    cases = [(case.get("kind") or document["kind"], case) for case in document["cases"]]
    differences = [difference for kind, case in cases if kind in FAMILIES and (difference := compare(kind, case))]
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences[:SHOWN])


def test_the_arrays_answer_most_questions_of_the_vectors(arrays: Arrays) -> None:
    """Use the repository's own copy, so that the numbers are fixed: no rule is passed by in silence."""
    for path in sorted((HERE / "hpa").glob("*.json*")):
        document = load(path)
        for case in document["cases"]:
            kind = case.get("kind") or document["kind"]
            if kind in FAMILIES:
                compare(kind, case)
    assert {rule: count >= LEAST[rule] for rule, count in arrays.answered.items()} == dict.fromkeys(LEAST, True)
