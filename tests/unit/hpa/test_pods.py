"""Which pods count (docs/hpa.md, section 6)."""

from __future__ import annotations

import pytest

from forecaster.hpa.pods import Groups, HpaPod, ReadyCondition, group_pods, running_and_ready
from forecaster.hpa.samples import PodSample
from tests.support.hpa import NOW, ago, pod, seconds

PERIOD, DELAY = seconds(300), seconds(30)


def group(one: HpaPod, resource: str = "cpu", sample: PodSample | None = None) -> str:
    samples = {} if sample is None else {one.name: sample}
    groups = group_pods([one], samples, resource, NOW, PERIOD, DELAY)
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
