"""Usage as models are shown it: with the ready pods, the workloads and the throttled hours that make demand of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.demand.around import Around
from forecaster.demand.fresh import fresh
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.demand.fresh import Fresh
    from forecaster.demand.throttling import Hours
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Histories


def usage_of(
    history: Histories,
    signals: Iterable[Signal],
    workloads: Iterable[Workload],
    throttled: Mapping[WorkloadId, Sequence[Hours]],
) -> dict[Signal, Fresh]:
    """Weeks up to the newest minute of these signals."""
    pods, here = _cut(history, Signal.PODS), {one.id: one for one in workloads}
    return {signal: _cut(history, signal, Around(signal, pods, here, throttled)) for signal in signals}


def _cut(history: Histories, signal: Signal, around: Around | None = None) -> Fresh:
    return fresh(history.window(signal, FIVE_MINUTES), history.window(signal, MINUTE), around)
