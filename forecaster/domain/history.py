"""Measured demand on its way from a source into the rings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    import numpy as np
    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Values of one signal for many workloads on one regular grid.

    `values[i, j]` is the demand of `ids[i]` at `start + j * step`, float64, in the signal's unit, finite and not
    negative; NaN where the source had no such sample. A value describes the time that ends at its instant. `ids` holds
    each workload once.
    """

    signal: Signal
    ids: tuple[WorkloadId, ...]
    start: datetime
    step: timedelta
    values: NDArray[np.float64]
    warnings: tuple[str, ...] = ()

    @property
    def end(self) -> datetime:
        """Instant of the newest column; `start - step` when there is none."""
        columns: int = self.values.shape[1]
        return self.start + (columns - 1) * self.step


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every workload that the source knows at `at`, and what could not be understood about some of them."""

    at: datetime
    workloads: tuple[Workload, ...]
    faults: tuple[str, ...] = ()
    """One sentence each, naming the object and the value."""

    @property
    def ids(self) -> tuple[WorkloadId, ...]:
        """Who they are, in order."""
        return tuple(workload.id for workload in self.workloads)
