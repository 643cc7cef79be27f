"""Namespaces of a KRR scan: all of them stay `*`."""

from __future__ import annotations

import pytest

from tests.oracles.krr import namespaces

KNOWN = ["kube-system", "robusta-frontend", "robusta-backend"]


@pytest.mark.parametrize("selected", [["*"], "*", ["*", "robusta-.*"], ["kube-system", "*"]])
def test_all_namespaces_are_not_listed(selected: list[str]) -> None:
    """A list would leave out namespaces that cannot be listed or come later, and would name those a scan excludes."""
    assert namespaces(selected, KNOWN) == {"*"}
    assert namespaces(selected, []) == {"*"}


def test_a_pattern_is_matched_from_the_start_of_a_name() -> None:
    assert namespaces(["robusta-.*"], KNOWN) == {"robusta-frontend", "robusta-backend"}
    assert namespaces(["system.*"], KNOWN) == set()


def test_a_name_is_taken_as_it_is() -> None:
    assert namespaces(["shop"], KNOWN) == {"shop"}
