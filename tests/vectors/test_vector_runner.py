"""The runner must not agree by looking away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vectors.documents import load
from tests.vectors.test_hpa_vectors import compare

if TYPE_CHECKING:
    from pathlib import Path

CASE = {
    "id": "one",
    "input": {
        "current_replicas": 5,
        "desired_replicas": 7,
        "min_replicas": 3,
        "max_replicas": 8,
        "scale_up_limit_factor": 8.0,
        "scale_up_limit_minimum": 4.0,
    },
    "expected": {"replicas": 7, "reason": "DesiredWithinRange"},
}


def test_a_right_case_agrees() -> None:
    assert not compare("limit_legacy", CASE)


def test_a_wrong_value_differs() -> None:
    assert "expected 6, got 7" in compare("limit_legacy", CASE | {"expected": {"replicas": 6}})


def test_an_unknown_family_differs() -> None:
    assert "not known" in compare("limit_tomorrow", CASE)


def test_an_expectation_that_no_one_answers_differs() -> None:
    assert "no answer" in compare("limit_legacy", CASE | {"expected": {"mood": "fine"}})


def test_an_error_nobody_expected_differs() -> None:
    empty = {"id": "two", "input": {"source": "External", "items": []}, "expected": {}}
    assert "no_samples" in compare("sample_reading", empty)


def test_a_file_without_cases_is_skipped_aloud(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    index.write_text('{"seed": 7}')
    with pytest.raises(pytest.skip.Exception, match="no cases"):
        load(index)
