"""Sizing beside an HPA on the same request: the compounding shrink cannot happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.vertical.sizing.pod import MAX_TARGET, MIN_TARGET, request_beside_hpa
from tests.oracles.scale_point import naive_rounds

requests = st.floats(0.01, 64)
targets = st.floats(0.1, 1.0)
used_cores = st.lists(st.floats(0.001, 1000), min_size=1, max_size=30)


@given(requests, targets, used_cores)
def test_whatever_is_wanted_however_often_the_hpa_acts_at_the_same_load(
    request: float, target: float, wishes: list[float]
) -> None:
    point = request * target
    for wish in wishes:
        request, target = request_beside_hpa(request, target, wish)
        assert request * target == pytest.approx(point)
        assert MIN_TARGET - 1e-9 <= target <= MAX_TARGET + 1e-9


@given(requests, targets)
def test_usage_that_the_hpa_holds_at_its_target_does_not_shrink_the_request(request: float, target: float) -> None:
    """The vertical rule follows usage, and the HPA holds usage at request times target: the loop of the two."""
    first, first_target = request_beside_hpa(request, target, request * target)
    for _ in range(50):
        request, target = request_beside_hpa(first, first_target, first * first_target)
        assert request == pytest.approx(first)


def test_without_that_it_shrinks_for_ever() -> None:
    assert naive_rounds(1.0, 0.8, 1.0, 50)[-1] < 2e-5
