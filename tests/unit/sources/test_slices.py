from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.sources.pacing import FIRST_PAUSE, BackOff, Slices, grid_between

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
FIVE = timedelta(minutes=5)


def test_both_ends_belong_to_the_grid() -> None:
    grid = grid_between(NOON, NOON + timedelta(hours=1), FIVE)
    assert (grid.start, grid.end, grid.points) == (NOON, NOON + timedelta(hours=1), 13)


def test_ends_between_points_move_inwards() -> None:
    grid = grid_between(NOON + timedelta(seconds=1), NOON + timedelta(minutes=14, seconds=59), FIVE)
    assert (grid.start, grid.end) == (NOON + FIVE, NOON + 2 * FIVE)


def test_a_range_without_a_point_is_empty() -> None:
    assert grid_between(NOON + timedelta(seconds=1), NOON + timedelta(seconds=2), FIVE).points == 0


def test_a_range_that_ends_before_it_starts_is_empty() -> None:
    assert grid_between(NOON, NOON - FIVE, FIVE).points == 0


def test_a_step_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="step must be positive"):
        grid_between(NOON, NOON, timedelta(0))


@given(points=st.integers(0, 500), cuts=st.lists(st.integers(1, 100), min_size=500, max_size=500))
def test_cuts_neither_lose_nor_repeat_a_point(points: int, cuts: list[int]) -> None:
    rest = grid_between(NOON, NOON + (points - 1) * FIVE, FIVE)
    instants = []
    for cut in cuts:
        piece, rest = rest.cut(cut)
        instants += [piece.at(index) for index in range(piece.points)]
    assert instants == [NOON + index * FIVE for index in range(points)]


@pytest.mark.parametrize(
    ("series", "expected"),
    [(0, 1000), (1, 1000), (10, 1000), (1_000, 100), (30_000, 3), (1_000_000, 1)],
)
def test_more_series_make_shorter_slices(series: int, expected: int) -> None:
    slices = Slices(grid_between(NOON, NOON + 5_000 * FIVE, FIVE), first=1, max_points=1_000, samples=100_000)
    slices.answered(series)
    piece = slices.next()
    assert piece is not None
    assert piece.points == expected


def test_a_question_that_was_answered_again_waits_no_longer_and_its_next_failure_is_a_first_one() -> None:
    back_off = BackOff()
    for _ in range(3):
        back_off.failed("owners", "took too long", NOON)
    assert back_off.waits("owners", NOON + 3 * FIRST_PAUSE)
    back_off.answered("owners")
    assert (back_off.waits("owners", NOON), back_off.why("owners")) == (False, "")
    back_off.failed("owners", "took too long", NOON)
    assert not back_off.waits("owners", NOON + FIRST_PAUSE)
