"""Spread: empirical quantiles of errors, and quantiles of any level read from a short table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

from .clean import filled
from .forecast import StepWindow
from .panel import Floats, Panel

# Denser where money is: reserves are decided between p80 and p99.
TABLE_LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)


@cache
def normal_score(level: float) -> float:
    """Return the normal score of a quantile level, between which quantiles are interpolated."""
    return NormalDist().inv_cdf(level)


SCORES = np.array([normal_score(level) for level in TABLE_LEVELS])


def error_table(errors: Floats, axis: int = 1) -> Floats:
    """Quantiles of errors at TABLE_LEVELS, the levels in place of `axis`."""
    if not errors.shape[axis]:
        shape = [size if i != axis else len(TABLE_LEVELS) for i, size in enumerate(errors.shape)]
        return np.zeros(shape, errors.dtype)
    return np.moveaxis(_at_table_levels(np.sort(np.moveaxis(errors, axis, -1), axis=-1)), -1, axis)


def _at_table_levels(ordered: Floats) -> Floats:
    """Quantiles along the last axis, between neighbours by a straight line; a gap (sorted last) makes all of them one.

    As `np.quantile`, which partitions: for a dozen levels one sort is ten times as fast.
    """
    place = np.array(TABLE_LEVELS) * (ordered.shape[-1] - 1)
    below = np.floor(place).astype(np.intp)
    low, high = ordered[..., below], ordered[..., np.minimum(below + 1, ordered.shape[-1] - 1)]
    quantiles = low + (high - low) * (place - below).astype(ordered.dtype)
    return np.where(np.isnan(ordered[..., -1:]), ordered[..., -1:], quantiles)


def read_table(table: Floats, levels: Sequence[float], known: Sequence[float] = TABLE_LEVELS) -> Floats:
    """[series, quantile, ...] at any levels from [series, known level, ...]; straight lines between normal scores."""
    weights = between(tuple(levels), tuple(known)).astype(table.dtype)
    return np.asarray(np.tensordot(weights, table, axes=(1, 1)).swapaxes(0, 1))


@lru_cache(maxsize=64)
def between(levels: tuple[float, ...], known: tuple[float, ...]) -> Floats:
    """[level, known level] weights of linear interpolation between normal scores, continued beyond the last ones."""
    scores = np.array([normal_score(level) for level in known])
    weights = np.zeros((len(levels), len(known)))
    for i, level in enumerate(levels):
        score = normal_score(level)
        right = int(np.clip(np.searchsorted(scores, score), 1, len(known) - 1))
        share = (score - scores[right - 1]) / (scores[right] - scores[right - 1])
        weights[i, right - 1], weights[i, right] = 1 - share, share
    weights.flags.writeable = False
    return weights


# Past origins that are replayed; a p95 of 32 errors is rough, so a model used for decisions has a direct answer.
REPLAYS = 32


def window_maximum(values: Floats, window: StepWindow) -> Floats:
    """[series, time - window.last]: for each origin the largest value within the window after it.

    Column t belongs to the origin at the end of bin t.
    """
    count = max(0, values.shape[1] - window.last)
    columns = [values[:, first : first + count] for first in range(window.first, window.last + 1)]
    return np.asarray(np.maximum.reduce(columns))


def replayed_peaks(
    median: Callable[[Panel], Floats], history: Panel, window: StepWindow, levels: Sequence[float]
) -> Floats:
    """[series, quantile]: the largest median of the window plus quantiles of the error this rule made in the past.

    Not the largest of the step quantiles: how much the peak of a window exceeds the peak of its medians depends on how
    the steps move together, and only replayed windows know that. `median` gives [series, step] for a panel.
    """
    actual = window_maximum(filled(history.values), window)
    origins = _spaced(actual.shape[1])
    errors = [actual[:, origin] - _expected(median, _before(history, origin), window) for origin in origins]
    if not errors:
        return np.full((len(history), len(levels)), np.nan)
    spread = read_table(error_table(np.stack(errors, axis=1)), levels)
    return _expected(median, history, window)[:, None] + spread


def _expected(median: Callable[[Panel], Floats], history: Panel, window: StepWindow) -> Floats:
    return np.asarray(np.max(median(history)[:, window.first - 1 :], axis=1))


def _before(history: Panel, origin: int) -> Panel:
    return history.until(history.start + (origin + 1) * history.step)


def _spaced(count: int) -> list[int]:
    """Origins over the newer half, where a rule has enough history behind it."""
    origins = np.linspace(count // 2, max(0, count - 1), min(REPLAYS, count // 2))
    return [int(origin) for origin in np.unique(origins.astype(np.intp))]
