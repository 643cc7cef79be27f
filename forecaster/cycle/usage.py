"""Usage as models are shown it: with the ready pods, the workloads and the throttled hours that make demand of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.demand.fresh import DemandContext, fresh
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.demand.censored import ThrottledTime
    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Histories


def usage_of(
    history: Histories,
    signals: Iterable[Signal],
    workloads: Iterable[Workload],
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]],
) -> dict[Signal, FreshHistory]:
    """Weeks up to the newest minute of these signals."""
    pods, here = _cut(history, PODS), {one.id: one for one in workloads}
    return {signal: _cut(history, signal, DemandContext(signal, pods, here, throttled)) for signal in signals}


def _cut(history: Histories, signal: Signal, around: DemandContext | None = None) -> FreshHistory:
    return fresh(history.window(signal, FIVE_MINUTES), history.window(signal, MINUTE), around)
