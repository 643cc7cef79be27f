"""What a forecast could lose at the least: the arithmetic of `benchmarks.bounds`."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bounds import LEVELS, Told, between, least_lost, losses, lost, means


def series(came: np.ndarray, **said: np.ndarray) -> Told:
    """One series of which each method says the same at each level."""
    tables = {name: np.repeat(of[:, None], len(LEVELS), axis=1) for name, of in said.items()}
    around = np.pad(came, ((0, 0), (2, 2)), mode="edge")
    beside = np.stack([around[:, at : at + came.shape[1]] for at in (0, 1, 3, 4)], axis=-1)
    return Told("one", "family", came, tables, beside)


def test_who_is_told_the_level_of_a_level_series_loses_nothing() -> None:
    came = np.repeat(np.arange(1.0, 7.0)[:, None], 12, axis=1)
    found = losses(series(came, adaptive=came * 0 + 3, prior=came + 1, snaive_day=came * 0))
    assert found["ours, told the mean of all that comes"] == pytest.approx(0)
    assert found["adaptive"] > 0


def test_a_mixture_after_the_fact_loses_no_more_than_its_best_method() -> None:
    rng = np.random.default_rng(0)
    came = rng.normal(10, 1, (20, 12))
    found = losses(series(came, adaptive=came - 1, prior=came + 1, snaive_day=came * 0))
    best = found["best method of each series and quantile"]
    assert found["best mixture of each series and quantile"] < 0.2 * best
    assert best <= found["best method of each series"] <= min(found["adaptive"], found["snaive_day"])


def test_gaps_are_neither_scored_nor_learned_from() -> None:
    came = np.arange(24.0).reshape(2, 12)
    came[0, 3] = np.nan
    assert np.isfinite(means(came, 6)).all()
    assert lost(came, came + 1, 0.9) == pytest.approx(0.1 * 23)
    beside = np.stack([came - 1, came + 1], axis=-1)
    assert least_lost(came, between(came, beside), np.ones_like(came)) == pytest.approx(0, abs=1e-9)


def test_bins_too_coarse_for_a_part_have_no_figure_for_it() -> None:
    came = np.arange(8.0).reshape(4, 2)
    found = losses(series(came, adaptive=came, prior=came, snaive_day=came + 1))
    assert np.isnan(found["ours, told the mean of each half of it"])
    assert found["adaptive"] == 0
