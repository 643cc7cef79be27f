"""Better, same or worse than the HPA alone, by the one definition that all reports use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.replay.account import Account
from forecaster.replay.comparison import NOTABLE_DIFFERENCE, Benefit, benefit

BETTER, SAME, WORSE = Benefit.BETTER, Benefit.SAME, Benefit.WORSE


def account(pod_hours: float, missing: float) -> Account:
    return Account(pod_hours, demand=100.0, missing=missing)


@pytest.mark.parametrize(
    ("candidate", "equal", "expected"),
    [
        ((12, 2.2), 2.0, WORSE),
        ((12, 2.1), 2.0, SAME),
        ((12, 1.0), 2.0, BETTER),
        ((12, 0.00001), 0.00009, SAME),
        ((12, 9.0), None, WORSE),
        ((12, 5.0), None, WORSE),
        ((12, 1.0), None, SAME),
        ((8, 5.0), None, BETTER),
        ((8, 9.0), None, SAME),
    ],
)
def test_for_the_same_pod_hours_less_short_is_better(
    candidate: tuple[float, float], equal: float | None, expected: Benefit
) -> None:
    at_equal_cost = None if equal is None else account(candidate[0], equal)
    assert benefit(account(10, 5.0), account(*candidate), at_equal_cost) is expected


@pytest.mark.parametrize(("pod_hours", "expected"), [(11, WORSE), (10.4, SAME), (9.6, SAME), (9, BETTER)])
def test_where_nothing_is_short_fewer_pod_hours_are_better(pod_hours: float, expected: Benefit) -> None:
    assert benefit(account(10, 0.0), account(pod_hours, 0.0), account(pod_hours, 0.0)) is expected


@given(st.floats(1, 100), st.floats(0, 100), st.floats(0, 100))
def test_what_is_better_one_way_is_worse_the_other_way(pod_hours: float, missing: float, other_missing: float) -> None:
    first, second = account(pod_hours, missing), account(pod_hours, other_missing)
    opposite = {BETTER: WORSE, WORSE: BETTER, SAME: SAME}
    assert benefit(second, first, second) is opposite[benefit(first, second, first)]


@given(st.floats(1, 100), st.floats(0.001, 100), st.floats(0, NOTABLE_DIFFERENCE * 0.99))
def test_small_differences_are_the_same(pod_hours: float, missing: float, more: float) -> None:
    first, second = account(pod_hours, missing), account(pod_hours, missing * (1 + more))
    assert benefit(first, second, first) is SAME
