"""What the HPA itself will do, told beside the recommendation."""

from __future__ import annotations

from dataclasses import replace

from forecaster.domain.decision import Reason, Recommendation
from forecaster.domain.policy import Policy
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import Target, TargetType, Workload
from forecaster.horizontal import hpa_next
from forecaster.horizontal.gate_states import Gate
from forecaster.hpa.behavior import Behavior, ScalingPolicy, ScalingRules
from forecaster.hpa.spec import CrossVersionObjectReference, HpaSpec
from forecaster.publish.values import values_for
from tests.support.builders import CPU_HALF, NO_SAMPLE, NOON, hpa, outlooks, policy, workload
from tests.support.horizontal import decided
from tests.support.published import offer_of
from tests.support.recommendations import held

QUEUE = Target("queue_length", TargetType.AVERAGE_VALUE, 30.0)
RATE = Target("http_requests", TargetType.AVERAGE_VALUE, 50.0)


def own_hpa(of: Workload, least: int = 1, behavior: Behavior | None = None) -> HpaSpec:
    """The HPA as the API server has it now."""
    assert of.autoscaler
    target = CrossVersionObjectReference(of.id.kind, of.id.name, "apps/v1")
    return HpaSpec(target, of.autoscaler.max_replicas, (), least, behavior)


def next_sync(of: Workload, one: Recommendation, *, mode: str = "publish", own: HpaSpec | None = None) -> list[str]:
    """What the HPA does with what is offered of this recommendation."""
    offer = offer_of(one, Policy.model_validate({"mode": mode}))
    return hpa_next.next_sync(of, one, values_for(offer, one.targets, one.at), own)


def test_pods_that_are_starting_take_their_share_as_the_hpa_counts_them() -> None:
    """66 % of three pods is 40 % of five: 4 by the ready pods alone, and the HPA turns no rise into a fall."""
    rising = workload(replicas=5, ready=3)
    one = decided(outlooks(cpu=2.0), of=rising)
    assert "it will keep 5 pods" in next_sync(rising, one)[0]
    assert one.signals[0].reactive_replicas == 5


def test_what_is_multiplied_makes_the_count_that_stands_behind_it() -> None:
    """630 % of one pod, or 157 % of four, three of which are starting."""
    told = next_sync(workload(ready=1), decided(outlooks(cpu=6.3), of=workload(ready=1)))
    assert "see 630 % of requested cpu in use / 50 % = 13 pods" in told[0]


def test_without_an_hpa_there_is_nothing_to_tell() -> None:
    alone = workload(autoscaler=None)
    assert next_sync(alone, decided(outlooks(cpu=2.0), of=alone)) == []


def test_it_follows_the_measured_demand_and_not_the_forecast() -> None:
    told = "\n".join(next_sync(workload(), decided(outlooks(cpu=3.0, cpu_ahead=9.0))))
    assert "6" in told
    assert "18" not in told


def test_a_request_rate_goes_by_the_name_the_hpa_gives_it() -> None:
    busy = workload(autoscaler=hpa(CPU_HALF, RATE))
    seen = outlooks(cpu=2.0, requests=350.0)
    told = "\n".join(next_sync(busy, decided(seen, of=busy, under=policy(requests_metric="http_requests"))))
    assert "http_requests" in told
    assert "7" in told


def test_it_is_not_foretold_where_one_of_its_metrics_is_not_measured() -> None:
    queued = workload(autoscaler=hpa(QUEUE, RATE, CPU_HALF))
    seen = outlooks(cpu=3.0, requests=350.0)
    told = next_sync(queued, decided(seen, of=queued, under=policy(requests_metric="http_requests")))
    assert told == ["What HPA web-hpa does next is not known: queue_length is not measured here."]


def test_it_is_not_foretold_without_a_sample() -> None:
    assert next_sync(workload(), decided(outlooks(cpu=NO_SAMPLE))) == [
        "What HPA web-hpa does next is not known: cpu is not measured here."
    ]


def test_it_is_not_foretold_while_the_source_is_down() -> None:
    down = held(workload(), Reason.SOURCE_DOWN, "nobody answers", NOON)
    assert next_sync(workload(), down) == ["What HPA web-hpa does next is not known: cpu is not measured here."]


