"""What pods request (docs/hpa.md, section 7)."""

from __future__ import annotations

import pytest

from forecaster.hpa.pods import PodContainer, is_pod_level_resource, pod_request, requests_by_pod
from forecaster.hpa.proposals import Unmeasured
from tests.support.hpa import pod

APP = PodContainer("app", {"cpu": 500})
SIDECAR = PodContainer("side", {"cpu": 200}, restarts_always=True)
INIT = PodContainer("init", {"cpu": 2000})
BARE = PodContainer("bare")


def cause(request: object) -> str:
    assert isinstance(request, Unmeasured)
    return request.cause


def test_containers_and_sidecars_are_summed_and_init_containers_are_not() -> None:
    assert pod_request(pod(containers=(APP, APP), init_containers=(INIT, SIDECAR)), "cpu") == 1200


def test_overhead_does_not_count_without_pod_level_requests() -> None:
    assert pod_request(pod(containers=(APP,), overhead_milli={"cpu": 50}), "cpu") == 500


def test_one_container_without_the_request_fails_the_pod() -> None:
    request = pod_request(pod(containers=(APP, BARE)), "cpu")
    assert request == Unmeasured("missing_request", "missing request for cpu in container bare of Pod p0")
    assert cause(
        pod_request(pod(containers=(APP,), init_containers=(PodContainer("s", {}, restarts_always=True),)), "cpu")
    )


def test_one_pod_fails_all_even_an_ignored_one() -> None:
    pods = [pod("good"), pod("bad", deleting=True, containers=(BARE,))]
    assert cause(requests_by_pod(pods, "cpu")) == "missing_request"
    assert requests_by_pod(pods[:1], "cpu") == {"good": 1000}


def test_a_pod_without_containers_requests_nothing() -> None:
    assert pod_request(pod(containers=()), "cpu") == 0


def test_a_named_container_is_looked_up_among_the_long_running_ones() -> None:
    one = pod(containers=(APP,), init_containers=(INIT, SIDECAR), pod_requests_milli={"cpu": 9})
    assert pod_request(one, "cpu", "app") == 500
    assert pod_request(one, "cpu", "side") == 200
    assert pod_request(one, "cpu", "init") == Unmeasured("container_not_found", "container init not found in Pod p0")
    assert cause(pod_request(one, "memory", "app")) == "missing_request"


def test_pod_level_requests_take_the_place_of_containers() -> None:
    one = pod(containers=(BARE,), pod_requests_milli={"cpu": 700}, overhead_milli={"cpu": 50})
    assert pod_request(one, "cpu") == 750
    assert cause(pod_request(one, "cpu", pod_level_resources=False)) == "missing_request"


def test_pod_level_requests_of_no_supported_resource_do_not_count() -> None:
    assert pod_request(pod(containers=(APP,), pod_requests_milli={"example.com/gpu": 1}), "cpu") == 500
    assert pod_request(pod(containers=(APP,), pod_requests_milli={}), "cpu") == 500


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ((), 300),
        ((PodContainer("init", {"memory": 900}),), 900),
        ((PodContainer("s", {"memory": 100}, restarts_always=True),), 400),
        ((PodContainer("s", {"memory": 100}, restarts_always=True), PodContainer("init", {"memory": 900})), 1000),
        ((PodContainer("init", {"memory": 900}), PodContainer("s", {"memory": 100}, restarts_always=True)), 900),
        ((PodContainer("s", {"memory": 700}, restarts_always=True), PodContainer("init", {"memory": 1})), 1000),
        (
            (
                PodContainer("s", {"memory": 1}, restarts_always=True),
                PodContainer("t", {"memory": 2}, restarts_always=True),
            ),
            303,
        ),
    ],
    ids=["app", "init peak", "sidecar", "sidecar under init", "init before sidecar", "running sum", "two sidecars"],
)
def test_what_the_pod_level_lacks_comes_from_the_containers(init: tuple[PodContainer, ...], expected: int) -> None:
    one = pod(
        containers=(PodContainer("app", {"memory": 300}), BARE), init_containers=init, pod_requests_milli={"cpu": 1}
    )
    assert pod_request(one, "memory") == expected


def test_what_nobody_requests_is_missing_unless_the_overhead_names_it() -> None:
    one = pod(containers=(BARE,), pod_requests_milli={"cpu": 1})
    assert pod_request(one, "memory") == Unmeasured("missing_request", "missing pod-level request for memory in Pod p0")
    assert (
        pod_request(pod(containers=(BARE,), pod_requests_milli={"cpu": 1}, overhead_milli={"memory": 5}), "memory") == 5
    )


def test_a_request_of_zero_is_a_request() -> None:
    zero = PodContainer("app", {"memory": 0})
    assert pod_request(pod(containers=(zero,), pod_requests_milli={"cpu": 1}), "memory") == 0
    assert pod_request(pod(containers=(BARE,), init_containers=(zero,), pod_requests_milli={"cpu": 1}), "memory") == 0


def test_a_resource_beyond_the_pod_level_is_summed_over_containers() -> None:
    one = pod(containers=(PodContainer("app", {"gpu": 3}),), pod_requests_milli={"cpu": 1, "gpu": 9})
    assert pod_request(one, "gpu") == 3


def test_pod_level_resources_are_cpu_memory_and_hugepages() -> None:
    named = ["cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "hugepages"]
    assert [is_pod_level_resource(name) for name in named] == [True, True, True, False, False]


def test_the_gate_reaches_every_pod() -> None:
    level = [pod(containers=(BARE,), pod_requests_milli={"cpu": 700})]
    assert requests_by_pod(level, "cpu") == {"p0": 700}
    assert cause(requests_by_pod(level, "cpu", pod_level_resources=False)) == "missing_request"


def test_an_init_container_that_asks_for_nothing_adds_nothing_to_the_peak() -> None:
    side = PodContainer("side", {"memory": 100}, restarts_always=True)
    one = pod(containers=(BARE,), init_containers=(side, PodContainer("init")), pod_requests_milli={"cpu": 1})
    assert pod_request(one, "memory") == 100


def test_the_resource_that_a_named_container_lacks_is_told() -> None:
    assert pod_request(pod(containers=(BARE,)), "gpu", "bare") == Unmeasured(
        "missing_request", "missing request for gpu in container bare of Pod p0"
    )
