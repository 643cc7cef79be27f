"""Pods that count for the HPA controller (docs/hpa.md, section 6)."""

from __future__ import annotations

import pytest

from forecaster.hpa.pods import (
    Groups,
    HpaPod,
    PodContainer,
    ReadyCondition,
    group_pods,
    is_pod_level_resource,
    pod_request,
    requests_by_pod,
    running_and_ready,
)
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.samples import PodSample
from tests.support.hpa import NOW, ago, pod, seconds

PERIOD, DELAY = seconds(300), seconds(30)


def group(member: HpaPod, resource: str = "cpu", sample: PodSample | None = None) -> str:
    samples = {} if sample is None else {member.name: sample}
    groups = group_pods([member], samples, resource, NOW, PERIOD, DELAY)
    return (
        "ready" if groups.ready else next(name for name in ("unready", "missing", "ignored") if getattr(groups, name))
    )


FRESH = PodSample(100, NOW, seconds(30))


def test_no_pods_are_four_empty_groups() -> None:
    assert group_pods([], {}, "cpu", NOW, PERIOD, DELAY) == Groups(0, [], [], [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"deleting": True}, "ignored"),
        ({"phase": "Failed"}, "ignored"),
        ({"phase": "Failed", "deleting": True}, "ignored"),
        ({"phase": "Pending"}, "unready"),
        ({"phase": "Pending", "deleting": True}, "ignored"),
        ({"phase": "Succeeded"}, "ready"),
        ({"ready": None}, "unready"),
        ({"start_time": None}, "unready"),
    ],
)
def test_the_first_test_that_hits_decides(fields: dict[str, object], expected: str) -> None:
    assert group(pod(**fields), sample=FRESH) == expected


def test_missing_comes_before_readiness() -> None:
    assert group(pod(ready=ReadyCondition("False", ago(10)))) == "missing"


def test_a_pending_pod_without_sample_is_unready() -> None:
    assert group(pod(phase="Pending")) == "unready"


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_only_cpu_looks_at_readiness(status: str) -> None:
    starting = pod(start_time=ago(10), ready=ReadyCondition(status, ago(5)))
    assert group(starting, "memory", FRESH) == "ready"
    assert group(starting, "", FRESH) == "ready"
    assert group(starting, "cpu", FRESH) == "unready"


def test_a_young_pod_counts_once_a_whole_window_is_behind_its_readiness() -> None:
    young = pod(start_time=ago(100), ready=ReadyCondition("True", ago(60)))
    assert group(young, sample=PodSample(1, ago(31), seconds(30))) == "unready"
    assert group(young, sample=PodSample(1, ago(30), seconds(30))) == "ready"


def test_a_pod_is_young_strictly_within_the_period() -> None:
    stale = PodSample(1, ago(5000), seconds(30))
    assert group(pod(start_time=ago(299), ready=ReadyCondition("True", ago(60))), sample=stale) == "unready"
    assert group(pod(start_time=ago(300), ready=ReadyCondition("True", ago(60))), sample=stale) == "ready"


def test_an_old_pod_that_was_ready_once_still_counts() -> None:
    was_ready = pod(start_time=ago(1000), ready=ReadyCondition("False", ago(970)))
    never_ready = pod(start_time=ago(1000), ready=ReadyCondition("False", ago(971)))
    assert group(was_ready, sample=FRESH) == "ready"
    assert group(never_ready, sample=FRESH) == "unready"


def test_an_old_pod_of_unknown_readiness_counts() -> None:
    assert group(pod(start_time=ago(1000), ready=ReadyCondition("Unknown", ago(999))), sample=FRESH) == "ready"


def test_running_and_ready_looks_at_nothing_else() -> None:
    pods = [
        pod("a"),
        pod("b", deleting=True),
        pod("c", ready=ReadyCondition("False", NOW)),
        pod("d", ready=ReadyCondition("Unknown", NOW)),
        pod("e", phase="Pending"),
        pod("f", ready=None),
        pod("g", start_time=None),
    ]
    assert running_and_ready(pods) == 3


