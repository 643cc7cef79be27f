"""Decisions on made-up load that switches, is mostly zero, jumps, or moves to another level.

Recorded load has little of it, and it is where a forecast can do harm. No rule of ours was chosen on these series. The
networks that know similar moments have learned from series of the first five kinds, drawn from other seeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bench.decisions import hpa_accounts
from benchmarks.bench.frontier import compared, frontier_table
from benchmarks.bench.loads import DAY_SECONDS, Series
from benchmarks.bench.ours import our_accounts
from benchmarks.bench.replay import TICK, replay_of
from benchmarks.switching import DAYS, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.bench.frontier import Comparison
    from benchmarks.bench.replay import Replay
    from benchmarks.bench.tables import Table

    Floats = NDArray[np.float64]

SEED = 29
START = 1_700_006_400
"""A midnight."""
OF_A_KIND = 4
NOISE = 0.1


def made_up_table(start_up: int, of_a_kind: int = OF_A_KIND) -> Table:
    """A line a kind of load, and one for all: ours beside the plain HPA, as in the tables of recorded load."""
    played = list(replays(of_a_kind))
    hpa, own = hpa_accounts(played, start_up), our_accounts(played, start_up)
    by_kind: dict[str, list[Comparison]] = {}
    for replay in played:
        by_kind.setdefault(replay.family, []).append(compared(own[replay.name], hpa[replay.name]))
    by_kind["all"] = [comparison for comparisons in by_kind.values() for comparison in comparisons]
    return frontier_table(f"Decisions on made-up load, pods ready in {start_up} minutes", by_kind, "load")


def replays(of_a_kind: int) -> Iterator[Replay]:
    """Three weeks by the minute of each kind, of which the last days are replayed."""
    day = DAY_SECONDS // TICK
    for place, kind in enumerate((*KINDS, mostly_zero, level_shift, flash_crowds)):
        for number in range(of_a_kind):
            rng = np.random.default_rng((SEED, place, number))
            values = kind(DAYS * day, day, rng) * np.exp(NOISE * rng.standard_normal(DAYS * day))
            title = kind.__name__.replace("_", " ")
            series = Series(f"{title}/{number}", title, "requests", TICK, TICK, START, values)
            if (replay := replay_of(series)) is not None:
                yield replay


def mostly_zero(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """Requests of very different weight in some minutes of the day, nothing in all others."""
    wave = 1 + np.sin(2 * np.pi * np.arange(bins) / day)
    return np.where(rng.random(bins) < rng.uniform(0.02, 0.2) * wave, rng.lognormal(0, 1, bins), 0.0)


def level_shift(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """A daily wave that moves to another level for good within the last two days."""
    moved = np.arange(bins) >= bins - int(rng.integers(day // 4, 2 * day))
    return _wave(bins, day, rng) * np.where(moved, rng.choice([rng.uniform(0.2, 0.6), rng.uniform(1.6, 4)]), 1.0)


def flash_crowds(bins: int, day: int, rng: np.random.Generator) -> Floats:
    """A daily wave, and about once in two days a crowd of several times as much, gone within an hour or two."""
    out = _wave(bins, day, rng)
    for start in np.flatnonzero(rng.random(bins) < 0.5 / day).tolist():
        stays = np.arange(bins - start) / rng.uniform(day / 48, day / 12)
        out[start:] += rng.uniform(1, 6) * np.exp(-stays)
    return out


def _wave(bins: int, day: int, rng: np.random.Generator) -> Floats:
    return 1 + rng.uniform(0.2, 0.9) * np.sin(2 * np.pi * (np.arange(bins) / day + rng.random()))
