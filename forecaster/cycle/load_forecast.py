"""Load of the coming day: of one pod until sizes can change again, and of all workloads together.

The former stands beside the load of the days that sizes are learned from; the latter is joint over workloads, so that
it can be summed over node pools.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.forecasts import usage_of
from forecaster.demand.fresh import DemandContext, FreshHistory, values_of
from forecaster.domain.clock import zones_beside_utc
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS, Signal
from forecaster.domain.window import DAY, FIVE_MINUTES
from forecaster.forecasting.forecaster import Forecaster, PeakSpan, further_peaks
from forecaster.forecasting.peaks import HIGH, LEVELS, LOW, MEDIAN, PeakForecasts
from forecaster.horizontal.targets import PodTarget, Unusable, stated_pod, targets_of
from forecaster.vertical.nodes.joint_samples import FEWEST_SAMPLES, DemandWindow, equal_ranks, past_ranks, samples
from forecaster.vertical.sizing.load_forecast import LoadForecast, PeakQuantiles, PodCounts, PodLoad, load_forecast

if TYPE_CHECKING:
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Histories
    from forecaster.vertical.nodes.joint_samples import Floats

POINTS_A_DAY = DAY // FIVE_MINUTES
_LOADS = (CPU, REQUESTS)
"""Signals that can measure a pod's load; the first one that scales the workload is used."""


class SharedLoad(NamedTuple):
    """Division of a workload's total among its pods; `per_pod` is NaN where the pod count does not follow the total."""

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

    def of(self, workloads: Sequence[Workload], vertical: VerticalPolicy) -> dict[WorkloadId, PodLoad]:
        """The load of a pod of each workload, all under one policy of sizes; absent where it is not forecast."""
        if vertical.load_forecast == "ignore":
            return {}
        groups: dict[Signal, list[tuple[Workload, SharedLoad]]] = defaultdict(list)
        for workload in workloads:
            shared = shared_load(workload, self.policies.of(workload.id).horizontal)
            if shared is not None:
                groups[shared.signal].append((workload, shared))
        loads: dict[WorkloadId, PodLoad] = {}
        for signal, group in groups.items():
            loads |= self._of(signal, group, vertical)
        return loads

    def _of(
        self, signal: Signal, group: Sequence[tuple[Workload, SharedLoad]], vertical: VerticalPolicy
    ) -> dict[WorkloadId, PodLoad]:
        context = DemandContext(signal, self._whole(PODS), {workload.id: workload for workload, _ in group})
        zones = zones_of([workload for workload, _ in group], self.policies)
        whole = replace(self._whole(signal), context=context, zones=zones)
        span = PeakSpan(FIVE_MINUTES * 0, min(vertical.horizon, DAY))
        # from the newest bin on: a day from a minute after it ends a step beyond what models look ahead
        peaks = further_peaks(self.forecaster, signal, whole, span, [*context.workloads], whole.end)
        known = [(workload, shared) for workload, shared in group if workload.id in peaks]
        if not known:
            return {}
        forecast = self._load_forecast(signal, known, peaks, span.length)
        forecast = forecast.only_raising() if vertical.load_forecast == "raise" else forecast
        return dict(zip([workload.id for workload, _ in known], forecast.rows(), strict=True))

    def _whole(self, signal: Signal) -> FreshHistory:
        """Up to the clock's own cut."""
        weeks = self.history.window(signal, FIVE_MINUTES)
        return FreshHistory(weeks, np.empty((len(weeks.keys), 0), np.float32), weeks.end)

    def _load_forecast(
        self,
        signal: Signal,
        known: Sequence[tuple[Workload, SharedLoad]],
        peaks: Mapping[WorkloadId, NDArray[np.float64]],
        length: timedelta,
    ) -> LoadForecast:
        ids = [workload.id for workload, _ in known]
        quantiles = np.array([peaks[id_] for id_ in ids])
        forecast = PeakQuantiles(*(quantiles[:, LEVELS.index(level)] for level in (LOW, MEDIAN, HIGH)))
        total, pods = (values_of(self.history.window(name, FIVE_MINUTES), ids) for name in (signal, PODS))
        common = min(total.shape[1], pods.shape[1])
        total, pods = total[:, total.shape[1] - common :], pods[:, pods.shape[1] - common :]
        points = min(max(round(POINTS_A_DAY * (length / DAY)), 1), POINTS_A_DAY)
        return load_forecast(forecast, total, pods, counts_of(known), POINTS_A_DAY, points)


def counts_of(known: Sequence[tuple[Workload, SharedLoad]]) -> PodCounts:
    """The pods of each as arrays."""
    columns = [(workload.replicas, shared.per_pod, shared.least, shared.most) for workload, shared in known]
    return PodCounts(*np.array(columns, np.float64).T)


def shared_load(workload: Workload, policy: HorizontalPolicy) -> SharedLoad | None:
    """Return the total demand that decides the count; None if nothing that is forecast decides it."""
    targets = targets_of(workload, policy)
    for signal in _LOADS:
        per_pod = [carried for target in targets if (carried := carried_at(target, signal)) is not None]
        if per_pod:
            return _shared(workload, policy, signal, min(per_pod))
    return None


def carried_at(target: PodTarget | Unusable, signal: Signal) -> float | None:
    """Load of one pod at which a target of this signal is met, in the signal's unit."""
    return stated_pod(target) if not isinstance(target, Unusable) and target.signal == signal else None


