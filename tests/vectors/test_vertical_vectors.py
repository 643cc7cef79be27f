"""Every case of every file of vertical vectors, compared value by value.

The files come from `--vertical-vectors DIR`; without it from the repository's copy, and from ../shared/vectors/vertical
where that folder lies beside the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.documents import load
from tests.vectors.vertical_suites import SUITES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vectors.conftest import Agreement
    from tests.vectors.vertical_comparison import Json

SHOWN = 10
FORMAT = ("vertical-vectors", 1)


def test_every_case_agrees_with_the_cluster(vertical_vectors: Path, vertical_agreement: Agreement) -> None:
    document = load(vertical_vectors)
    assert (document["format"], document["formatVersion"]) == FORMAT, vertical_vectors.name
    suite = document["suite"]
    differences = []
    for case in document["cases"]:
        difference = compare(suite, case)
        vertical_agreement.count(suite, agrees=not difference)
        differences += [difference] if difference else []
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences[:SHOWN])


def compare(suite: str, case: Json) -> str:
    """Text of the differences, or an empty string. A suite that nobody answers counts as a difference."""
    answerer = SUITES.get(suite.removeprefix("random-"))
    if answerer is None:
        return f"{case['id']}: suite {suite!r} is not known"
    difference = answerer.compare(case["expect"], answerer.answer(case["input"]))
    return f"{case['id']}: {difference}" if difference else ""
