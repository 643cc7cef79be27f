"""Sizes by the rules of another recommender, with what they risk and leave unused by our account."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.window import DAY
from forecaster.vertical.recommenders.baselines import CRANE_CPU, CRANE_MEMORY, crane_requests
from forecaster.vertical.recommenders.krr import CPU_FLOOR_MILLICORES, MEBIBYTE, MEMORY_FLOOR_MIB
from forecaster.vertical.recommenders.krr import KRR_DEFAULTS as KRR
from forecaster.vertical.recommenders.vpa import VpaPanel
from forecaster.vertical.sizing.cpu import cpu_limit
from forecaster.vertical.sizing.memory import coming_peaks
from forecaster.vertical.sizing.panel import days_of
from forecaster.vertical.sizing.risk import cpu_evaluated, memory_evaluated, shares_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.vertical.sizing.panel import ContainerPanel, SizeColumns

    Doubles = NDArray[np.float64]

_DAY_SECONDS = DAY // timedelta(seconds=1)
_BEGIN = 1_700_006_400
"""A midnight; the rules only see distances between instants."""
_MILLI = 1000.0


def recommender_sizes(panel: ContainerPanel, policy: VerticalPolicy) -> tuple[SizeColumns, SizeColumns]:
    """CPU and memory by `policy.recommender`."""
    cpu_request, own_limit, memory = _RULES[policy.recommender](panel)
    cpu_days, memory_days = (days_of(usage, panel.points) for usage in (panel.cpu, panel.memory))
    shares = shares_of(cpu_days)
    limit = cpu_limit(panel, shares, cpu_request, policy) if own_limit is None else own_limit
    ahead, mechanism = coming_peaks(panel, memory_days, policy.horizon)
    none_kept = np.zeros(len(memory), bool)
    return cpu_evaluated(cpu_request, limit, shares, cpu_days.known, none_kept), memory_evaluated(
        memory,
        np.full(len(memory), np.nan) if policy.memory_limit == "none" else memory,
        ahead,
        max(policy.horizon / DAY, 1.0),
        shares_of(memory_days),
        days=memory_days.known,
        kept=none_kept,
        mechanism=mechanism,
    )


def _vpa(panel: ContainerPanel) -> tuple[Doubles, Doubles | None, Doubles]:
    histograms = VpaPanel(len(panel.cpu))
    at = _BEGIN + np.arange(panel.cpu.shape[1]) * _DAY_SECONDS // panel.points
    histograms.add_cpu(panel.cpu.astype(np.float64), at)
    for column, instant in enumerate(
        (_BEGIN + np.arange(panel.memory.shape[1]) * _DAY_SECONDS // panel.points).tolist()
    ):
        histograms.add_memory(panel.memory[:, column].astype(np.float64), instant)
    found = histograms.recommend()
    return found["cpu"].target / _MILLI, None, found["memory"].target.astype(np.float64)


def _krr(panel: ContainerPanel) -> tuple[Doubles, Doubles | None, Doubles]:
    nothing = np.full(len(panel.cpu), np.nan)
    return _millicores(_quantile(panel.cpu, KRR.cpu_percentile)), nothing, _buffered(panel)


def _krr_limit(panel: ContainerPanel) -> tuple[Doubles, Doubles | None, Doubles]:
    request, limit = (_quantile(panel.cpu, rank) for rank in (KRR.cpu_request_percentile, KRR.cpu_limit_percentile))
    return _millicores(request), _millicores(limit), _buffered(panel)


def _crane(panel: ContainerPanel) -> tuple[Doubles, Doubles | None, Doubles]:
    return crane_requests(panel.cpu, CRANE_CPU), None, crane_requests(panel.memory, CRANE_MEMORY)


def _quantile(usage: NDArray[np.floating], percent: float) -> Doubles:
    """[row] between neighbours by a straight line; NaN for a row without points."""
    ordered = np.sort(usage, axis=1)
    place = percent / 100 * np.maximum(np.count_nonzero(~np.isnan(usage), axis=1) - 1, 0)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, usage.shape[1] - 1)
    low, high = (np.take_along_axis(ordered, index[:, None], axis=1)[:, 0] for index in (below, above))
    return np.asarray(np.where(place > below, low + (high - low) * (place - below), low), np.float64)


def _millicores(cores: Doubles) -> Doubles:
    return np.asarray(np.maximum(np.ceil(cores * _MILLI) / _MILLI, CPU_FLOOR_MILLICORES / _MILLI))


def _buffered(panel: ContainerPanel) -> Doubles:
    buffered = np.fmax.reduce(panel.memory, axis=1).astype(np.float64) * (1 + KRR.memory_buffer / 100)
    return np.asarray(np.maximum(np.ceil(buffered / MEBIBYTE), MEMORY_FLOOR_MIB) * MEBIBYTE)


_RULES: Mapping[str, Callable[[ContainerPanel], tuple[Doubles, Doubles | None, Doubles]]] = {
    "crane": _crane,
    "krr": _krr,
    "krr-limit": _krr_limit,
    "vpa": _vpa,
}