def test_it_is_not_foretold_by_a_part_of_what_it_reads() -> None:
    known = outlooks(cpu=1.5)["cpu"]
    part = replace(known.measured, lower_bound="samples of 7 of 10 pods are missing")  # type: ignore[type-var]
    large = workload(replicas=10)
    assert next_sync(large, decided({"cpu": replace(known, measured=part)}, of=large)) == [
        "What HPA web-hpa does next is not known: cpu is measured in part."
    ]


FORECAST = Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5)


def test_an_hpa_that_reads_our_demand_follows_the_forecast() -> None:
    follower = workload(autoscaler=hpa(FORECAST))
    told = "\n".join(next_sync(follower, decided(outlooks(cpu=3.0, cpu_ahead=9.0), of=follower)))
    assert "18" in told


def test_a_forecast_that_is_only_watched_is_not_what_the_hpa_sees() -> None:
    follower = workload(autoscaler=hpa(FORECAST))
    one = decided(outlooks(cpu=3.0, cpu_ahead=9.0), of=follower, under=policy(gate=True), gate=Gate())
    told = next_sync(follower, one)
    assert "from 4 to 6" in told[0]
    assert "18" not in "\n".join(told)


def test_of_a_workload_that_is_only_observed_nothing_is_offered() -> None:
    follower = workload(autoscaler=hpa(FORECAST))
    one = decided(outlooks(cpu=3.0, cpu_ahead=9.0), of=follower)
    assert next_sync(follower, one, mode="observe") == [
        "What HPA web-hpa does next is not known: forecaster_demand is not offered."
    ]


def test_a_step_that_the_tolerance_swallows_is_told_where_our_metric_is_read() -> None:
    """Eleven wanted of ten is a ratio of 1.1: inside the band, whatever the value."""
    follower = workload(autoscaler=hpa(FORECAST), replicas=10)
    told = next_sync(follower, decided(outlooks(cpu=5.0, cpu_ahead=5.4), of=follower, under=policy(tolerance=0.0)))
    assert "keeps 10 replicas where 11 are wanted" in told[-1]
    assert "behavior.scaleUp.tolerance" in told[-1]


def test_a_floor_of_ours_is_the_minimum_that_the_hpa_goes_to() -> None:
    """The workload states its owner's minimum; the HPA has ours meanwhile."""
    told = next_sync(workload(), decided(outlooks(cpu=2.0)), own=own_hpa(workload(), 7))
    assert "goes from 4 to minReplicas 7" in told[0]


def test_an_hpa_whose_behavior_is_known_keeps_to_its_policies_and_its_tolerance() -> None:
    """Two pods a minute, and no tolerance: 10 -> 12 of 18 that are wanted, and nothing is swallowed."""
    slow = ScalingRules((ScalingPolicy("Pods", 2, MINUTE),), tolerance=0.0)
    follower = workload(autoscaler=hpa(FORECAST), replicas=10)
    ahead = decided(outlooks(cpu=5.0, cpu_ahead=9.0), of=follower)
    slow_hpa = own_hpa(follower, behavior=Behavior(slow, slow))
    told = next_sync(follower, ahead, own=slow_hpa)
    assert "from 10 to 12" in told[0]
    near = decided(outlooks(cpu=5.0, cpu_ahead=5.4), of=follower, under=policy(tolerance=0.0))
    assert "keeps 10 replicas" not in "\n".join(next_sync(follower, near, own=slow_hpa))


def test_two_targets_of_our_demand_leave_open_what_the_hpa_reads() -> None:
    twice = workload(autoscaler=hpa(*(replace(FORECAST, signal=one) for one in ("cpu", "memory"))))
    told = next_sync(twice, decided(outlooks(cpu=3.0), of=twice))
    assert "forecaster_demand is read 2 times" in told[0]


def test_a_step_beyond_the_tolerance_is_not_warned_of() -> None:
    follower = workload(autoscaler=hpa(FORECAST), replicas=10)
    told = next_sync(follower, decided(outlooks(cpu=5.0, cpu_ahead=9.0), of=follower))
    assert "keeps 10 replicas" not in "\n".join(told)
