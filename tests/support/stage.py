"""A small stage for the demo: one workload with an HPA, one without, and a cycle with given decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app.demo import Stage
from forecaster.cycle.run import Outcome
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.report import CycleReport
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS, Signal
from forecaster.domain.window import Inventory
from forecaster.sources.recorded import Recording
from tests.support.builders import workload
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

WEB = workload_id("web")
BATCH = workload_id("batch")


@dataclass
class Scripted:
    """Recommends `counts[minute]` for the web, holds where the script has None, repeats its last word."""

    counts: list[int | None]
    minute: int = -1

    def run(self, now: datetime) -> Outcome:
        self.minute += 1
        count = self.counts[min(self.minute, len(self.counts) - 1)]
        recommendations = [recommendation(WEB, at=now, replicas=count), recommendation(BATCH, at=now, replicas=1)]
        return Outcome(Inventory(now, ()), recommendations, CycleReport(at=now))


def stage(cores: list[float], counts: list[int | None]) -> Stage:
    """`cores[i]` is the web's demand in the minute that ends i minutes after noon. Four pods begin."""
    demand = np.array([cores, np.ones(len(cores))])
    unknown = np.full(demand.shape, np.nan)
    values: Mapping[Signal, np.ndarray[tuple[int, int], np.dtype[np.float64]]] = {
        CPU: demand,
        MEMORY: unknown,
        REQUESTS: unknown,
        PODS: np.full(demand.shape, 4.0),
    }
    recording = Recording(NOON, (workload(id=WEB), workload(id=BATCH, autoscaler=None)), values)
    return Stage("http://nowhere", recording, recording.fleet(NOON), Policies(Policy()), Scripted(counts), NOON)  # type: ignore[arg-type]
