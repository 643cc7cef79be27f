"""Every case of every file of HPA vectors, compared value by value.

The files come from `--hpa-vectors DIR`; without it from the repository's copy, and from ../shared/vectors/hpa where
that folder lies beside the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.documents import load
from tests.vectors.hpa_families import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vectors.conftest import Agreement
    from tests.vectors.hpa_wire import Json

SHOWN = 10


def test_every_case_agrees_with_the_controller(hpa_vectors: Path, hpa_agreement: Agreement) -> None:
    document = load(hpa_vectors)
    assert len(document["cases"]) == document["count"], f"{hpa_vectors.name} was cut"
    differences = []
    for case in document["cases"]:
        kind = case.get("kind") or document["kind"]
        difference = compare(kind, case)
        hpa_agreement.count(kind, agrees=not difference)
        differences += [difference] if difference else []
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences[:SHOWN])


def compare(kind: str, case: Json) -> str:
    """Text of the differences, or an empty string. An unknown family or expectation counts as a difference."""
    if kind not in FAMILIES:
        return f"{case['id']}: family {kind!r} is not known"
    answered = FAMILIES[kind](case["input"])
    wrong = {
        key: f"expected {value!r}, got {answered.get(key, 'no answer')!r}"
        for key, value in case["expected"].items()
        if key not in answered or answered[key] != value
    }
    if "error" in answered and "error" not in case["expected"]:
        wrong["error"] = f"expected none, got {answered['error']!r}"
    if "all_errors" in case and answered["all_errors"] != case["all_errors"]:
        wrong["all_errors"] = f"expected {case['all_errors']!r}, got {answered['all_errors']!r}"
    return f"{case['id']}: {wrong}" if wrong else ""
