"""The next step of the HPA itself, foretold beside the recommendation."""

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


def own_hpa(workload: Workload, least: int = 1, behavior: Behavior | None = None) -> HpaSpec:
    """Specification of the workload's HPA as the API server has it."""
    assert workload.autoscaler
    target = CrossVersionObjectReference(workload.id.kind, workload.id.name, "apps/v1")
    return HpaSpec(target, workload.autoscaler.max_replicas, (), least, behavior)


def next_sync(
    workload: Workload, record: Recommendation, *, mode: str = "publish", own: HpaSpec | None = None
) -> list[str]:
    """Sentences about the HPA's next step with the values that this recommendation offers."""
    offer = offer_of(record, Policy.model_validate({"mode": mode}))
    stated = (own.bounds.min_replicas, own.behavior) if own else ()
    return hpa_next.next_sync(workload, record, values_for(offer, record.targets, record.at), mode, *stated)


def test_pods_that_are_starting_take_their_share_as_the_hpa_counts_them() -> None:
    """66 % of three pods is 40 % of five, which would be 4 pods; but the HPA turns no rise into a fall."""
    rising = workload(replicas=5, ready=3)
    record = decided(outlooks(cpu=2.0), workload=rising)
    assert "it will keep 5 pods" in next_sync(rising, record)[0]
    assert record.signals[0].reactive_replicas == 5


def test_a_fall_is_foretold_without_the_recommendations_that_only_the_hpa_remembers() -> None:
    many = workload(replicas=9)
    lines = next_sync(many, decided(outlooks(cpu=2.0), workload=many))
    assert "it will go from 9 to 4" in lines[0]
    assert lines[-1] == hpa_next.UNSEEN_HISTORY


def test_the_shown_ratio_multiplies_to_the_shown_count() -> None:
    """Usage is 630 % of one ready pod, or 157 % of four pods, three of which are starting."""
    lines = next_sync(workload(ready=1), decided(outlooks(cpu=6.3), workload=workload(ready=1)))
    assert "see 630 % of requested cpu in use / 50 % = 13 pods" in lines[0]


def test_without_an_hpa_nothing_is_foretold() -> None:
    alone = workload(autoscaler=None)
    assert next_sync(alone, decided(outlooks(cpu=2.0), workload=alone)) == []


def test_it_follows_the_measured_demand_and_not_the_forecast() -> None:
    text = "\n".join(next_sync(workload(), decided(outlooks(cpu=3.0, cpu_ahead=9.0))))
    assert "from 4 to 6" in text
    assert "18" not in text


def test_a_request_rate_goes_by_the_name_the_hpa_gives_it() -> None:
    busy = workload(autoscaler=hpa(CPU_HALF, RATE))
    forecasts = outlooks(cpu=2.0, requests=350.0)
    text = "\n".join(next_sync(busy, decided(forecasts, workload=busy, under=policy(requests_metric="http_requests"))))
    assert "http_requests" in text
    assert "from 4 to 7" in text


def test_it_is_not_foretold_where_one_of_its_metrics_is_not_measured() -> None:
    queued = workload(autoscaler=hpa(QUEUE, RATE, CPU_HALF))
    forecasts = outlooks(cpu=3.0, requests=350.0)
    lines = next_sync(queued, decided(forecasts, workload=queued, under=policy(requests_metric="http_requests")))
    assert lines == ["What HPA web-hpa does next is not known: queue_length is not measured here."]


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
    assert next_sync(large, decided({"cpu": replace(known, measured=part)}, workload=large)) == [
        "What HPA web-hpa does next is not known: cpu is measured in part."
    ]


FORECAST = Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5)


def test_an_hpa_that_reads_our_demand_follows_the_forecast() -> None:
    follower = workload(autoscaler=hpa(FORECAST))
    text = "\n".join(next_sync(follower, decided(outlooks(cpu=3.0, cpu_ahead=9.0), workload=follower)))
    assert "= 18 pods" in text


def test_a_forecast_that_is_only_watched_is_not_what_the_hpa_sees() -> None:
    follower = workload(autoscaler=hpa(FORECAST))
    record = decided(outlooks(cpu=3.0, cpu_ahead=9.0), workload=follower, under=policy(gate=True), gate=Gate())
    lines = next_sync(follower, record)
    assert "from 4 to 6" in lines[0]
    assert "18" not in "\n".join(lines)


def test_of_a_workload_that_is_only_observed_nothing_is_offered() -> None:
    follower = workload(autoscaler=hpa(FORECAST))
    record = decided(outlooks(cpu=3.0, cpu_ahead=9.0), workload=follower)
    assert next_sync(follower, record, mode="observe") == [
        "What HPA web-hpa does next is not known: forecaster_demand is not offered."
    ]


def test_a_step_within_the_tolerance_is_warned_of_where_our_metric_is_read() -> None:
    """From ten pods to eleven is a ratio of 1.1, which is within the tolerance."""
    follower = workload(autoscaler=hpa(FORECAST), replicas=10)
    lines = next_sync(
        follower, decided(outlooks(cpu=5.0, cpu_ahead=5.4), workload=follower, under=policy(tolerance=0.0))
    )
    assert "keeps 10 replicas where 11 are wanted" in lines[-1]
    assert "behavior.scaleUp.tolerance" in lines[-1]


def test_a_floor_of_ours_is_the_minimum_that_the_hpa_goes_to() -> None:
    """The workload states its owner's minimum, while the HPA has our floor."""
    lines = next_sync(workload(), decided(outlooks(cpu=2.0)), own=own_hpa(workload(), 7))
    assert "goes from 4 to minReplicas 7" in lines[0]


def test_an_hpa_whose_behavior_is_known_keeps_to_its_policies_and_its_tolerance() -> None:
    """With two pods a minute and no tolerance, the HPA goes from 10 to 12 of the recommended 18."""
    slow = ScalingRules((ScalingPolicy("Pods", 2, MINUTE),), tolerance=0.0)
    follower = workload(autoscaler=hpa(FORECAST), replicas=10)
    ahead = decided(outlooks(cpu=5.0, cpu_ahead=9.0), workload=follower)
    slow_hpa = own_hpa(follower, behavior=Behavior(slow, slow))
    lines = next_sync(follower, ahead, own=slow_hpa)
    assert "from 10 to 12" in lines[0]
    near = decided(outlooks(cpu=5.0, cpu_ahead=5.4), workload=follower, under=policy(tolerance=0.0))
    assert "keeps 10 replicas" not in "\n".join(next_sync(follower, near, own=slow_hpa))


def test_two_targets_of_our_demand_leave_open_what_the_hpa_reads() -> None:
    twice = workload(autoscaler=hpa(*(replace(FORECAST, signal=signal) for signal in ("cpu", "memory"))))
    lines = next_sync(twice, decided(outlooks(cpu=3.0), workload=twice))
    assert "forecaster_demand is read 2 times" in lines[0]


def test_a_step_beyond_the_tolerance_is_not_warned_of() -> None:
    follower = workload(autoscaler=hpa(FORECAST), replicas=10)
    lines = next_sync(follower, decided(outlooks(cpu=5.0, cpu_ahead=9.0), workload=follower))
    assert "keeps 10 replicas" not in "\n".join(lines)
