"""What different lead times cost: `python -m benchmarks.spans`.

CPU of the forecasts of one signal for 10,000 workloads: one span for all, six spans for a sixth of the workloads each,
spread over the parts that are asked together, and the same where each part has one span.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app.compose import prepare_process
from forecaster.demand.fresh import FreshHistory
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.shards import ROWS, Shards
from models import Adaptive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models import Panel
    from models.adaptive import AdaptiveState
    from models.fitted import FittedRule

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARTS, POINTS, DAY = 79, 4032, 288
LEADS = (1, 3, 5, 8, 10, 15)


def main() -> None:
    prepare_process()
    history = waves(PARTS * ROWS)
    forecaster = Forecaster("adaptive", fits=PARTS, signals={CPU: Shards(FittedOnce())})
    ids = history.weeks.keys
    spans = [PeakSpan(lead * MINUTE, 3 * MINUTE) for lead in LEADS]
    each = len(ids) // len(spans)
    asked = {
        "one span": {spans[1]: ids},
        "six, spread": {span: ids[i :: len(spans)] for i, span in enumerate(spans)},
        "six, by parts": {span: ids[i * each : (i + 1) * each] for i, span in enumerate(spans)},
    }
    seconds = {name: cost(forecaster, history, wanted) for name, wanted in asked.items()}
    ratios = {name: round(value / seconds["one span"], 2) for name, value in seconds.items()}
    print(json.dumps({"workloads": len(ids), "one_span_s": round(seconds["one span"], 3), "ratios": ratios}))


@dataclass
class FittedOnce:
    """Adaptive, fitted on the first part and taken for every other: fitting is not what is measured."""

    name: str = "adaptive"
    first: FittedRule[AdaptiveState] | None = None

    def fit(self, panel: Panel) -> FittedRule[AdaptiveState]:
        self.first = self.first or Adaptive().fit(panel)
        return replace(self.first, history=panel)


def waves(count: int) -> FreshHistory:
    """Two weeks of daily waves with noise, each at its own level."""
    rng = np.random.default_rng(1)
    wave = 5 + 2 * np.sin(np.arange(POINTS) / DAY * 2 * np.pi)
    values = np.empty((count, POINTS), np.float32)
    for row in values:
        row[:] = wave * rng.uniform(0.5, 3.0) + rng.random(POINTS)
    ids = tuple(WorkloadId("shop", "Deployment", f"service-{i}") for i in range(count))
    weeks = Window(ids, NOW - (POINTS - 1) * FIVE_MINUTES, FIVE_MINUTES, values)
    return FreshHistory(weeks, np.empty((count, 0), np.float32), NOW)


def cost(forecaster: Forecaster, history: FreshHistory, wanted: Mapping[PeakSpan, Sequence[WorkloadId]]) -> float:
    """Seconds of CPU, the least of five after one, in which models are fitted."""
    seconds = []
    for _ in range(6):
        began = time.process_time()
        forecaster.peaks_by_span(CPU, history, wanted, NOW)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


if __name__ == "__main__":
    main()
