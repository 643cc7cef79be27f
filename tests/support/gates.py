"""Evidence about one workload, written as a test reads it, and the gate of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.horizontal import gate
from forecaster.horizontal.gate import Evidence
from forecaster.horizontal.gate_states import FORECASTERS, TOO_SHORT, GateForecaster, Gates
from tests.support.builders import after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.horizontal.gate_states import Gate

SIGNALS = ("cpu", "memory", "requests")


class Way(NamedTuple):
    """One way to decide: what it left short, and the pod-hours that it did without."""

    short: float
    saving: float = 0.0
    noise: float = 0.0


class Days(NamedTuple):
    """Evidence on one target."""

    days: float
    reactive: float
    model: Way | None
    seasonal: Way | None = None
    signal: int = -1

    def of(self, forecaster: GateForecaster) -> Way | None:
        return self.model if forecaster is GateForecaster.MODEL else self.seasonal


NEW = Gates.new(1, SIGNALS)


def evidence_of(targets: Sequence[Days]) -> Evidence:
    """Evidence [..., target, one row]."""
    ways = [[target.of(forecaster) or Way(np.nan, np.nan, np.nan) for target in targets] for forecaster in FORECASTERS]
    short, saving, noise = (
        np.array([[way[part] for way in target_ways] for target_ways in ways], float)[..., None] for part in range(3)
    )
    days, reactive, signal = (
        np.array([(target.days, target.reactive, target.signal) for target in targets], float).reshape(-1, 3).T
    )
    return Evidence(days[:, None], reactive[:, None], short, saving, noise, signal.astype(int)[:, None])


def judged(gates: Gates, *targets: Days, minute: float = 0.0) -> Gates:
    """The gate of one row after evidence on each of its targets."""
    return gate.judged(gates, evidence_of(targets), after(minute).timestamp())


def too_short(gates: Gates, days: float, minute: float = 0.0) -> Gates:
    """The gate of one row of which too little is known."""
    numbers = {"days": np.array([days]), "least_days": np.array([3.0]), "signal": np.array([0])}
    return gate.unjudged(gates, np.array([TOO_SHORT]), after(minute).timestamp(), **numbers)


def gate_of(gates: Gates) -> Gate:
    """Gate of the row."""
    return gates.gate(0)
