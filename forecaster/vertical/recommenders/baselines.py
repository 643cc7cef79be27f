"""What VPA and KRR would say on the same history, as far as it is kept: usage of one pod, five minutes apart.

These tools look at containers of single pods; here the mean over a workload's pods stands for one of them. None sees
OOM kills here. VPA starts empty at the beginning of the history, with its defaults; KRR is its strategy `simple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.workload import Resources
from forecaster.vertical.recommenders.krr import rounded_cpu, rounded_memory
from forecaster.vertical.recommenders.vpa import VpaPanel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

VPA, KRR = "vpa", "krr"
CPU_QUANTILE, MEMORY_BUFFER = 0.95, 0.15
LEAST_POINTS = 100
"""Fewest samples of which KRR says anything."""


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
    return [
        _krr(cores[~np.isnan(cores)], used[~np.isnan(used)], targeted)
        for cores, used, targeted in zip(cpu, memory, hpa_on, strict=True)
    ]


def _krr(cores: Floats, used: Floats, targeted: frozenset[str]) -> Resources | None:
    """CPU request at a quantile, memory at the peak and a buffer; nothing of a resource that an HPA targets."""
    request = size = None
    if cores.size >= LEAST_POINTS and "cpu" not in targeted:
        request = rounded_cpu(float(np.quantile(cores, CPU_QUANTILE)))
    if used.size >= LEAST_POINTS and "memory" not in targeted:
        size = rounded_memory(float(used.max()) * (1 + MEMORY_BUFFER))
    return None if request is None and size is None else Resources(request, None, size, size)
