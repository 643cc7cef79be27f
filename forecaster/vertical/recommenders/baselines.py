"""Recommendations of VPA and KRR from the stored history: usage of one pod in steps of five minutes.

These tools read containers of single pods; here the mean over a workload's pods stands for one of them. Neither sees
OOM kills here. VPA starts empty at the beginning of the history, with its defaults; KRR is its strategy `simple`. KRR
1.29's rounding and severities: spec/vertical.md §2; the rest is in tests/oracles/krr.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.workload import Resources
from forecaster.vertical.recommenders.vpa import VpaPanel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VPA, KRR = "vpa", "krr"
CPU_QUANTILE, MEMORY_BUFFER = 0.95, 0.15
MIN_POINTS = 100
"""Fewest samples of which KRR says anything."""


def vpa(cpu: Floats, memory: Floats, instants: Ints) -> list[Resources | None]:
    """VPA's target per pod of each row; None where nothing was ever measured.

    `cpu` (cores) and `memory` (bytes) are [workload, time], NaN where unknown; `instants` are seconds since 1970.
    """
    panel = VpaPanel(len(cpu))
    if not len(cpu) or not len(instants):
        return [None] * len(cpu)
    panel.add_cpu(cpu, instants)
    for column, at in enumerate(instants.tolist()):
        panel.add_memory(memory[:, column], at)
    bounds = panel.recommend()
    measured = np.asarray(~(np.isnan(cpu).all(axis=1) | np.isnan(memory).all(axis=1)))
    pairs = zip(bounds["cpu"].target.tolist(), bounds["memory"].target.tolist(), measured, strict=True)
    return [Resources(milli / 1000, None, float(size), None) if known else None for milli, size, known in pairs]


def krr(cpu: Floats, memory: Floats, hpa_on: list[frozenset[str]]) -> list[Resources | None]:
    """KRR's recommendation per pod of each row; None where it says nothing about either resource."""
    return [
        _krr(cores[~np.isnan(cores)], used[~np.isnan(used)], targeted)
        for cores, used, targeted in zip(cpu, memory, hpa_on, strict=True)
    ]


def _krr(cores: Floats, used: Floats, targeted: frozenset[str]) -> Resources | None:
    """CPU request at a quantile, memory at the peak and a buffer; nothing of a resource that an HPA targets."""
    request = size = None
    if cores.size >= MIN_POINTS and "cpu" not in targeted:
        request = rounded_cpu(float(np.quantile(cores, CPU_QUANTILE)))
    if used.size >= MIN_POINTS and "memory" not in targeted:
        size = rounded_memory(float(used.max()) * (1 + MEMORY_BUFFER))
    return None if request is None and size is None else Resources(request, None, size, size)


MEBIBYTE = 2**20
CPU_FLOOR_MILLICORES = 10
MEMORY_FLOOR_MIB = 100


def rounded_cpu(cores: float, floor_millicores: float = CPU_FLOOR_MILLICORES) -> float:
    """Cores in whole millicores, rounded up, and at least the floor."""
    return max(math.ceil(cores * 1000) / 1000, floor_millicores / 1000)


def rounded_memory(memory: float, floor_mib: float = MEMORY_FLOOR_MIB) -> float:
    """Bytes in whole mebibytes, rounded up, and at least the floor."""
    return float(max(math.ceil(memory / MEBIBYTE) * MEBIBYTE, floor_mib * MEBIBYTE))


class Severity(StrEnum):
    """Distance of a recommendation from the present value, from nothing known to far off."""

    UNKNOWN = "UNKNOWN"
    GOOD = "GOOD"
    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


_WORST_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.OK, Severity.GOOD, Severity.UNKNOWN)
_CPU_STEPS = ((0.5, Severity.CRITICAL), (0.25, Severity.WARNING), (0.1, Severity.OK))
_MEMORY_STEPS = ((500.0, Severity.CRITICAL), (250.0, Severity.WARNING), (100.0, Severity.OK))


def severity_of(resource: str, current: float | None, recommended: float | None) -> Severity:
    """Return the severity by the absolute difference in cores or mebibytes; too much weighs like too little."""
    if current is None or recommended is None:
        return Severity.GOOD if current is recommended else Severity.WARNING
    difference = abs(current - recommended)
    steps = _CPU_STEPS if resource == "cpu" else _MEMORY_STEPS
    scale = 1 if resource == "cpu" else MEBIBYTE
    return next((severity for least, severity in steps if difference / scale >= least), Severity.GOOD)


def worst(severities: Sequence[Severity]) -> Severity:
    """Return the severity of a row from those of its values; unknown counts least."""
    return min(severities, key=_WORST_FIRST.index)
