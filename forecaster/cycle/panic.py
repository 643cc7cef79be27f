"""Demand over the panic windows of policies: asked for once a cycle and window, of no use where it is incomplete."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.completeness import Completeness
from forecaster.demand.completeness import COMPLETE, PASSING, acting
from forecaster.domain.amounts import duration_text
from forecaster.domain.window import MINUTE
from forecaster.errors import SourceError
from forecaster.ports import NO_PANIC, PanicSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from numpy.typing import NDArray

    from forecaster.cycle.rows import Rows
    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Block
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Histories, Source

    Floats = NDArray[np.float64]


@dataclass(slots=True)
class PanicDemand:
    """The latest demand over each panic window, and what is usual of the samples in it."""

    usual: dict[timedelta, Completeness] = field(default_factory=lambda: defaultdict(Completeness))
    known: dict[tuple[timedelta, str], Mapping[WorkloadId, float]] = field(default_factory=dict)
    """By window and signal, of this cycle."""
    failures: list[str] = field(default_factory=list)
    """A sentence for each answer that could not be had."""

    def ask(self, source: Source, history: Histories, rows: Rows, now: datetime) -> None:
        """Ask for every window of these rows; what is not answered is not known."""
        self.known, self.failures, windows = {}, [], rows.standing.panic_windows
        if not windows:
            return
        if not isinstance(source, PanicSource):
            self.failures.append(NO_PANIC)
            return
        workloads = {one.id: one for one in rows.workloads}
        for window in windows:
            self.usual[window].begin(now)
        for window, signal in ((window, signal) for window, signals in windows.items() for signal in signals):
            try:
                block = source.within(signal, now, window)
            except SourceError as error:
                self.failures.append(f"panic window of {signal}: {error}")
                continue
            known = self.known[window, signal] = _complete(self.usual[window], block, history, workloads, now)
            if block.rated and not known:
                said = f"panic window of {signal}: no pod has two samples within {duration_text(window)}"
                self.failures.append(said)

    def columns(self, signal: Signal, rows: Rows) -> Floats:
        """[row] the latest demand over the window that the policy of each row states; NaN where it is not known."""
        found = np.full(len(rows.ids), np.nan)
        for row, window in rows.standing.in_panic.items():
            found[row] = self.known.get((window, signal), {}).get(rows.ids[row], np.nan)
        return found


def _complete(
    usual: Completeness, block: Block, history: Histories, workloads: Mapping[WorkloadId, Workload], now: datetime
) -> dict[WorkloadId, float]:
    """What all pods use that are past their start; NaN for a workload of which a part is missing."""
    block = replace(block, step=MINUTE)  # one column, which is held against the pods of the minute
    verdict = usual.judged(block, history, workloads, now)
    values = np.where(np.isin(verdict.code, (COMPLETE, *PASSING)), acting(block, verdict), np.nan)
    return dict(zip(block.ids, values[:, -1].tolist(), strict=True)) if len(block.ids) else {}
