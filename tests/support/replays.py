"""A small comparison: one workload whose demand jumps, under its HPA and perfect foresight, and one without HPA."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import CPU
from forecaster.replay import Traces, compare
from forecaster.replay.strategies import HPA, PERFECT
from tests.support.builders import NOON, minutes, workload

if TYPE_CHECKING:
    from forecaster.replay import Comparison

PAST = 200


@cache
def small_comparison() -> Comparison:
    """An hour from noon on."""
    jumps = np.r_[np.full(PAST, 2.0), np.tile(np.repeat([2.0, 6.0], 15), 2)]
    demand = np.array([jumps, np.ones(len(jumps))])
    workloads = (workload("web"), workload("batch", autoscaler=None))
    traces = Traces(workloads, NOON - minutes(PAST - 1), {CPU: demand})
    return compare(traces, strategies=(HPA, PERFECT), begin=NOON, until=traces.end)
