"""The least slack of memory that any recommender could have: `python -m benchmarks.size_bound`.

Request = limit on the containers of `benchmarks.vertical`, without a single OOM kill, by one that knows every day to
come: each container's days are cut into spans, each span has its highest peak as its size, and a change has a price.
Prints slack by the number of changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.bench.sizes import recorded
from benchmarks.made_up_memory import synthetic_memory
from forecaster.replay.size_replay import STEPS_A_DAY, Load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PRICES = (1.0, 0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.0)
"""Prices of a change, as shares of the container's usage over all days."""


class Sized(NamedTuple):
    """Size of one container: its changes, and its request as a ratio of usage."""

    changes: int
    requested: float


def main() -> None:
    print("| containers | price of a change | changes | slack | of total |\n| --- | ---: | ---: | ---: | ---: |")
    for title, loads in (("recorded", recorded("memory")), ("made up", [synthetic_memory()])):
        for price in PRICES:
            print(f"| {title} | {price:g} | {cells(loads, price)} |")


def cells(loads: Sequence[Load], price: float) -> str:
    sized_rows = [
        (sized(peaks, used, price), used) for load in loads for peaks, used in zip(*days_of(load), strict=True)
    ]
    sizes, used = [row for row, _ in sized_rows], np.array([used for _, used in sized_rows])
    requested = np.array([row.requested for row in sizes])
    total = (requested * used).sum() / used.sum() - 1.0
    return f"{sum(row.changes for row in sizes)} | {requested.mean() - 1.0:.2f} | {total:.2f}"


def days_of(load: Load) -> tuple[Floats, Floats]:
    """Return [row, day] the peak of each day after the warm-up, and [row] the usage of all days, in days."""
    demand = load.demand[:, load.warm :]
    days = demand.shape[1] // STEPS_A_DAY
    demand = demand[:, : days * STEPS_A_DAY]
    peaks = np.nanmax(demand.reshape(len(demand), days, STEPS_A_DAY), axis=2)
    return np.fmax(peaks, 0.0), np.nanmean(demand, axis=1) * days


def sized(peaks: Floats, used: float, price: float) -> Sized:
    """The cheapest way to cut the days into spans; the first size is no change."""
    cost = np.full(len(peaks) + 1, np.inf)
    cost[0] = -price
    best = [Sized(-1, 0.0)] * (len(peaks) + 1)
    for end in range(1, len(peaks) + 1):
        highest = 0.0
        for first in range(end - 1, -1, -1):
            highest = max(highest, peaks[first])
            amount = highest * (end - first) / used
            if cost[first] + amount + price < cost[end]:
                cost[end] = cost[first] + amount + price
                best[end] = Sized(best[first].changes + 1, best[first].requested + amount)
    return best[-1]


if __name__ == "__main__":
    main()
