from __future__ import annotations

import numpy as np
import pytest

from forecaster.vertical.nodes.joint_samples import equal_ranks, past_ranks, samples, sum_of

LEVELS = (0.1, 0.5, 0.9)
DAY = 24


def history(*rows: list[float], days: int = 10) -> np.ndarray:
    return np.array([np.tile(row, days) for row in rows], float)


def noise(count: int, days: int = 40) -> np.ndarray:
    return np.random.default_rng(1).lognormal(0, 0.3, (count, days * DAY))


def test_a_season_that_all_share_is_no_dependence() -> None:
    """Both workloads peak at noon; the rest of their usage is independent."""
    season = np.tile(1 + 5 * np.sin(np.arange(DAY) / DAY * np.pi), 40)
    ranks = past_ranks(noise(2) * season, DAY, 1)
    assert abs(np.corrcoef(ranks)[0, 1]) < 0.1


def test_workloads_that_move_together_keep_their_ranks_together() -> None:
    usage = noise(1)
    ranks = past_ranks(np.vstack([usage, 3 * usage]), DAY, 1)
    assert np.allclose(ranks[0], ranks[1])


def test_the_sum_lies_between_independent_and_all_at_once() -> None:
    shared, own = noise(1), noise(20)
    quantiles = np.tile([1.0, 2.0, 4.0], (20, 1))
    drawn = samples(LEVELS, quantiles, past_ranks(own * shared, DAY, 1))
    total = sum_of(drawn, 0.9, np.random.default_rng(0))
    assert total.independent < total.value < total.together
    assert 0.2 < total.dependence < 0.9


def test_independent_workloads_need_less_than_the_sum_of_their_quantiles() -> None:
    drawn = samples(LEVELS, np.tile([1.0, 2.0, 4.0], (50, 1)), past_ranks(noise(50), DAY, 1))
    total = sum_of(drawn, 0.9, np.random.default_rng(0))
    assert total.dependence < 0.1
    assert total.value < 0.75 * total.together


def test_each_workload_keeps_its_own_quantiles() -> None:
    drawn = samples(LEVELS, np.array([[1.0, 2.0, 4.0]]), past_ranks(noise(1), DAY, 1))
    assert np.quantile(drawn[0], 0.5) == pytest.approx(2.0, rel=0.02)
    assert np.quantile(drawn[0], 0.9) == pytest.approx(4.0, rel=0.02)
    assert sum_of(drawn, 0.9, np.random.default_rng(0)).dependence == 1.0


def test_an_unknown_dependence_is_taken_as_all_at_once_and_says_so() -> None:
    drawn = samples(LEVELS, np.tile([1.0, 2.0, 4.0], (3, 1)), equal_ranks(3))
    total = sum_of(drawn, 0.9, np.random.default_rng(0), known=False)
    assert total.value == total.together == pytest.approx(12.0, rel=0.02)
    assert (total.samples, total.dependence) == (0, 1.0)


def test_a_single_day_has_no_ranks() -> None:
    assert past_ranks(np.ones((2, DAY)), DAY, 1).shape == (2, 0)


def test_a_workload_without_a_past_moves_with_the_others() -> None:
    known = noise(1)
    ranks = past_ranks(np.vstack([known, np.full_like(known, np.nan)]), DAY, 1)
    assert ranks.shape == known.repeat(2, axis=0).shape
    assert np.allclose(ranks[0], ranks[1])


def test_nobody_has_no_past_and_no_sum() -> None:
    assert past_ranks(np.empty((0, 5 * DAY)), DAY, 1).shape[0] == 0
    assert sum_of(np.empty((0, 10)), 0.9, np.random.default_rng(0)).value == 0.0
