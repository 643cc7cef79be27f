"""The cache of sizes returns what sizing again returns, whatever changes in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import Target, TargetType
from forecaster.vertical.sizing.containers import NO_SIZING
from forecaster.vertical.sizing.pod import SizeCache, size
from tests.support.builders import GIB, hpa, sized, sizing_of, workload, workload_id

WORKLOADS = st.builds(
    workload,
    st.sampled_from(["web", "cart"]),
    replicas=st.integers(1, 3),
    autoscaler=st.sampled_from(
        [None, *(hpa(Target(metric, TargetType.UTILIZATION, 0.7)) for metric in ("cpu", "memory"))]
    ),
)
SIZINGS = st.sampled_from(
    [NO_SIZING, sizing_of(cpu=sized(0.4)), sizing_of(cpu=sized(0.4), memory=sized(GIB)), sizing_of(memory=sized(GIB))]
)
POLICIES = st.sampled_from([VerticalPolicy(), VerticalPolicy(beside_hpa="keep-scale-point")])


@given(st.lists(st.tuples(WORKLOADS, SIZINGS, POLICIES), max_size=12))
def test_it_returns_what_is_computed_again(cycles: list[tuple]) -> None:
    cache = SizeCache()
    for cycle in cycles:
        assert cache.size(*cycle) == size(*cycle)
        assert cache.size(*cycle) is cache.size(*cycle)


def test_sizes_of_workloads_that_left_are_forgotten() -> None:
    cache = SizeCache()
    for workload_ in (workload("web"), workload("cart")):
        cache.size(workload_, NO_SIZING, VerticalPolicy())
    cache.forget_others({workload_id("web")})
    assert list(cache.entries) == [workload_id("web")]
