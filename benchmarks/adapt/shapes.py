"""Six load shapes in requests per second, a value for each five minutes, by the parameters that ADAPT states.

Source of the parameters: H. S. Baghel, ADAPT, arXiv 2605.15788, and the experiment's published configuration. A day
has 288 values there; here every day is drawn anew, so that a week of them has the same shape and no day twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BINS = 288
LEAST = 5.0
"""Requests per second below which no shape goes."""


def smooth(rng: Generator) -> Floats:
    """One slow wave a day, with little noise."""
    return _bounded(200 + 150 * np.sin(2 * np.pi * _bins() / BINS - np.pi / 2) + rng.normal(0, 20, BINS), 300)


def bursty(rng: Generator) -> Floats:
    """A low level with eight to twelve short bursts at any time."""
    bursts = [_bell(rng.integers(10, BINS - 10), rng.integers(3, 9), rng.uniform(100, 400)) for _ in range(_some(rng))]
    return _bounded(30 + rng.normal(0, 4, BINS) + np.sum(bursts, axis=0), 600)


def _some(rng: Generator) -> int:
    return int(rng.integers(8, 13))


def bimodal(rng: Generator) -> Floats:
    """Three hours low, three hours high."""
    high = _bins() // 36 % 2 == 1
    return _bounded(np.where(high, rng.normal(200, 20, BINS), rng.normal(40, 8, BINS)), 400)


def diurnal_burst(rng: Generator) -> Floats:
    """A wave of two hours with four wide bursts at any time."""
    bursts = [_bell(rng.integers(48, 240), rng.integers(6, 18), rng.uniform(80, 200)) for _ in range(4)]
    return _bounded(
        200 + 150 * np.sin(2 * np.pi * _bins() / 24) + rng.normal(0, 20, BINS) + np.sum(bursts, axis=0), 500
    )


def flash_crowd(rng: Generator) -> Floats:
    """Quiet, and one crowd that comes within an hour and stays for six."""
    since = _bins() - int(0.60 * BINS)
    inside = (since >= 0) & (_bins() < int(0.85 * BINS))
    crowd = 450 * np.clip(since / 12, 0, 1) + np.where(since >= 12, rng.normal(0, 15, BINS), 0)
    return _bounded(30 + rng.normal(0, 3, BINS) + np.where(inside, crowd, 0), 600)


def slow_ramp_up(rng: Generator) -> Floats:
    """From low to high in a day, with one bump at noon."""
    return _bounded(np.linspace(50, 350, BINS) + rng.normal(0, 5, BINS) + _bell(BINS // 2, 8, 80), 500)


SHAPES: Mapping[str, Callable[[Generator], Floats]] = {
    "smooth": smooth,
    "bursty": bursty,
    "bimodal": bimodal,
    "diurnal burst": diurnal_burst,
    "flash crowd": flash_crowd,
    "slow ramp-up": slow_ramp_up,
}


def _bins() -> Floats:
    return np.arange(BINS, dtype=float)


def _bell(place: int, width: int, height: float) -> Floats:
    """A bell of `width` bins, whose standard deviation is a quarter of that, one bin at least."""
    away = _bins() - place
    return np.where(np.abs(away) <= width / 2, height * np.exp(-0.5 * (away / max(width / 4, 1)) ** 2), 0.0)


def _bounded(values: Floats, most: float) -> Floats:
    return np.clip(values, LEAST, most)
