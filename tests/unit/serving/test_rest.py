from __future__ import annotations

from collections.abc import Sequence

import pytest

from forecaster.publish.reader import TableEntry
from forecaster.serving.rest import ProblemError, page, parse_query


def entry(name: str, namespace: str = "shop", verdict: str = "scale", reason: str = "forecast") -> TableEntry:
    return TableEntry(0, namespace, name, "Deployment", verdict, reason)


ENTRIES = tuple(entry(name) for name in "abcde")


def names(rows: list[TableEntry]) -> str:
    return "".join(row.name for row in rows)


def test_pages_follow_each_other_without_loss_or_repetition() -> None:
    first, token = page(ENTRIES, parse_query({"limit": "2"}))
    second, token = page(ENTRIES, parse_query({"limit": "2", "continue": token or ""}))
    third, end = page(ENTRIES, parse_query({"limit": "2", "continue": token or ""}))
    assert names([*first, *second, *third]) == "abcde"
    assert end is None


def test_the_next_page_follows_the_last_name_though_the_table_has_changed() -> None:
    _, token = page(ENTRIES, parse_query({"limit": "2"}))
    rows, _ = page((entry("a"), entry("bb"), entry("c")), parse_query({"continue": token or ""}))
    assert names(rows) == "bbc"


def test_filters_are_all_applied() -> None:
    entries = (entry("c", namespace="other", verdict="hold"), entry("a"), entry("b", verdict="hold"))
    rows, _ = page(entries, parse_query({"verdict": "hold", "namespace": "shop"}))
    assert names(rows) == "b"


class CountedEntries(Sequence[TableEntry]):
    """A fleet of 100,000 workloads, of which 3 are in the namespace `shop`; counts the rows that are looked at."""

    def __init__(self) -> None:
        others = (("a", 50_000), ("shop", 3), ("z", 49_997))
        self._rows = [entry(f"{i:05d}", namespace) for namespace, rows in others for i in range(rows)]
        self.looks = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> TableEntry:  # type: ignore[override]  # nothing takes a slice
        self.looks += 1
        return self._rows[row]


def test_a_small_namespace_of_a_large_fleet_is_listed_without_a_look_at_the_others() -> None:
    fleet = CountedEntries()
    rows, token = page(fleet, parse_query({"namespace": "shop", "limit": "2"}))
    rest, end = page(fleet, parse_query({"namespace": "shop", "continue": token or ""}))
    assert ([entry.name for entry in (*rows, *rest)], end) == (["00000", "00001", "00002"], None)
    assert page(fleet, parse_query({"namespace": "nowhere"})) == ([], None)
    assert fleet.looks < 100


def test_scale_means_every_count_that_is_recommended() -> None:
    entries = (entry("a", verdict="up"), entry("b", verdict="hold"), entry("c", verdict="keep"))
    assert names(page(entries, parse_query({"verdict": "scale"}))[0]) == "ac"
    assert names(page(entries, parse_query({"verdict": "up"}))[0]) == "a"


@pytest.mark.parametrize("limit", ["0", "-1", "5001", "ten", "", "9" * 5000, "²"])
def test_a_limit_out_of_range_is_refused(limit: str) -> None:
    with pytest.raises(ProblemError, match="is not allowed"):
        parse_query({"limit": limit})


@pytest.mark.parametrize("token", ["x", "%%%", "é", "AAAA", "W10", "bnVsbA", "WyL_IiwiYSIsImIiXQ"])
def test_a_foreign_token_is_refused(token: str) -> None:
    with pytest.raises(ProblemError, match="continue token"):
        parse_query({"continue": token})
