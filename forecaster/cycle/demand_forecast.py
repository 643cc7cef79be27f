"""Demand of all workloads over the coming day, joint over workloads: what sums over node pools are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.forecasts import usage_of
from forecaster.demand.fresh import values_of
from forecaster.domain.signal import CPU, MEMORY, Signal
from forecaster.domain.window import FIVE_MINUTES
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.forecasting.peaks import LEVELS
from forecaster.vertical.admission.cluster import name_of
from forecaster.vertical.nodes.forecast import DemandWindow
from forecaster.vertical.nodes.joint_samples import FEWEST_SAMPLES, past_ranks, ranks_together, samples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.forecasting.peaks import PeakForecasts
    from forecaster.ports import Histories
    from forecaster.vertical.nodes.joint_samples import Floats


_EDGES = tuple(timedelta(minutes=minutes) for minutes in (0, 15, 30, 60, 120, 240, 480, 720, 1440))
SPANS = tuple(PeakSpan(begin, until - begin) for begin, until in pairwise(_EDGES))
"""Windows of the coming day, longer the further away: a node takes minutes to start, a reservation hours."""
_BLOCK = timedelta(hours=1)
"""Past blocks that tell how workloads move together: two weeks are 336, enough for the 95 % quantile of a sum."""


@dataclass(frozen=True, slots=True, eq=False)
class DemandSamples:
    """Newest totals by workload name, and the joint samples of every window."""

    cpu: Mapping[str, float]
    memory: Mapping[str, float]
    windows: tuple[DemandWindow, ...]


def demand_samples(
    workloads: Sequence[Workload], history: Histories, forecaster: Forecaster, now: datetime
) -> DemandSamples:
    """Joint samples of the workloads with a forecast of CPU; memory that is not forecast stays as it is."""
    ids = [one.id for one in workloads]
    usage = usage_of(history, (CPU, MEMORY), workloads, {})
    peaks = {name: forecaster.peaks(name, seen, SPANS, now, wanted=ids) for name, seen in usage.items()}
    latest = {name: _latest(history, name, ids) for name in (CPU, MEMORY)}
    known = [id_ for id_ in ids if all(id_ in one.row for one in peaks[CPU].values())]
    ranks = {name: _ranks(history, name, known) for name in (CPU, MEMORY)}
    windows = tuple(
        _window(now, span, known, {name: peaks[name][span] for name in peaks}, ranks, latest[MEMORY]) for span in SPANS
    )
    cpu, memory = ({name_of(id_): value for id_, value in latest[name].items()} for name in (CPU, MEMORY))
    return DemandSamples(cpu, memory, windows)


def _latest(history: Histories, signal: Signal, ids: Sequence[WorkloadId]) -> dict[WorkloadId, float]:
    """The latest known five minutes of each."""
    found = {}
    for id_, row in zip(ids, values_of(history.window(signal, FIVE_MINUTES), ids), strict=True):
        known = row[~np.isnan(row)]
        if known.size:
            found[id_] = float(known[-1])
    return found


def _ranks(history: Histories, signal: Signal, ids: Sequence[WorkloadId]) -> tuple[Floats, bool]:
    """Ranks of the past, and whether there is enough of it."""
    past = np.asarray(values_of(history.window(signal, FIVE_MINUTES), ids), float)
    ranks = past_ranks(past, timedelta(days=1) // FIVE_MINUTES, _BLOCK // FIVE_MINUTES)
    if ranks.shape[1] < FEWEST_SAMPLES:
        return ranks_together(len(ids)), False
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
    return DemandWindow(begin, begin + span.length, tuple(map(name_of, ids)), cpu, memory, dependence_known=known)


def _quantiles(peaks: PeakForecasts, ids: Sequence[WorkloadId]) -> Floats:
    return np.array([peaks.values[peaks.row[id_]] for id_ in ids]).reshape(len(ids), len(LEVELS))


def _as_many(ranks: Floats, count: int) -> Floats:
    """Use equal numbers of samples for both resources: where histories differ in length, the latest ones."""
    if ranks.shape[1] >= count:
        return ranks[:, ranks.shape[1] - count :]
    return ranks_together(ranks.shape[0], count)
