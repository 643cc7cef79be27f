"""Observations made of totals, and passes over them."""

from __future__ import annotations

from forecaster.hpa.explain import amount, pods, target_amount
from forecaster.hpa.explain import seconds as spoken
from forecaster.hpa.limits import Growth
from forecaster.hpa.observation import ScaleSubresource, ScaleUnread, observe_totals, requests_of, total_of, totals_of
from forecaster.hpa.pods import PodContainer
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.reconcile import carry_on
from forecaster.hpa.samples import ExternalValues, ObjectMetric, PodSample, SampledPods
from forecaster.hpa.spec import Controller, HpaMetricTarget, MetricSpec
from tests.support.hpa import CPU, NOW, QUEUE, both, hpa, look, pod, queue_of, seconds

OBJECT = MetricSpec("Object", "rps", HpaMetricTarget("Value", value_milli=1000))
MEMORY = MetricSpec("Resource", "memory", HpaMetricTarget("AverageValue", average_value_milli=2**30 * 1000))


def test_a_total_is_spread_evenly_and_sums_to_itself() -> None:
    observation = observe_totals(hpa(CPU), 3, {"cpu": 1000}, {"cpu": 500}, NOW)
    (answer,) = observation.answers
    assert isinstance(answer, SampledPods)
    assert answer.samples == {"pod-0": PodSample(334, NOW), "pod-1": PodSample(333, NOW), "pod-2": PodSample(333, NOW)}
    assert total_of(answer) == 1000
    assert observation.scale == ScaleSubresource(3, 3, "pod=alike")
    assert observation.pods[0].containers == (PodContainer("app", {"cpu": 500}),)


def test_pods_of_totals_have_long_been_ready() -> None:
    (pod,) = observe_totals(hpa(CPU), 1, {}, {}, NOW).pods
    assert pod.ready is not None
    assert pod.start_time == pod.ready.last_transition == NOW - seconds(86_400)


def test_values_from_outside_are_not_spread() -> None:
    observation = observe_totals(hpa(OBJECT, QUEUE), 3, {"rps": 7, "queue": 9}, {}, NOW)
    assert list(observation.answers) == [ObjectMetric(7), ExternalValues((9,))]


def test_what_is_not_given_is_not_invented() -> None:
    observation = observe_totals(hpa(CPU, QUEUE), 0, {"cpu": 5}, {}, NOW)
    assert list(observation.answers) == [
        Unmeasured("no_samples", "there are no pods to measure"),
        Unmeasured("no_samples", "no total is given for External metric queue"),
    ]
    assert totals_of(hpa(CPU, QUEUE), observation) == {}


def test_pods_may_differ_from_replicas() -> None:
    assert observe_totals(hpa(), 3, {}, {}, NOW, ready=5).scale == ScaleSubresource(3, 5, "pod=alike")


def test_pods_that_lack_are_starting() -> None:
    observation = observe_totals(hpa(CPU), 3, {"cpu": 1000}, {"cpu": 500}, NOW, ready=1)
    assert [pod.phase for pod in observation.pods] == ["Running", "Pending", "Pending"]
    assert total_of(observation.answers[0]) == 1000


def test_no_more_pods_are_made_than_a_cluster_has() -> None:
    assert len(observe_totals(hpa(CPU), 2**31 - 1, {"cpu": 1000}, {"cpu": 500}, NOW, ready=1).pods) == 150_000


def test_a_named_container_holds_the_requests() -> None:
    named = MetricSpec("ContainerResource", "cpu", CPU.target, "web")
    assert observe_totals(hpa(named), 1, {}, {"cpu": 5}, NOW).pods[0].containers[0].name == "web"


def test_totals_and_requests_are_read_back() -> None:
    observation = look(
        2,
        queue_of(90),
        pods=[pod(containers=(PodContainer("a", {"cpu": 5, "memory": 1}), PodContainer("b", {"cpu": 6})))],
    )
    assert totals_of(hpa(), observation) == {"queue": 90_000}
    assert requests_of(observation) == {"cpu": 11}
    assert requests_of(look(0)) == {}


def test_passes_follow_one_another_one_sync_period_apart() -> None:
    steps = list(carry_on(hpa(), look(1, queue_of(900)), NOW, 4))
    assert [step.replicas for step in steps] == [1, 4, 8, 16]
    assert [step.outcome.desired.replicas for step in steps] == [4, 8, 16, 30]
    assert [step.at for step in steps] == [NOW + seconds(15 * number) for number in range(4)]
    assert steps[1].before == steps[0].outcome.state
    assert steps[0].observation.answers == (queue_of(900),)


def test_settings_of_the_controller_reach_every_pass() -> None:
    quick = Controller(growth=Growth(10, 10), sync_period=seconds(5))
    steps = list(carry_on(hpa(), look(1, queue_of(900)), NOW, 2, quick))
    assert [(step.at, step.outcome.desired.replicas) for step in steps] == [(NOW, 10), (NOW + seconds(5), 30)]


def test_a_scale_that_cannot_be_read_has_no_replicas() -> None:
    (step,) = carry_on(hpa(), look(1, queue_of(900), scale=ScaleUnread("gone")), NOW, 1)
    assert step.replicas == 0


def test_a_refused_write_leaves_the_size() -> None:
    steps = list(carry_on(hpa(behavior=both()), look(1, queue_of(900), write_refused=True), NOW, 2))
    assert [step.replicas for step in steps] == [1, 1]


def test_amounts_read_as_people_say_them() -> None:
    assert [amount(CPU, milli) for milli in (5200, 500, 0, -1500, 12_000)] == [
        "5.2 cores",
        "0.5 cores",
        "0 cores",
        "-1.5 cores",
        "12 cores",
    ]
    assert amount(MEMORY, 2**30 * 3000) == "3Gi"
    assert [amount(QUEUE, milli) for milli in (5200, 500, 1000, 15_000_000)] == ["5.2", "500m", "1", "15k"]
    assert target_amount(QUEUE, 5200) == "5200m"
    assert (pods(1), pods(2), spoken(seconds(0.5))) == ("1 pod", "2 pods", "0.5 s")