def _shared(workload: Workload, policy: HorizontalPolicy, signal: Signal, per_pod: float) -> SharedLoad:
    """Use the HPA's bounds, else those of the policy; a workload without either is not scaled."""
    hpa = workload.autoscaler
    if hpa:
        return SharedLoad(signal, per_pod, hpa.min_replicas, hpa.max_replicas)
    if policy.max_replicas:
        return SharedLoad(signal, per_pod, policy.min_replicas or 1, policy.max_replicas)
    return SharedLoad(signal, np.nan, 1, np.inf)


_EDGES = tuple(timedelta(minutes=minutes) for minutes in (0, 15, 30, 60, 120, 240, 480, 720, 1440))
SPANS = tuple(PeakSpan(begin, until - begin) for begin, until in pairwise(_EDGES))
"""Windows of the coming day, longer the further away: a node takes minutes to start, a reservation hours."""
_BLOCK = timedelta(hours=1)
"""Length of the past blocks from which joint movement is learned: 336 in two weeks, enough for the 95 % quantile of a
sum."""


@dataclass(frozen=True, slots=True, eq=False)
class DemandSamples:
    """Latest memory by workload name, and the joint samples of every window."""

    memory: Mapping[str, float]
    windows: tuple[DemandWindow, ...]


def zones_of(workloads: Iterable[Workload], policies: Policies) -> Mapping[WorkloadId, str]:
    """Time zones of the workloads that have another one than UTC."""
    return zones_beside_utc((workload.id, policies.of(workload.id).time_zone) for workload in workloads)


def demand_samples(
    workloads: Sequence[Workload], history: Histories, forecaster: Forecaster, policies: Policies, now: datetime
) -> DemandSamples:
    """Joint samples of the workloads with a forecast of CPU; memory that is not forecast stays as it is.

    Peaks are of five-minute points: single minutes of many workloads do not coincide, and windows of hours have none.
    """
    ids = [workload.id for workload in workloads]
    usage = usage_of(history, (CPU, MEMORY), workloads, {}, zones_of(workloads, policies))
    peaks = {
        name: forecaster.peaks(name, history, SPANS, now, ids=ids, by_minutes=False) for name, history in usage.items()
    }
    memory = _latest(history, MEMORY, ids)
    known = [id_ for id_ in ids if all(id_ in forecasts.row for forecasts in peaks[CPU].values())]
    ranks = {name: _ranks(history, name, known) for name in (CPU, MEMORY)}
    windows = tuple(
        _window(now, span, known, {name: peaks[name][span] for name in peaks}, ranks, memory) for span in SPANS
    )
    return DemandSamples({id_.path: value for id_, value in memory.items()}, windows)


def _latest(history: Histories, signal: Signal, ids: Sequence[WorkloadId]) -> dict[WorkloadId, float]:
    """The latest known five minutes of each."""
    latest = {}
    for id_, row in zip(ids, values_of(history.window(signal, FIVE_MINUTES), ids), strict=True):
        known = row[~np.isnan(row)]
        if known.size:
            latest[id_] = float(known[-1])
    return latest


def _ranks(history: Histories, signal: Signal, ids: Sequence[WorkloadId]) -> tuple[Floats, bool]:
    """Return the ranks of past blocks, and whether there are enough blocks."""
    past = np.asarray(values_of(history.window(signal, FIVE_MINUTES), ids), float)
    ranks = past_ranks(past, timedelta(days=1) // FIVE_MINUTES, _BLOCK // FIVE_MINUTES)
    if ranks.shape[1] < FEWEST_SAMPLES:
        return equal_ranks(len(ids)), False
    return ranks, True


def _window(
    now: datetime,
    span: PeakSpan,
    ids: Sequence[WorkloadId],
    peaks: Mapping[Signal, PeakForecasts],
    ranks: Mapping[Signal, tuple[Floats, bool]],
    memory_now: Mapping[WorkloadId, float],
) -> DemandWindow:
    cpu_ranks, known = ranks[CPU]
    cpu = samples(LEVELS, _quantiles(peaks[CPU], ids), cpu_ranks)
    of_memory = peaks[MEMORY]
    memory = np.array(
        [
            np.interp(rank, LEVELS, of_memory.values[of_memory.row[id_]])
            if id_ in of_memory.row
            else np.full(len(rank), memory_now.get(id_, 0.0))
            for id_, rank in zip(ids, _as_many(ranks[MEMORY][0], cpu_ranks.shape[1]), strict=True)
        ]
    ).reshape(len(ids), cpu_ranks.shape[1])
    begin = now + span.lead_time
    return DemandWindow(begin, begin + span.length, tuple(id_.path for id_ in ids), cpu, memory, dependence_known=known)


def _quantiles(peaks: PeakForecasts, ids: Sequence[WorkloadId]) -> Floats:
    return np.array([peaks.values[peaks.row[id_]] for id_ in ids]).reshape(len(ids), len(LEVELS))


def _as_many(ranks: Floats, count: int) -> Floats:
    """Use equal numbers of samples for both resources: where histories differ in length, the latest ones."""
    if ranks.shape[1] >= count:
        return ranks[:, ranks.shape[1] - count :]
    return equal_ranks(ranks.shape[0], count)
