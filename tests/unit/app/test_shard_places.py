"""Shards on workers: none has more than its part, what was placed stays, and their reports are one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.app.sharding.cycle import merged
from forecaster.app.sharding.dask import assigned
from forecaster.domain.report import CycleReport
from tests.support.builders import NOON


@pytest.mark.parametrize("last", [{}, {0: "a", 1: "a", 2: "a", 3: "a"}, {0: "gone", 1: "a"}])
def test_no_worker_has_more_than_its_part(last: dict[int, str]) -> None:
    places = assigned(dict.fromkeys(range(4), 500), last, ["a", "b"])
    assert sorted(places.values()) == ["a", "a", "b", "b"]
    assert {shard for shard, worker in last.items() if places[shard] == worker} >= ({1} if 1 in last else set())


@given(
    st.dictionaries(st.integers(0, 40), st.integers(1, 20_000), min_size=1),
    st.dictionaries(st.integers(0, 40), st.sampled_from("abcdx")),
)
def test_shards_of_any_size_are_spread_by_their_workloads_and_then_stay(
    sizes: dict[int, int], last: dict[int, str]
) -> None:
    """No worker has more than its part and the largest shard; what was placed stays where it is."""
    places = assigned(sizes, last, "abcd")
    load = {worker: sum(sizes[shard] for shard, at in places.items() if at == worker) for worker in "abcd"}
    assert places.keys() == sizes.keys()
    assert max(load.values()) <= 1.1 * (sum(sizes.values()) / 4 + max(sizes.values()))
    assert assigned(sizes, places, "abcd") == places


def test_what_waits_in_any_shard_waits_in_the_fleet() -> None:
    report = merged(NOON, [CycleReport(NOON, at_maximum=1, gates_waiting=3), CycleReport(NOON, gates_waiting=4)])
    assert (report.at_maximum, report.gates_waiting) == (1, 7)
