"""Forecast of the load of one pod until sizes can change again, beside that of the days they are learned from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.demand.fresh import DemandContext, FreshHistory, values_of
from forecaster.domain.signal import CPU, PODS, REQUESTS, Signal
from forecaster.domain.window import DAY, FIVE_MINUTES
from forecaster.forecasting.forecaster import PeakSpan, column_of, further_peaks
from forecaster.forecasting.peaks import HIGH, LOW, MEDIAN
from forecaster.horizontal.targets import Unusable, stated_pod, targets_of
from forecaster.vertical.sizing.load_forecast import LoadForecast, PeakQuantiles, PodCounts, PodLoad, load_forecast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from numpy.typing import NDArray

    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.horizontal.targets import PodTarget
    from forecaster.ports import Histories

POINTS_A_DAY = DAY // FIVE_MINUTES
_LOADS = (CPU, REQUESTS)
"""What a pod's load is measured in; the first one that the workload is scaled by."""


class SharedLoad(NamedTuple):
    """How a workload's total is shared by its pods; `per_pod` NaN where their count does not follow it."""

    signal: Signal
    per_pod: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class PodLoads:
    """Forecasts of the load of one pod until the next change of sizes, by the models of this cycle."""

    history: Histories
    forecaster: Forecaster
    policies: Policies
    now: datetime

    def of(self, workloads: Sequence[Workload], vertical: VerticalPolicy) -> dict[WorkloadId, PodLoad]:
        """The load of a pod of each workload, all under one policy of sizes; absent where it is not forecast."""
        if vertical.load_forecast == "ignore" or vertical.recommender != "forecaster":
            return {}
        groups: dict[Signal, list[tuple[Workload, SharedLoad]]] = defaultdict(list)
        for one in workloads:
            shared = shared_load(one, self.policies.of(one.id).horizontal)
            if shared is not None:
                groups[shared.signal].append((one, shared))
        found: dict[WorkloadId, PodLoad] = {}
        for signal, group in groups.items():
            found |= self._of(signal, group, vertical)
        return found

    def _of(
        self, signal: Signal, group: Sequence[tuple[Workload, SharedLoad]], vertical: VerticalPolicy
    ) -> dict[WorkloadId, PodLoad]:
        context = DemandContext(signal, self._whole(PODS), {one.id: one for one, _ in group})
        whole = replace(self._whole(signal), around=context)
        span = PeakSpan(FIVE_MINUTES * 0, min(vertical.horizon, DAY))
        ids = [one.id for one, _ in group]
        said = further_peaks(self.forecaster, signal, whole, span, ids, self.now)
        known = [(one, shared) for one, shared in group if one.id in said]
        if not known:
            return {}
        ahead = self._ahead(signal, known, said, span.length)
        ahead = ahead.only_raising() if vertical.load_forecast == "raise" else ahead
        return dict(zip([one.id for one, _ in known], ahead.rows(), strict=True))

    def _whole(self, signal: Signal) -> FreshHistory:
        """Up to the clock's own cut."""
        weeks = self.history.window(signal, FIVE_MINUTES)
        return FreshHistory(weeks, np.empty((len(weeks.keys), 0), np.float32), weeks.end)

    def _ahead(
        self,
        signal: Signal,
        known: Sequence[tuple[Workload, SharedLoad]],
        said: Mapping[WorkloadId, NDArray[np.float64]],
        length: timedelta,
    ) -> LoadForecast:
        ids = [one.id for one, _ in known]
        quantiles = np.array([said[id_] for id_ in ids])
        forecast = PeakQuantiles(*(quantiles[:, column_of(level)] for level in (LOW, MEDIAN, HIGH)))
        total, pods = (values_of(self.history.window(of, FIVE_MINUTES), ids) for of in (signal, PODS))
        common = min(total.shape[1], pods.shape[1])
        total, pods = total[:, total.shape[1] - common :], pods[:, pods.shape[1] - common :]
        points = min(max(round(POINTS_A_DAY * (length / DAY)), 1), POINTS_A_DAY)
        return load_forecast(forecast, total, pods, counts_of(known), POINTS_A_DAY, points)


def counts_of(known: Sequence[tuple[Workload, SharedLoad]]) -> PodCounts:
    """The pods of each as arrays."""
    columns = [(one.replicas, shared.per_pod, shared.least, shared.most) for one, shared in known]
    return PodCounts(*np.array(columns, np.float64).T)


def shared_load(workload: Workload, policy: HorizontalPolicy) -> SharedLoad | None:
    """Return the total demand that decides the count; None if nothing that is forecast decides it."""
    targets = targets_of(workload, policy)
    for signal in _LOADS:
        per_pod = [carried for one in targets if (carried := carried_at(one, signal)) is not None]
        if per_pod:
            return _shared(workload, policy, signal, min(per_pod))
    return None


def carried_at(target: PodTarget | Unusable, signal: Signal) -> float | None:
    """Load of one pod at which a target of this signal is met, in the signal's unit."""
    return stated_pod(target) if not isinstance(target, Unusable) and target.signal is signal else None


def _shared(workload: Workload, policy: HorizontalPolicy, signal: Signal, per_pod: float) -> SharedLoad:
    """The HPA's bounds, else those of the policy; a workload that has neither is not scaled."""
    hpa = workload.autoscaler
    if hpa:
        return SharedLoad(signal, per_pod, hpa.min_replicas, hpa.max_replicas)
    if policy.max_replicas:
        return SharedLoad(signal, per_pod, policy.min_replicas or 1, policy.max_replicas)
    return SharedLoad(signal, np.nan, 1, np.inf)
