"""Minutes that our recommendations are kept, chosen with each publisher of recorded load left out in turn.

A figure on the very series by which a rule was chosen flatters the rule. Here the minutes are chosen on the series of
all other publishers, and their result on the one left out is the figure that may be quoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bench.decisions import START_UPS, hpa_accounts
from benchmarks.bench.frontier import compared
from benchmarks.bench.loads import sample
from benchmarks.bench.ours import our_accounts
from benchmarks.bench.replay import replays
from benchmarks.bench.tables import Table
from benchmarks.bench_policy import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.bench.frontier import Comparison

    Comparisons = Mapping[str, Comparison]
    """By series, whose names begin with their publisher."""

TRIED = (1, 2, 3, 4, 8)
"""Minutes."""


def left_out_table(series: int | None = None) -> Table:
    """Table with a line for each publisher, and the mean with minutes chosen without the publisher of each series."""
    played = sample(replays(), series)
    start_up = START_UPS[0]
    hpa = hpa_accounts(played, start_up)
    by_minutes = {
        minutes: {name: compared(own, hpa[name]) for name, own in our_accounts(played, start_up, minutes).items()}
        for minutes in TRIED
    }
    columns = ("publisher left out", "series", "chosen without it", "unserved so", f"unserved, kept {KEPT} minutes")
    table = Table("Minutes that a recommendation is kept, chosen on the other publishers", columns)
    chosen = chosen_without(by_minutes)
    for publisher, minutes in chosen.items():
        own = [name for name in by_minutes[KEPT] if publisher_of(name) == publisher]
        table.add(publisher, str(len(own)), str(minutes), *_means(by_minutes, own, (minutes, KEPT)))
    unserved = [by_minutes[chosen[publisher_of(name)]][name].ratio for name in by_minutes[KEPT]]
    table.add(
        "all", str(len(unserved)), "", f"{np.nanmean(unserved):.3f}", *_means(by_minutes, by_minutes[KEPT], (KEPT,))
    )
    return table


def chosen_without(by_minutes: Mapping[int, Comparisons]) -> dict[str, int]:
    """By publisher the minutes with the smallest mean ratio of unserved demand on all series of the others."""
    names = next(iter(by_minutes.values()))
    return {
        publisher: min(by_minutes, key=lambda minutes: mean_ratio(by_minutes[minutes], _others(names, publisher)))
        for publisher in dict.fromkeys(map(publisher_of, names))
    }


def mean_ratio(comparisons: Comparisons, names: Iterable[str]) -> float:
    """Mean over these series of unserved demand at the HPA's pod-hours, as a ratio to the HPA's."""
    return float(np.nanmean([comparisons[name].ratio for name in names]))


def publisher_of(name: str) -> str:
    """The publisher of a series: its name begins with it."""
    return name.partition("/")[0]


def _others(names: Iterable[str], publisher: str) -> list[str]:
    return [name for name in names if publisher_of(name) != publisher]


def _means(by_minutes: Mapping[int, Comparisons], names: Iterable[str], compared: Iterable[int]) -> list[str]:
    names = list(names)
    return [f"{mean_ratio(by_minutes[minutes], names):.3f}" for minutes in compared]
