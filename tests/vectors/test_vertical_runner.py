"""The runner of the vertical vectors must not agree by looking away."""

from __future__ import annotations

from typing import Any

from tests.vectors.test_vertical_vectors import compare
from tests.vectors.vertical_comparison import each, exact, listed, quantities, relative


def krr(expect: object) -> dict[str, Any]:
    return {"id": "one", "input": {"function": "format", "value": 2.0}, "expect": expect}


def test_a_right_case_agrees() -> None:
    assert not compare("krr-units", krr("2.0"))


def test_a_wrong_value_differs() -> None:
    assert "expected '3.0'" in compare("krr-units", krr("3.0"))


def test_an_unknown_suite_differs() -> None:
    assert "not known" in compare("vpa-tomorrow", krr("2.0"))


def test_a_random_suite_is_answered_like_the_one_it_extends() -> None:
    assert not compare("random-krr-units", krr("2.0"))


def test_true_is_not_one() -> None:
    assert exact(expected=True, answered=1)


def test_a_missing_and_a_superfluous_key_differ() -> None:
    assert each(exact)({"a": 1, "b": 2}, {"a": 1})
    assert each(exact)({"a": 1}, {"a": 1, "b": 2})
    assert not listed(each(exact))({"a": 1}, {"a": 1, "b": 2})
    assert listed(each(exact))({"a": 1, "b": 2}, {"a": 1})


def test_quantities_are_compared_by_number_and_lists_in_order() -> None:
    assert not quantities({"cpu": "1000m"}, {"cpu": "1"})
    assert quantities({"cpu": "1001m"}, {"cpu": "1"})
    assert quantities(["1", "2"], ["2", "1"])


def test_remarks_are_sets() -> None:
    assert not quantities({"remarks": ["a", "b"]}, {"remarks": ["b", "a"]})
    assert quantities({"remarks": ["a", "b"]}, {"remarks": ["a", "a"]})


def test_floats_agree_within_their_tolerance() -> None:
    assert not relative(1e-9)({"x": 1.0}, {"x": 1.0 + 1e-12})
    assert relative(1e-12)({"x": 1.0}, {"x": 1.0 + 1e-9})
    assert relative(1e-9)({"x": 1.0}, {"x": None})


def test_merged_histories_are_a_question_of_the_aggregate() -> None:
    states = [{"first": 300, "last": 400, "count": 3}, {"first": None, "last": None, "count": 0}]
    given = {"question": "merge", "states": [*states, {"first": 100, "last": 200, "count": 2}]}
    case = {"id": "one", "input": given, "expect": {"first": 100, "last": 400, "count": 5}}
    assert not compare("vpa-aggregate-state", case)
    assert compare("vpa-aggregate-state", {**case, "expect": {"first": 300, "last": 400, "count": 5}})


def test_emptiness_survives_a_checkpoint_with_and_without_instants() -> None:
    """Rounding leaves the lowest bucket below the least weight; a restored histogram is not empty for that."""
    steps = [{"op": "add", "value": 1, "weight": 1.0, "t": 0}, {"op": "add", "value": 5, "weight": 5000.0, "t": 0}]
    given = {"scheme": {"kind": "cpuDefault"}, "action": "roundtrip-isEmpty"}
    plain = [{key: value for key, value in step.items() if key != "t"} for step in steps]
    expect = {"before": False, "after": False}
    assert not compare("vpa-histogram-checkpoint", {"id": "one", "input": {**given, "steps": plain}, "expect": expect})
    decaying = {**given, "steps": steps, "halfLifeSeconds": 86400}
    assert not compare("vpa-histogram-checkpoint", {"id": "one", "input": decaying, "expect": expect})
    empty = {"id": "one", "input": {**given, "steps": []}, "expect": {"before": True, "after": True}}
    assert not compare("vpa-histogram-checkpoint", empty)
