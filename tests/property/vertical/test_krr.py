"""KRR on arrays answers as its strategy `simple` does of one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.vertical.recommenders.baselines import CPU_QUANTILE, krr, rounded_cpu, rounded_memory
from tests.oracles.krr import KRR_UNKNOWN, QueryResults, simple

if TYPE_CHECKING:
    from numpy.typing import NDArray

POD = "pod"
TARGETED = st.frozensets(st.sampled_from(["cpu", "memory"]))


@given(st.integers(0, 2**32 - 1), st.integers(0, 250), TARGETED)
def test_a_row_is_sized_as_a_pod(seed: int, points: int, targeted: frozenset[str]) -> None:
    draw = np.random.default_rng(seed)
    cores, used = draw.lognormal(-2, 1, points), draw.lognormal(19, 1, points)
    (row,) = krr(cores[None], used[None], [targeted])
    proposals = simple(results(cores, used, targeted))
    cpu, memory = proposals["cpu"].request, proposals["memory"].request
    assert (row and row.cpu_request) == (None if cpu == KRR_UNKNOWN else rounded_cpu(float(cpu or 0)))
    assert (row and row.memory_request) == (None if memory == KRR_UNKNOWN else rounded_memory(float(memory or 0)))


def results(cores: NDArray[np.float64], used: NDArray[np.float64], targeted: frozenset[str]) -> QueryResults:
    """Results of KRR's queries for one pod with these samples."""
    return QueryResults(
        cpu_percentile={POD: float(np.quantile(cores, CPU_QUANTILE))} if cores.size else {},
        memory_peak={POD: float(used.max())} if used.size else {},
        points={"cpu": {POD: cores.size}, "memory": {POD: used.size}},
        hpa_on=targeted,
    )
