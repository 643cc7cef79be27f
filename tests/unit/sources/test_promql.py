from __future__ import annotations

import re
from datetime import timedelta

import pytest

from forecaster.sources import promql


def test_quotes_backslashes_and_line_ends_are_escaped() -> None:
    assert promql.quoted('a"b\\c\nd') == r'"a\"b\\c\nd"'


def test_labels_become_matchers_to_append() -> None:
    assert promql.equalities({"cluster": 'p"1', "zone": "x"}) == r',cluster="p\"1",zone="x"'


def test_no_labels_become_nothing() -> None:
    assert not promql.equalities({})


def test_any_of_matches_exactly_the_names() -> None:
    pattern = re.compile(promql.any_of(["team-a", "kube.system", "a|b"]))
    assert [name for name in ("team-a", "kube.system", "kubexsystem", "a|b", "a") if pattern.fullmatch(name)] == [
        "team-a",
        "kube.system",
        "a|b",
    ]


def test_any_of_leaves_the_hyphen_alone() -> None:
    r"""RE2, which Prometheus uses, refuses `\-`."""
    assert promql.any_of(["team-a"]) == "team-a"


@pytest.mark.parametrize(
    ("span", "text"),
    [(timedelta(minutes=2), "2m"), (timedelta(seconds=90), "1m30s"), (timedelta(hours=1), "1h")],
)
def test_durations(span: timedelta, text: str) -> None:
    assert promql.duration(span) == text


def test_only_known_placeholders_are_filled() -> None:
    assert promql.filled('rate(x[$window]) "$1" $other', {"window": "5m"}) == 'rate(x[5m]) "$1" $other'


def test_a_value_that_looks_like_a_placeholder_stays_as_it_is() -> None:
    assert promql.filled("{$labels}[$window]", {"labels": 'a="$window"', "window": "5m"}) == '{a="$window"}[5m]'