def test_a_young_pod_that_is_not_ready_does_not_count_however_fresh_its_sample() -> None:
    young = pod(start_time=ago(100), ready=ReadyCondition("False", ago(60)))
    assert group(young, sample=FRESH) == "unready"


def test_groups_name_their_pods() -> None:
    pods = [pod("a", deleting=True), pod("b", phase="Pending"), pod("c"), pod("d")]
    assert group_pods(pods, {"d": FRESH}, "cpu", NOW, PERIOD, DELAY) == Groups(1, ["b"], ["c"], ["a"])


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
    p0 = pod(containers=(APP,), init_containers=(INIT, SIDECAR), pod_requests_milli={"cpu": 9})
    assert pod_request(p0, "cpu", "app") == 500
    assert pod_request(p0, "cpu", "side") == 200
    assert pod_request(p0, "cpu", "init") == Unmeasured("container_not_found", "container init not found in Pod p0")
    assert cause(pod_request(p0, "memory", "app")) == "missing_request"


def test_pod_level_requests_take_the_place_of_containers() -> None:
    p0 = pod(containers=(BARE,), pod_requests_milli={"cpu": 700}, overhead_milli={"cpu": 50})
    assert pod_request(p0, "cpu") == 750
    assert cause(pod_request(p0, "cpu", pod_level_resources=False)) == "missing_request"


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
    p0 = pod(
        containers=(PodContainer("app", {"memory": 300}), BARE), init_containers=init, pod_requests_milli={"cpu": 1}
    )
    assert pod_request(p0, "memory") == expected


def test_what_nobody_requests_is_missing_unless_the_overhead_names_it() -> None:
    p0 = pod(containers=(BARE,), pod_requests_milli={"cpu": 1})
    assert pod_request(p0, "memory") == Unmeasured("missing_request", "missing pod-level request for memory in Pod p0")
    assert (
        pod_request(pod(containers=(BARE,), pod_requests_milli={"cpu": 1}, overhead_milli={"memory": 5}), "memory") == 5
    )


def test_a_request_of_zero_is_a_request() -> None:
    zero = PodContainer("app", {"memory": 0})
    assert pod_request(pod(containers=(zero,), pod_requests_milli={"cpu": 1}), "memory") == 0
    assert pod_request(pod(containers=(BARE,), init_containers=(zero,), pod_requests_milli={"cpu": 1}), "memory") == 0


def test_a_resource_beyond_the_pod_level_is_summed_over_containers() -> None:
    p0 = pod(containers=(PodContainer("app", {"gpu": 3}),), pod_requests_milli={"cpu": 1, "gpu": 9})
    assert pod_request(p0, "gpu") == 3


def test_pod_level_resources_are_cpu_memory_and_hugepages() -> None:
    named = ["cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "hugepages"]
    assert [is_pod_level_resource(name) for name in named] == [True, True, True, False, False]


def test_the_gate_reaches_every_pod() -> None:
    level = [pod(containers=(BARE,), pod_requests_milli={"cpu": 700})]
    assert requests_by_pod(level, "cpu") == {"p0": 700}
    assert cause(requests_by_pod(level, "cpu", pod_level_resources=False)) == "missing_request"


def test_an_init_container_that_asks_for_nothing_adds_nothing_to_the_peak() -> None:
    side = PodContainer("side", {"memory": 100}, restarts_always=True)
    p0 = pod(containers=(BARE,), init_containers=(side, PodContainer("init")), pod_requests_milli={"cpu": 1})
    assert pod_request(p0, "memory") == 100


def test_the_resource_that_a_named_container_lacks_is_told() -> None:
    assert pod_request(pod(containers=(BARE,)), "gpu", "bare") == Unmeasured(
        "missing_request", "missing request for gpu in container bare of Pod p0"
    )
