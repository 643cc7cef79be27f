"""What VPA, KRR and crane would say on the same history, as far as it is kept: usage of one pod, five minutes apart.

These tools look at containers of single pods; here the mean over a workload's pods stands for one of them. None sees
OOM kills here. VPA starts empty at the beginning of the history, with its defaults; KRR is its strategy `simple`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.workload import Resources
from forecaster.vertical.recommenders.histograms import LinearBuckets
from forecaster.vertical.recommenders.krr import (
    KRR_DEFAULTS,
    KrrValue,
    QueryResults,
    quantile_of_query,
    rounded_cpu,
    rounded_memory,
    simple,
)
from forecaster.vertical.recommenders.vpa import VpaPanel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

    from numpy.typing import NDArray

VPA, KRR = "vpa", "krr"
_POD = "pod"


def vpa(cpu: Floats, memory: Floats, instants: Ints) -> list[Resources | None]:
    """VPA's target per pod of each row; None where nothing was ever seen.

    `cpu` (cores) and `memory` (bytes) are [workload, time], NaN where unknown; `instants` are seconds since 1970.
    """
    panel = VpaPanel(len(cpu))
    if not len(cpu) or not len(instants):
        return [None] * len(cpu)
    panel.add_cpu(cpu, instants)
    for column, at in enumerate(instants.tolist()):
        panel.add_memory(memory[:, column], at)
    found = panel.recommend()
    seen = [_any_known(cores) and _any_known(used) for cores, used in zip(cpu, memory, strict=True)]
    pairs = zip(found["cpu"].target.tolist(), found["memory"].target.tolist(), seen, strict=True)
    return [Resources(milli / 1000, None, float(size), None) if known else None for milli, size, known in pairs]


def _any_known(values: Floats) -> bool:
    return not bool(np.isnan(values).all())


def krr(cpu: Floats, memory: Floats, hpa_on: list[frozenset[str]]) -> list[Resources | None]:
    """KRR's recommendation per pod of each row; None where it says nothing about either resource."""
    quantile = quantile_of_query(KRR_DEFAULTS.cpu_percentile)
    return [
        _krr(cores[~np.isnan(cores)], used[~np.isnan(used)], targeted, quantile)
        for cores, used, targeted in zip(cpu, memory, hpa_on, strict=True)
    ]


def _krr(cores: Floats, used: Floats, targeted: frozenset[str], quantile: float) -> Resources | None:
    seen = QueryResults(
        cpu_percentile={_POD: float(np.quantile(cores, quantile))} if cores.size else {},
        memory_peak={_POD: float(used.max())} if used.size else {},
        points={"cpu": {_POD: cores.size}, "memory": {_POD: used.size}},
        hpa_on=targeted,
    )
    said = simple(seen)
    cpu, memory = said["cpu"], said["memory"]
    found = Resources(
        _known(rounded_cpu(cpu.request)),
        _known(rounded_cpu(cpu.limit)),
        _known(rounded_memory(memory.request)),
        _known(rounded_memory(memory.limit)),
    )
    return None if found == Resources() else found


def _known(value: KrrValue) -> float | None:
    return value if isinstance(value, float) else None


_LEAST_WEIGHT_OF_BUCKET = 1e-10
CRANE_CPU = LinearBuckets(100.0, 0.1, _LEAST_WEIGHT_OF_BUCKET)
"""Cores."""
CRANE_MEMORY = LinearBuckets(104857600000.0, 104857600.0, _LEAST_WEIGHT_OF_BUCKET)
"""Bytes."""
_LEAST_SAMPLE_WEIGHT = 1e-5


@dataclass(frozen=True, slots=True)
class CraneSettings:
    """The recommender's settings, with their defaults; ratios."""

    percentile: float = 0.99
    margin: float = 0.15
    target_utilization: float = 1.0


CRANE_DEFAULTS = CraneSettings()


def crane_requests(
    samples: NDArray[np.floating], buckets: LinearBuckets, settings: CraneSettings = CRANE_DEFAULTS
) -> NDArray[np.float64]:
    """Requests [row] from samples [row, time], NaN for gaps; 0 for a row without samples."""
    rows, columns = np.nonzero(~np.isnan(samples))
    values = samples[rows, columns].astype(np.float64)
    place = np.clip((values / buckets.size).astype(np.intp), 0, buckets.count - 1)
    weights = np.bincount(
        rows * buckets.count + place, np.maximum(values, _LEAST_SAMPLE_WEIGHT), len(samples) * buckets.count
    ).reshape(len(samples), -1)
    reached = np.cumsum(weights, axis=1)
    bucket = (reached < settings.percentile * reached[:, -1:]).sum(axis=1)
    ends = np.minimum(bucket + 1, buckets.count - 1) * buckets.size
    return np.where(reached[:, -1] > 0, ends * (1 + settings.margin) / settings.target_utilization, 0.0)
