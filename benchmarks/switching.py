"""Made-up load that switches: batch jobs, machines that are on or off, levels, bursts; recorded load has little of it.

Each series is drawn from a seed: its kind, how long it stays at a level and how regularly, how noisy a level is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DAYS = 21


def switching(series: int, day: int, seed: int = 0) -> Iterator[Floats]:
    """Yield `series` series of three weeks, `day` bins a day, in units of about 1."""
    for number in range(series):
        rng = np.random.default_rng((seed, number))
        drawn = KINDS[number % len(KINDS)](DAYS * day, day, rng)
        noise = np.exp(rng.standard_normal(len(drawn)) * 10 ** rng.uniform(-3, -0.5))
        floor = rng.choice([0.0, 10 ** rng.uniform(-3, -0.5)])
        yield np.maximum(drawn * noise + floor * (1 + 0.3 * rng.standard_normal(len(drawn))), 0.0)


def on_and_off(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """Two levels, each held for times of its own."""
    return _held(bins, (0.0, 1.0), [_lasting(day, rng) for _ in range(2)], rng)


def levels(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """Three to six levels in any order, each held for times of its own."""
    heights = rng.uniform(0, 1, rng.integers(3, 7))
    return _held(bins, tuple(rng.permutation(heights)), [_lasting(day, rng) for _ in heights], rng)


def jobs(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """Jobs of about the same length and shape that begin at no fixed time; several may run at once."""
    length = max(2, int(day * 10 ** rng.uniform(-2, 0)))
    starts = np.cumsum(rng.exponential(length * rng.uniform(1.2, 6), 4 * bins // length + 8)).astype(int)
    out, shape = np.zeros(bins), rng.uniform(0.3, 1, 4)
    for start in starts[starts < bins].tolist():
        lasts = max(2, int(length * rng.lognormal(0, 0.1)))
        part = np.interp(np.linspace(0, 3, lasts), np.arange(4), shape)[: bins - start]
        out[start : start + len(part)] += part
    return out


def daily_jobs(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """Jobs at about the same times of a day, on most days."""
    out = np.zeros(bins)
    for at in rng.integers(0, day, rng.integers(1, 4)).tolist():
        late, length, height = (
            rng.uniform(0, day / 24),
            max(2, int(day * 10 ** rng.uniform(-2, -0.5))),
            rng.uniform(0.3, 1),
        )
        for start in range(at, bins, day):
            if rng.random() < 0.9:
                begin = start + int(rng.exponential(late))
                out[begin : begin + int(length * rng.lognormal(0, 0.2))] += height
    return out


def bursts(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """Short bursts of very different heights above a little load."""
    out = np.full(bins, 0.05)
    for start in np.flatnonzero(rng.random(bins) < 10 ** rng.uniform(-2.5, -1)).tolist():
        out[start : start + int(rng.integers(1, max(2, day // 48)))] += 0.1 * (rng.pareto(1.5) + 1)
    return np.minimum(out, 5.0)


KINDS: tuple[Callable[[int, int, np.random.Generator], Floats], ...] = (on_and_off, levels, jobs, daily_jobs, bursts)


def _lasting(day: int, rng: np.random.Generator) -> tuple[float, float]:
    """Logarithm of how many bins a level lasts, and its spread."""
    return np.log(day) + rng.uniform(np.log(1 / 100), np.log(2)), rng.uniform(0.05, 1.2)


def _held(
    bins: int, heights: tuple[float, ...], lasting: list[tuple[float, float]], rng: np.random.Generator
) -> Floats:
    """Levels in turn."""
    out, at, turn = np.empty(bins), 0, int(rng.integers(len(heights)))
    while at < bins:
        until = at + max(1, int(rng.lognormal(*lasting[turn])))
        out[at:until] = heights[turn]
        at, turn = until, (turn + int(rng.integers(1, len(heights)))) % len(heights)
    return out
