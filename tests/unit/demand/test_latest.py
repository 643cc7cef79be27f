from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from forecaster.demand.completeness import COMPLETE, LEAVING_PODS, CompletenessVerdict
from forecaster.demand.latest import Latest, LatestCache, latest
from forecaster.domain.signal import CPU, Measured, Unknown
from forecaster.domain.window import MINUTE, Block, Window
from tests.support.builders import NOON, after, minutes
from tests.support.recommendations import workload_id

GAP = np.nan
WEB, CART = workload_id("web"), workload_id("cart")


def latest_of(*rows: list[float]) -> Latest:
    """Minutes up to noon of the web, then of the cart."""
    values = np.array(rows, np.float32).reshape(len(rows), len(rows[0]) if rows else 3)
    columns = values.shape[1]
    return latest(Window((WEB, CART)[: len(rows)], after(1 - columns), MINUTE, values))


def test_the_newest_value_comes_with_its_instant() -> None:
    assert latest_of([1.0, 2.0, 3.0]).measured(WEB, minutes(5)) == Measured(3.0, NOON)


@pytest.mark.parametrize("age", [1, 5])
def test_an_older_value_is_used_while_it_is_fresh_enough(age: int) -> None:
    assert latest_of([7.0] + [GAP] * age).measured(WEB, minutes(5)) == Measured(7.0, after(-age))


def test_a_value_that_is_too_old_is_stale_and_says_how_old() -> None:
    unknown = latest_of([7.0] + [GAP] * 6).measured(WEB, minutes(5))
    assert unknown == Unknown("the latest sample is 6 min old, 5 min is the limit", stale=True)


def test_zero_is_a_value() -> None:
    assert latest_of([1.0, 0.0]).measured(WEB, minutes(5)) == Measured(0.0, NOON)


@pytest.mark.parametrize(
    "unknown", [latest_of([GAP, GAP]), latest_of(), latest_of([])], ids=["only gaps", "no row", "no column"]
)
def test_a_workload_without_a_sample_is_unknown(unknown: Latest) -> None:
    assert unknown.measured(WEB, minutes(5)) == Unknown("no sample")
    assert unknown.age() is None


def test_each_workload_has_its_own_newest_value() -> None:
    both = latest_of([1.0, GAP], [GAP, 2.0])
    assert both.measured(WEB, minutes(5)) == Measured(1.0, after(-1))
    assert both.measured(CART, minutes(5)) == Measured(2.0, NOON)


def test_the_age_is_that_of_the_freshest_workload() -> None:
    assert latest_of([1.0, GAP, GAP], [GAP, 2.0, GAP]).age() == MINUTE
    assert latest_of([1.0]).age() == timedelta(0)


def test_the_span_counts_known_minutes_only() -> None:
    assert latest_of([1.0, GAP, 3.0]).known.tolist() == [2]


def test_a_value_whose_part_is_known_to_be_missing_is_not_taken_from_history_as_a_whole() -> None:
    """Three pods of four answer at noon: what history has of that minute is no more than they use."""
    cache, values = LatestCache(), np.array([[7.0, 5.0]])
    verdict = CompletenessVerdict(np.array([[COMPLETE, LEAVING_PODS]]), np.array([[4.0, 3.0]]), np.array([[4.0, 4.0]]))
    cache.write(Block(CPU, (WEB,), after(-1), MINUTE, values), values, verdict)
    both = latest(Window((WEB,), after(-1), MINUTE, values.astype(np.float32)), cache)
    assert both.measured(WEB, minutes(5)) == Measured(7.0, after(-1))
