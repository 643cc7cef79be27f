"""A small comparison: one workload whose demand jumps, under its HPA and perfect foresight, and one without HPA."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import CPU
from forecaster.domain.workload import Prices
from forecaster.horizontal.gate_states import Gate, GateState
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare
from forecaster.replay.comparison import Curve
from forecaster.replay.gated import GateEvidence, GateSince
from forecaster.replay.strategies import HPA, NAIVE, PERFECT, looking_back
from forecaster.replay.traces import Traces
from tests.support.builders import NOON, minutes, workload

if TYPE_CHECKING:
    from forecaster.replay.comparison import Comparison

PAST = 200


@cache
def small_comparison() -> Comparison:
    """An hour from noon on."""
    return _small(Assumptions())


def _small(assumed: Assumptions) -> Comparison:
    jumps = np.r_[np.full(PAST, 2.0), np.tile(np.repeat([2.0, 6.0], 15), 2)]
    demand = np.array([jumps, np.ones(len(jumps))])
    workloads = (workload("web"), workload("batch", autoscaler=None))
    traces = Traces(workloads, NOON - minutes(PAST - 1), {CPU: demand})
    return compare(traces, strategies=(HPA, PERFECT), begin=NOON, until=traces.end, assumed=assumed)


def priced_comparison() -> Comparison:
    """The small comparison at two euros for a core and hour."""
    return _small(Assumptions(prices=Prices(core_hour=2.0, currency="EUR")))


def looked_back(*, missing: float = 0.5, priced: bool = False) -> Comparison:
    """Comparison with the strategies of a look back: our policy leaves so many times the HPA's shortage."""
    comparison = priced_comparison() if priced else small_comparison()

    def scaled(curve: Curve, by: float) -> Curve:
        return Curve({s: replace(a, missing=a.missing * by) for s, a in curve.points.items()}, curve.track)

    (each,) = comparison.workloads
    plain = each.curves[HPA.name]
    curves = {HPA.name: plain, NAIVE: scaled(plain, 2.0), "gated": scaled(plain, missing)}
    evidence = GateEvidence(reactive=0.04, short=0.01)
    stood = (GateSince(0, Gate()), GateSince(30, Gate(GateState.ACTING, why="better"), evidence))
    workloads, gates = [replace(each, curves=curves)], {each.workload.id: stood}
    return replace(comparison, strategies=looking_back("adaptive"), workloads=workloads, gates=gates)
