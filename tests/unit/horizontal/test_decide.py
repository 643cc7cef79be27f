"""Counts of replicas for four pods that carry half a core each, unless a test states otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.decision import Clamp, Hold, Reason, Recommendation, Scale
from forecaster.domain.signal import CPU, Measured
from forecaster.domain.workload import Resources, Target, TargetType
from forecaster.horizontal.row import GONE
from tests.support.builders import (
    CPU_HALF,
    MEMORY_HALF,
    NO_FORECAST,
    NO_SAMPLE,
    NOON,
    STALE,
    after,
    hpa,
    minutes,
    outlooks,
    policy,
    workload,
)
from tests.support.horizontal import NOTHING_BEFORE, decide, decided, recommended_before
from tests.support.outlook import SignalForecast

RATE = Target("http_requests", TargetType.AVERAGE_VALUE, 50.0)
BOTH = workload(autoscaler=hpa(CPU_HALF, MEMORY_HALF))


def scaled(record: Recommendation) -> tuple[int, Reason]:
    assert isinstance(record.replicas, Scale), record.replicas
    return record.replicas.replicas, record.replicas.reason


def held(record: Recommendation) -> Reason:
    assert isinstance(record.replicas, Hold), record.replicas
    assert record.recommended_replicas == record.replicas_now
    return record.replicas.reason


class TestForecast:
    def test_raises_what_the_measured_demand_asks(self) -> None:
        assert scaled(decided(outlooks(cpu=2.0, cpu_ahead=3.0))) == (6, Reason.FORECAST)

    def test_does_not_lower_it(self) -> None:
        assert scaled(decided(outlooks(cpu=3.0, cpu_ahead=1.0))) == (6, Reason.REACTIVE)

    def test_lowers_it_where_the_policy_says_so(self) -> None:
        record = decided(outlooks(cpu=3.0, cpu_ahead=1.0), under=policy(scale_in_by_forecast=True))
        assert scaled(record) == (2, Reason.FORECAST)

    def test_that_asks_for_the_same_leaves_the_credit_to_the_measured_demand(self) -> None:
        assert scaled(decided(outlooks(cpu=3.0, cpu_ahead=3.0))) == (6, Reason.REACTIVE)

    def test_that_is_missing_leaves_the_measured_demand_alone_and_says_why(self) -> None:
        record = decided(outlooks(cpu=3.0, cpu_ahead=NO_FORECAST))
        assert scaled(record) == (6, Reason.FALLBACK)
        assert NO_FORECAST.note in record.replicas.message

    def test_of_one_signal_is_enough_to_raise(self) -> None:
        record = decided(outlooks(cpu=2.0, memory=2.0, memory_ahead=3.0), workload=BOTH)
        assert scaled(record) == (6, Reason.FORECAST)

    def test_lowers_only_the_signals_that_have_one(self) -> None:
        """CPU asks for 8 and is forecast to ask for 2; memory asks for 6 and has no forecast."""
        forecasts = outlooks(cpu=4.0, cpu_ahead=1.0, memory=3.0, memory_ahead=NO_FORECAST)
        assert scaled(decided(forecasts, workload=BOTH, under=policy(scale_in_by_forecast=True))) == (
            6,
            Reason.FORECAST,
        )

    def test_lowers_nothing_while_a_signal_is_missing(self) -> None:
        forecasts = outlooks(cpu=4.0, cpu_ahead=1.0, memory=NO_SAMPLE)
        assert scaled(decided(forecasts, workload=BOTH, under=policy(scale_in_by_forecast=True))) == (
            8,
            Reason.REACTIVE,
        )


class TestMissingSignal:
    def test_blocks_going_down(self) -> None:
        assert held(decided(outlooks(cpu=1.0, memory=NO_SAMPLE), workload=BOTH)) is Reason.NO_DATA

    def test_that_is_stale_is_called_so(self) -> None:
        assert held(decided(outlooks(cpu=1.0, memory=STALE), workload=BOTH)) is Reason.STALE

    def test_does_not_block_going_up(self) -> None:
        assert scaled(decided(outlooks(cpu=3.0, memory=NO_SAMPLE), workload=BOTH)) == (6, Reason.FALLBACK)

    def test_does_not_block_going_up_by_forecast(self) -> None:
        record = decided(outlooks(cpu=1.0, cpu_ahead=3.0, memory=NO_SAMPLE), workload=BOTH)
        assert scaled(record) == (6, Reason.FORECAST)

    def test_does_not_count_its_own_old_forecast(self) -> None:
        forecasts = outlooks(cpu=2.0, cpu_ahead=2.0, memory=STALE, memory_ahead=4.0)
        assert scaled(decided(forecasts, workload=BOTH)) == (4, Reason.REACTIVE)


PART = Measured(1.0, NOON, "6 of 10 ready pods have samples")
"""Part of a CPU demand, which asks for two pods."""


class TestPartOfASum:
    """The measured part of a sum is a lower bound of the demand."""

    def test_blocks_going_down_and_says_why(self) -> None:
        record = decided({CPU: SignalForecast(CPU, PART, NO_FORECAST)})
        assert held(record) is Reason.NO_DATA
        assert record.replicas.message == (
            "not going down while a signal is incomplete: cpu: 6 of 10 ready pods have samples"
        )

    def test_raises_the_count_by_what_is_there(self) -> None:
        record = decided({CPU: SignalForecast(CPU, replace(PART, value=3.0), NO_FORECAST)})
        assert scaled(record) == (6, Reason.FALLBACK)
        assert record.signals[0].note.startswith("a lower bound, not going down by it: 6 of 10")

    def test_lets_a_forecast_raise_and_not_lower(self) -> None:
        forecasts = outlooks(cpu=1.0, cpu_ahead=3.0)
        higher = {CPU: replace(forecasts[CPU], measured=PART)}
        assert scaled(decided(higher)) == (6, Reason.FORECAST)
        lower = {CPU: replace(outlooks(cpu=1.0, cpu_ahead=0.5)[CPU], measured=PART)}
        assert held(decided(lower, under=policy(scale_in_by_forecast=True))) is Reason.NO_DATA

    def test_is_no_outage_of_the_load(self) -> None:
        """A tenth of the expected load would be an outage, if it were complete."""
        policies = policy(outage_hold=minutes(30), scale_in_by_forecast=True)
        _, before = decide(workload(), outlooks(cpu=2.0, cpu_ahead=2.0), policies, NOTHING_BEFORE, after(-1))
        forecasts = {CPU: replace(outlooks(cpu=0.1, cpu_ahead=2.0)[CPU], measured=replace(PART, value=0.1))}
        _, state = decide(workload(), forecasts, policies, before, NOON)
        assert int(state.cause[0]) != GONE


class TestHold:
    @pytest.mark.parametrize(
        ("forecasts", "reason"),
        [
            pytest.param(outlooks(cpu=NO_SAMPLE), Reason.NO_DATA, id="no sample"),
            pytest.param(outlooks(cpu=NO_SAMPLE, cpu_ahead=9.0), Reason.NO_DATA, id="a forecast without a sample"),
            pytest.param(outlooks(cpu=STALE), Reason.STALE, id="an old sample"),
            pytest.param(outlooks(memory=9.0), Reason.NO_DATA, id="only another signal"),
            pytest.param({}, Reason.NO_DATA, id="nothing"),
        ],
    )
    def test_when_the_target_has_no_fresh_sample(self, forecasts: dict, reason: Reason) -> None:
        assert held(decided(forecasts)) is reason

    def test_at_zero_replicas(self) -> None:
        assert held(decided(outlooks(cpu=3.0), workload=workload(replicas=0))) is Reason.NO_REPLICAS

    def test_at_zero_by_its_own_hpa_until_a_forecast_asks_for_pods(self) -> None:
        """The HPA has minReplicas 0 and a target of fifty requests a pod, which are measured without pods."""
        asleep = workload(replicas=0, autoscaler=hpa(RATE, lowest=0))
        by_rate = policy(requests_metric="http_requests")
        woken = decided(outlooks(requests=0.0, requests_ahead=120.0), workload=asleep, under=by_rate)
        assert scaled(woken) == (3, Reason.FORECAST)
        assert woken.replicas.message.endswith("; it wakes the workload, which is at zero")
        quiet = decided(outlooks(requests=0.0, requests_ahead=0.0), workload=asleep, under=by_rate)
        assert held(quiet) is Reason.NO_REPLICAS

    @pytest.mark.parametrize("lowest", [1, 2])
    def test_at_zero_by_a_person_whatever_a_forecast_asks(self, lowest: int) -> None:
        asleep = workload(replicas=0, autoscaler=hpa(RATE, lowest=lowest))
        forecasts = outlooks(requests=0.0, requests_ahead=120.0)
        assert (
            held(decided(forecasts, workload=asleep, under=policy(requests_metric="http_requests")))
            is Reason.NO_REPLICAS
        )

    def test_at_zero_by_its_own_hpa_while_only_pods_show_the_load(self) -> None:
        asleep = workload(replicas=0, autoscaler=hpa(CPU_HALF, lowest=0))
        assert held(decided(outlooks(cpu=0.0, cpu_ahead=3.0), workload=asleep)) is Reason.NO_REPLICAS

    def test_at_zero_replicas_while_the_last_pods_leave(self) -> None:
        assert held(decided(outlooks(cpu=3.0), workload=workload(replicas=0, ready=2))) is Reason.NO_REPLICAS

    def test_while_no_pod_is_ready(self) -> None:
        assert held(decided(outlooks(cpu=3.0), workload=workload(ready=0))) is Reason.NO_PODS

    def test_without_any_target_for_a_pod(self) -> None:
        record = decided(outlooks(cpu=3.0), workload=workload(resources=Resources(), autoscaler=None))
        assert held(record) is Reason.NO_TARGET

    def test_when_every_target_of_the_hpa_is_unusable(self) -> None:
        queue = Target("queue_length", TargetType.AVERAGE_VALUE, 30.0)
        record = decided(outlooks(cpu=3.0), workload=workload(autoscaler=hpa(queue)))
        assert held(record) is Reason.NO_TARGET
        assert "queue_length" in record.replicas.message

    def test_with_one_sentence_for_targets_on_several_containers(self) -> None:
        both = (Target("cpu", TargetType.UTILIZATION, 0.7, name) for name in ("app", "proxy"))
        record = decided(outlooks(cpu=3.0), workload=workload(autoscaler=hpa(*both)))
        assert record.replicas.message.count("several containers") == 1

    def test_leaves_the_state_as_it_was(self) -> None:
        earlier = recommended_before((9, 2))
        record = decided(outlooks(cpu=1.0), state=earlier, under=policy(scale_down_stabilization=minutes(5)))
        silent = decided(outlooks(cpu=NO_SAMPLE), state=earlier)
        assert (record.recommended_replicas, silent.recommended_replicas) == (9, 4)


class TestTargets:
    def test_the_largest_of_all_signals_wins(self) -> None:
        assert scaled(decided(outlooks(cpu=2.0, memory=3.0), workload=BOTH))[0] == 6

    def test_without_an_hpa_the_policy_says_what_a_pod_carries(self) -> None:
        """At 80 % of one core a pod, four cores need five pods."""
        assert scaled(decided(outlooks(cpu=4.0), workload=workload(autoscaler=None)))[0] == 5

    def test_without_an_hpa_the_policy_may_count_requests(self) -> None:
        record = decided(
            outlooks(cpu=0.8, requests=350.0), workload=workload(autoscaler=None), under=policy(requests_per_pod=50.0)
        )
        assert scaled(record)[0] == 7

    def test_an_average_of_cpu_is_an_amount_for_each_pod(self) -> None:
        quarter = Target("cpu", TargetType.AVERAGE_VALUE, 0.25)
        assert scaled(decided(outlooks(cpu=2.0), workload=workload(autoscaler=hpa(quarter))))[0] == 8

    def test_a_metric_that_the_policy_names_is_the_request_rate(self) -> None:
        rate = Target("http_requests", TargetType.AVERAGE_VALUE, 50.0)
        record = decided(
            outlooks(requests=350.0),
            workload=workload(autoscaler=hpa(rate)),
            under=policy(requests_metric="http_requests"),
        )
        assert scaled(record)[0] == 7

    def test_a_metric_that_nobody_names_is_left_to_the_hpa_with_a_note(self) -> None:
        queue = Target("queue_length", TargetType.AVERAGE_VALUE, 30.0)
        record = decided(outlooks(cpu=3.0, cpu_ahead=3.0), workload=workload(autoscaler=hpa(CPU_HALF, queue)))
        assert scaled(record)[0] == 6
        assert [view.note != "" for view in record.signals] == [False, True]

    @pytest.mark.parametrize("kind", [TargetType.VALUE, TargetType.UTILIZATION])
    def test_a_request_rate_that_is_not_an_average_cannot_be_divided_among_pods(self, kind: TargetType) -> None:
        rate = Target("http_requests", kind, 0.5)
        record = decided(
            outlooks(requests=350.0),
            workload=workload(autoscaler=hpa(rate)),
            under=policy(requests_metric="http_requests"),
        )
        assert held(record) is Reason.NO_TARGET

    def test_utilization_without_a_request_names_the_remedy(self) -> None:
        record = decided(outlooks(cpu=3.0), workload=workload(resources=Resources(memory_request=1.0)))
        assert held(record) is Reason.NO_TARGET
        assert "set one" in record.replicas.message


class TestTolerance:
    @pytest.mark.parametrize("cpu", [1.8, 2.0, 2.2])
    def test_within_a_tenth_nothing_moves(self, cpu: float) -> None:
        assert scaled(decided(outlooks(cpu=cpu, cpu_ahead=cpu)))[0] == 4

    @pytest.mark.parametrize(("cpu", "replicas"), [(2.24, 5), (1.5, 3)])
    def test_beyond_it_the_formula_speaks(self, cpu: float, replicas: int) -> None:
        assert scaled(decided(outlooks(cpu=cpu)))[0] == replicas

    def test_the_policy_may_widen_it(self) -> None:
        assert scaled(decided(outlooks(cpu=2.6), under=policy(tolerance=0.3)))[0] == 4


class TestPodsThatAreNotReady:
    def test_that_start_take_their_share_of_a_high_load(self) -> None:
        """Two of four pods serve 1.5 cores; by these two alone the count would be six."""
        assert scaled(decided(outlooks(cpu=1.5), workload=workload(ready=2)))[0] == 4

    def test_that_start_are_not_enough_for_a_higher_load(self) -> None:
        assert scaled(decided(outlooks(cpu=3.0), workload=workload(ready=2)))[0] == 6

    def test_that_start_do_not_count_under_a_low_load(self) -> None:
        assert scaled(decided(outlooks(cpu=0.5), workload=workload(ready=2)))[0] == 1

    def test_that_leave_do_not_count(self) -> None:
        """Six pods are still ready and four are requested; two cores need four."""
        assert scaled(decided(outlooks(cpu=2.0), workload=workload(replicas=4, ready=6)))[0] == 4


class TestBounds:
    def test_of_the_hpa_hold(self) -> None:
        bounded = workload(autoscaler=hpa(lowest=3, highest=5))
        assert [scaled(decided(outlooks(cpu=cpu), workload=bounded))[0] for cpu in (0.0, 1.0, 9.0)] == [3, 3, 5]

    def test_of_the_policy_come_before_those_of_the_hpa(self) -> None:
        own = policy(min_replicas=2, max_replicas=7)
        bounded = workload(autoscaler=hpa(lowest=3, highest=5))
        assert [scaled(decided(outlooks(cpu=cpu), workload=bounded, under=own))[0] for cpu in (0.0, 9.0)] == [2, 7]

    def test_without_an_hpa_the_present_size_stays_and_nothing_limits_growth(self) -> None:
        free = workload(autoscaler=None)
        assert [scaled(decided(outlooks(cpu=cpu), workload=free))[0] for cpu in (0.0, 800.0)] == [4, 1000]

    def test_without_an_hpa_the_clamp_names_the_missing_minimum(self) -> None:
        (step,) = decided(outlooks(cpu=0.5, cpu_ahead=NO_FORECAST), workload=workload(autoscaler=None)).clamps
        why = "it has 4, no HPA, and no stated minimum; min_replicas of its policy lets it go down"
        assert step == Clamp("present size", 1, 4, why)

    def test_without_an_hpa_the_policy_lets_it_go_down(self) -> None:
        free, own = workload(autoscaler=None), policy(min_replicas=1)
        assert scaled(decided(outlooks(cpu=0.0), workload=free, under=own))[0] == 1

    def test_an_hpa_that_may_scale_to_zero_is_not_followed_there(self) -> None:
        assert scaled(decided(outlooks(cpu=0.0), workload=workload(autoscaler=hpa(lowest=0))))[0] == 1

    def test_that_contradict_each_other_end_at_the_highest(self) -> None:
        record = decided(outlooks(cpu=2.0), workload=workload(autoscaler=hpa(lowest=5)), under=policy(max_replicas=3))
        assert scaled(record)[0] == 3


class TestStabilization:
    FIVE = policy(scale_down_stabilization=minutes(5))

    @pytest.mark.parametrize(("age", "replicas"), [(5.0, 7), (5.01, 2)])
    def test_goes_down_only_to_the_highest_recommendation_of_the_window(self, age: float, replicas: int) -> None:
        record = decided(outlooks(cpu=1.0), state=recommended_before((7, age)), under=self.FIVE)
        assert record.recommended_replicas == replicas

    def test_does_not_slow_going_up(self) -> None:
        assert scaled(decided(outlooks(cpu=3.0), state=recommended_before((1, 1)), under=self.FIVE))[0] == 6


class TestRecord:
    def test_every_step_is_recorded_in_order_with_what_it_changed(self) -> None:
        """Measured demand needs 4, the forecast 6; 9 were recommended two minutes ago, and 8 are allowed."""
        record = decided(
            outlooks(cpu=2.0, cpu_ahead=3.0),
            workload=workload(autoscaler=hpa(highest=8)),
            state=recommended_before((9, 2)),
            under=policy(scale_down_stabilization=minutes(5)),
        )
        assert [(clamp.rule, clamp.before, clamp.after) for clamp in record.clamps] == [
            ("forecast", 4, 6),
            ("stabilization", 6, 9),
            ("bounds", 9, 8),
        ]
        assert record.recommended_replicas == 8

    def test_a_step_that_changes_nothing_is_left_out(self) -> None:
        assert decided(outlooks(cpu=2.0, cpu_ahead=2.0)).clamps == ()

    def test_a_hold_has_no_steps(self) -> None:
        assert decided(outlooks(cpu=NO_SAMPLE)).clamps == ()

    def test_the_clamp_says_by_which_rule(self) -> None:
        (bounds,) = decided(outlooks(cpu=9.0), workload=workload(autoscaler=hpa(lowest=2, highest=5))).clamps
        assert bounds == Clamp("bounds", 18, 5, "TooManyReplicas: 2 to 5 replicas; a maximum of 18 would not limit it")

    def test_each_target_shows_both_sides_and_what_they_ask(self) -> None:
        (view,) = decided(outlooks(cpu=2.0, cpu_ahead=3.0)).signals
        assert (view.measured, view.reactive_replicas, view.forecast_replicas) == (2.0, 4, 6)
        assert view.target == "50 % of 1000m a pod"
        assert view.note == ""

    def test_a_value_that_is_missing_is_none_and_never_zero(self) -> None:
        (view,) = decided(outlooks(cpu=NO_SAMPLE)).signals
        assert (view.measured, view.reactive_replicas, view.forecast_replicas) == (None, None, None)
        assert view.note == NO_SAMPLE.note

    def test_pods_that_are_not_there_are_the_reason_in_the_record_too(self) -> None:
        (view,) = decided(outlooks(cpu=2.0), workload=workload(ready=0)).signals
        assert (view.measured, view.reactive_replicas, view.note) == (2.0, None, "no pod is ready")

    def test_a_forecast_by_another_model_than_the_asked_one_says_so(self) -> None:
        forecasts = outlooks(cpu=2.0, cpu_ahead=2.0)
        (cpu,) = forecasts.values()
        noted = {cpu.signal: replace(cpu, ahead=replace(cpu.ahead, note="too short for ridge"))}
        assert decided(noted).signals[0].note == "too short for ridge"

    def test_the_owner_of_the_count_is_named(self) -> None:
        names = [decided(outlooks(cpu=2.0), workload=workload(autoscaler=owner)).autoscaler for owner in (hpa(), None)]
        assert names == ["web-hpa", ""]
