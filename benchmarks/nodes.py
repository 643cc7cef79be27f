"""Are quantiles of sums honest? The joint forecast of all recorded workloads against what came, beside the extremes.

    nice -n 10 python -m benchmarks.nodes

For every origin and window: the sum over workloads of each one's largest demand, forecast at the 95 % quantile with the
measured dependence, as if independent, and as if all were high at once; and how often each of them held.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app.demo import staged
from forecaster.cycle.load_forecast import SPANS, demand_samples
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES
from forecaster.vertical.nodes.joint_samples import sum_of

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.app.demo import Stage
    from forecaster.vertical.nodes.joint_samples import DemandWindow

QUANTILE = 0.95
JUDGED = 4
"""Windows up to two hours ahead: later ones overlap too much from origin to origin to count as so many tries."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--origins", type=int, default=90)
    parser.add_argument("--every", type=int, default=30, help="minutes")
    given = parser.parse_args()
    held: dict[int, list[tuple[bool, bool, bool]]] = defaultdict(list)
    size: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    with staged() as stage:
        forecasts = [forecast(stage, stage.begin + timedelta(minutes=given.every * i)) for i in range(given.origins)]
        actual = Actual(stage, stage.begin + timedelta(minutes=given.every * given.origins) + SPANS[JUDGED].lead_time)
    generator = np.random.default_rng(0)
    for windows in forecasts:
        for i, window in enumerate(windows[:JUDGED]):
            came = actual.sum_of_peaks(window)
            if not np.isfinite(came):
                continue
            total = sum_of(window.cpu, QUANTILE, generator, known=window.dependence_known)
            values = (total.value, total.independent, total.together)
            held[i].append(tuple(came <= value for value in values))  # type: ignore[arg-type]
            size[i].append(tuple(value / came for value in values))  # type: ignore[arg-type]
    print(f"{len(held[0])} origins, {QUANTILE:.0%} quantile: share that held, and mean over what came")
    for i, tries in held.items():
        shares, sizes = np.mean(tries, axis=0), np.mean(size[i], axis=0)
        figures = ", ".join(
            f"{name} {share:.0%} ({ratio:.2f})"
            for name, share, ratio in zip(("measured", "independent", "at once"), shares, sizes, strict=True)
        )
        print(f"  {SPANS[i].lead_time} ahead: {figures}")


def forecast(stage: Stage, now: datetime) -> tuple[DemandWindow, ...]:
    outcome = stage.cycle.run(now)
    return demand_samples(
        outcome.inventory.workloads, stage.cycle.history, stage.cycle.forecaster, stage.cycle.policies, now
    ).windows


class Actual:
    """Measured demand of a window, once the recording has been played on; NaN where it ends before the window does."""

    def __init__(self, stage: Stage, end: datetime) -> None:
        stage.cycle.run(end)
        window = stage.cycle.history.window(CPU, FIVE_MINUTES)
        self.values = np.array(window.values, float)
        self.row = {id_.path: i for i, id_ in enumerate(window.keys)}
        self.end = window.end

    def sum_of_peaks(self, window: DemandWindow) -> float:
        newest = self.values.shape[1] - 1
        first = newest - (self.end - window.begin) // FIVE_MINUTES + 1
        last = newest - (self.end - window.until) // FIVE_MINUTES
        rows = [self.row[name] for name in window.workloads]
        return float(np.fmax.reduce(self.values[rows, first : last + 1], axis=1).sum())


if __name__ == "__main__":
    main()
