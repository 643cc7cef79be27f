"""Sizes of a pod that states its resources for the whole pod (KEP-2837)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.vertical.admission.advice import sum_of
from forecaster.vertical.admission.context import WHOLE_POD, AdmissionContext, as_stated, with_values
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements, pod_requests

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 2**30 * 1000
NONE = Requirements({}, {})
BLOCK = Requirements({"cpu": 1000, "memory": 2 * GIB}, {"cpu": 2000, "memory": 2 * GIB})
APP = Requirements({"cpu": 600, "memory": GIB}, {"memory": GIB})
PROXY = Requirements({"cpu": 200, "memory": GIB // 4}, {"memory": GIB // 4})


def pod(block: Requirements | None = BLOCK, **stated: Requirements) -> Pod:
    containers = tuple(Container(name, stated.get(name, NONE)) for name in ("app", "proxy"))
    return Pod(containers, pod_level=block)


def test_what_a_pod_states_as_a_whole_is_the_sum_of_its_containers() -> None:
    stated = as_stated(pod(), {"app": APP, "proxy": PROXY})
    total = GIB + GIB // 4
    assert stated == {WHOLE_POD: Requirements({"cpu": 800, "memory": total}, {"cpu": 1600, "memory": total})}
    assert pod_requests(with_values(pod(), stated)) == {"cpu": 800, "memory": total}
    assert sum_of(stated).memory_limit == total / 1000


def test_a_pod_without_such_a_block_has_the_sizes_of_its_containers() -> None:
    sizes = {"app": APP, "proxy": PROXY}
    assert as_stated(pod(None), sizes) == sizes
    assert as_stated(pod(NONE), sizes) == sizes


def test_while_one_container_has_no_size_nothing_is_summed() -> None:
    assert as_stated(pod(), {"app": APP}) == {}


def test_a_resource_that_stays_in_one_container_stays_in_the_pod() -> None:
    """CPU stays, for example, beside an HPA that acts on its utilization."""
    stated = as_stated(pod(), {"app": Requirements({"memory": GIB}, {"memory": GIB}), "proxy": PROXY})
    assert stated[WHOLE_POD].requests == {"cpu": 1000, "memory": GIB + GIB // 4}
    assert stated[WHOLE_POD].limits["cpu"] == 2000


def test_the_block_names_the_resources_and_a_container_keeps_to_its_own() -> None:
    stated = pod(Requirements({"memory": 2 * GIB}, {}), app=Requirements({"cpu": 100}, {}))
    assert as_stated(stated, {"app": APP, "proxy": PROXY}) == {
        WHOLE_POD: Requirements({"memory": GIB + GIB // 4}, {}),
        "app": Requirements({"cpu": 600}, {}),
    }


def test_what_a_limit_range_refuses_leaves_the_pod_as_it_is() -> None:
    ranges = (LimitRange((LimitRangeItem("Pod", max={"memory": GIB}),), "small"),)
    before = pod(Requirements({"cpu": 1000, "memory": GIB}, {"memory": GIB}))
    proof = prove(as_stated(before, {"app": APP, "proxy": PROXY}), AdmissionContext(before, limit_ranges=ranges))
    assert not proof.accepted
    assert proof.nearest is not None
    assert proof.nearest[WHOLE_POD].requests == {"cpu": 800, "memory": GIB}


AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory")), st.integers(0, 10**6))
BLOCKS = st.builds(Requirements, AMOUNTS, AMOUNTS)


@given(BLOCKS, st.dictionaries(st.sampled_from(("app", "proxy")), BLOCKS))
def test_no_value_is_added_or_removed_and_no_limit_is_below_its_request(
    block: Requirements, sizes: Mapping[str, Requirements]
) -> None:
    stated = as_stated(pod(block), sizes)
    if WHOLE_POD not in stated:
        return
    whole = stated[WHOLE_POD]
    assert (whole.requests.keys(), whole.limits.keys()) == (block.requests.keys(), block.limits.keys())
    for name in whole.limits.keys() & whole.requests.keys():
        changed = whole.requests[name] != block.requests[name]
        assert not changed or whole.limits[name] >= whole.requests[name]


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_a_request_of_nothing_has_no_ratio(name: str) -> None:
    stated = as_stated(pod(Requirements({name: 0}, {name: 5000})), {"app": APP, "proxy": PROXY})
    assert stated[WHOLE_POD].limits[name] >= stated[WHOLE_POD].requests[name]
