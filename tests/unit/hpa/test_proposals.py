"""Worked examples of docs/hpa.md, section 8: one metric, one proposal."""

from __future__ import annotations

import math

import pytest

from forecaster.hpa.numbers import MAX_INT32, MAX_INT64
from forecaster.hpa.proposals import (
    DEFAULT_TOLERANCE,
    CombinedProposal,
    MetricProposal,
    NoRecommendation,
    Share,
    Tolerance,
    Unmeasured,
    combine,
    from_average,
    from_total,
    from_utilization,
    per_pod_value,
)

TENTH = DEFAULT_TOLERANCE


def use(total: int, request: int, target: int, ready: int, current: int, **more: object) -> MetricProposal:
    proposal = from_utilization(total, request, target, ready, current, TENTH, **more)  # type: ignore[arg-type]
    assert isinstance(proposal, MetricProposal)
    return proposal


def test_three_pods_at_80_percent_of_60_become_four() -> None:
    assert use(2400, 3000, 60, 3, 3) == MetricProposal(4, 80 / 60, None, utilization_percent=80, average_milli=800)


@pytest.mark.parametrize(("percent", "replicas"), [(55, 10), (45, 10), (44, 9), (56, 12)])
def test_both_edges_of_the_tolerance_are_inside(percent: int, replicas: int) -> None:
    assert use(percent * 100, 10_000, 50, 10, 10).replicas == replicas


def test_a_percentage_is_cut_before_it_becomes_a_ratio() -> None:
    assert use(2239, 4000, 50, 4, 4) == MetricProposal(4, 1.1, "tolerance", 55, 559)


def test_unready_pods_dilute_a_rise() -> None:
    """Two ready pods at 90 %, two unready ones counted as idle: 45 % of a target of 50 %."""
    proposal = use(1800, 2000, 50, 2, 4, unready=Share(2, 2000))
    assert (proposal.replicas, proposal.ratio, proposal.hold) == (4, 0.9, "tolerance")
    assert proposal.utilization_percent == 90


def test_unready_pods_are_absent_from_a_fall() -> None:
    """Five pods, two unready, three at 60 % of their target: two."""
    assert use(900, 3000, 50, 3, 5, unready=Share(2, 2000)).replicas == 2


def test_a_missing_pod_counts_whole_in_a_fall() -> None:
    proposal = use(300, 3000, 50, 3, 4, missing=Share(1, 1000, 1000))
    assert (proposal.replicas, proposal.ratio) == (3, 0.64)


def test_a_missing_pod_counts_at_a_target_above_100_percent() -> None:
    proposal = use(300, 3000, 200, 3, 4, missing=Share(1, 1000, 2000))
    assert (proposal.replicas, proposal.ratio) == (2, 0.285)


def test_a_missing_pod_counts_nothing_in_a_rise() -> None:
    proposal = use(4000, 2000, 50, 2, 3, missing=Share(1, 1000, 1000))
    assert (proposal.replicas, proposal.ratio) == (8, 133 / 50)


def test_at_the_target_exactly_missing_pods_are_left_out() -> None:
    assert use(1500, 3000, 50, 3, 4, missing=Share(1, 1000, 1000)) == MetricProposal(4, 1.0, "tolerance", 50, 500)


def test_superfluous_samples_count_in_the_last_multiplier() -> None:
    """Two sampled pods with a request, one sample of a pod nobody knows, one missing pod: four samples."""
    proposal = use(4000, 2000, 50, 2, 3, samples=3, missing=Share(1, 1000, 1000))
    assert proposal.replicas == 11


def test_a_rise_over_more_samples_than_replicas_never_lowers() -> None:
    proposal = use(620, 1000, 50, 1, 9, missing=Share(1, 10, 10))
    assert (proposal.replicas, proposal.hold) == (9, "direction")


def test_a_fall_over_more_samples_than_replicas_never_raises() -> None:
    proposal = use(100, 1000, 50, 1, 1, missing=Share(2, 200, 200))
    assert (proposal.replicas, proposal.hold) == (1, "direction")


def test_a_second_ratio_on_the_other_side_keeps_the_size() -> None:
    proposal = use(400, 1000, 50, 1, 2, missing=Share(1, 1000, 1000))
    assert (proposal.replicas, proposal.ratio, proposal.hold) == (2, 1.4, "direction")


def test_requests_that_sum_to_zero_give_no_proposal() -> None:
    answer = from_utilization(10, 0, 50, 1, 1, TENTH)
    assert isinstance(answer, Unmeasured)
    assert answer.cause == "no_request_for_sampled_pods"


def test_requests_that_wrap_to_zero_when_filled_in_give_no_proposal() -> None:
    answer = from_utilization(10, 2**62, 50, 1, 1, TENTH, missing=Share(3, 3 * 2**62, 0))
    assert isinstance(answer, Unmeasured)


def test_a_hundredfold_sum_wraps_at_64_bits() -> None:
    """100 x 2^57 is past 2^63: the percentage comes out negative."""
    assert use(2**57, 2**40, 50, 1, 1).utilization_percent == (100 * 2**57 - 2**64) // 2**40


def test_a_surge_pod_without_sample_does_not_raise_a_fall() -> None:
    """Two samples of 10, target 17, a third pod missing: average 12.333, ceil(2.176) = 3 is above the current 2."""
    proposal = from_average(20_000, 2, 17_000, 2, 2, TENTH, missing=1)
    assert proposal == MetricProposal(2, 12_333 / 17_000, "direction", average_milli=10_000)


def test_averages_are_cut_toward_zero() -> None:
    proposal = from_average(-7, 2, 10, 2, 2, TENTH)
    assert (proposal.average_milli, proposal.ratio, proposal.replicas) == (-3, -0.3, 0)


def test_plain_averages_count_unready_pods_as_idle_in_a_rise() -> None:
    assert from_average(6000, 2, 1000, 2, 4, TENTH, unready=2).replicas == 6


def test_plain_averages_leave_unready_pods_out_of_a_fall() -> None:
    assert from_average(1000, 2, 1000, 2, 4, TENTH, unready=2).replicas == 1


def test_a_total_is_scaled_by_ready_pods() -> None:
    """Queue 90, target 30, three replicas of which two are ready: six, not nine."""
    assert from_total(90_000, 30_000, 2, 3, TENTH) == MetricProposal(6, 3.0, value_milli=90_000)


def test_a_total_within_the_tolerance_keeps_the_replicas_of_the_spec() -> None:
    assert from_total(33_000, 30_000, 2, 3, TENTH).replicas == 3


def test_a_total_from_zero_ignores_tolerance_and_pods() -> None:
    assert from_total(31_000, 30_000, 0, 0, TENTH) == MetricProposal(2, 31 / 30, value_milli=31_000)


def test_a_total_is_held_at_31_bits() -> None:
    assert from_total(MAX_INT64, 1, 1, 1, TENTH).replicas == MAX_INT32


@pytest.mark.parametrize(
    ("usage", "status", "replicas"),
    [(90_000, 4, 3), (115_000, 4, 4), (115_000, 5, 4), (1, 0, 1), (0, 0, 0)],
    ids=["falls", "within: status replicas", "surge", "from zero", "stays at zero"],
)
def test_a_shared_value_is_divided_by_the_pods_that_exist(usage: int, status: int, replicas: int) -> None:
    assert per_pod_value(usage, 30_000, status, TENTH).replicas == replicas


def test_a_shared_value_reports_its_share_rounded_up() -> None:
    assert per_pod_value(100, 30, 3, TENTH).average_milli == 34


def test_a_shared_value_without_pods_reports_no_share() -> None:
    assert per_pod_value(100, 30, 0, TENTH).average_milli is None


def test_an_overflown_sum_is_shown_whole_where_asked() -> None:
    assert per_pod_value(MAX_INT64, 1, 2, TENTH, keep_overflow=True).average_milli == MAX_INT64
    assert per_pod_value(MAX_INT64, 1, 2, TENTH).average_milli == 2**62


def test_each_direction_has_its_own_tolerance() -> None:
    wide_up = Tolerance(up=0.5, down=0.0)
    assert from_total(14, 10, 10, 10, wide_up).replicas == 10
    assert from_total(9, 10, 10, 10, wide_up).replicas == 9


def test_an_average_within_the_tolerance_tells_so() -> None:
    assert from_average(2100, 2, 1000, 2, 7, TENTH) == MetricProposal(7, 1.05, "tolerance", average_milli=1050)


def test_an_average_without_unready_pods_needs_no_second_ratio() -> None:
    assert from_average(3000, 2, 1000, 2, 2, TENTH) == MetricProposal(3, 1.5, average_milli=1500)


def test_unready_pods_that_turn_an_average_around_keep_the_size() -> None:
    assert from_average(3000, 2, 1000, 2, 4, TENTH, unready=2) == MetricProposal(
        4, 0.75, "direction", average_milli=1500
    )


def test_a_missing_pod_dilutes_a_small_rise() -> None:
    assert use(1500, 2000, 50, 2, 2, missing=Share(1, 1000, 1000)) == MetricProposal(2, 1.0, "tolerance", 75, 750)


def test_at_the_target_exactly_unready_pods_are_left_out_too() -> None:
    proposal = use(1500, 3000, 50, 3, 5, missing=Share(1, 1000, 1000), unready=Share(1, 1000))
    assert proposal == MetricProposal(5, 1.0, "tolerance", 50, 500)


def test_a_rise_that_survives_filling_in_is_followed() -> None:
    small = Share(1, 100, 100)
    assert use(1800, 2000, 50, 2, 3, missing=small) == MetricProposal(6, 1.7, None, 90, 900)
    assert use(1800, 2000, 50, 2, 6, missing=small) == MetricProposal(6, 1.7, None, 90, 900)


def test_a_fall_that_ends_at_the_current_size_is_no_hold() -> None:
    assert use(300, 3000, 50, 3, 3, missing=Share(1, 1000, 1000)) == MetricProposal(3, 0.64, None, 10, 100)


def test_a_shared_value_tells_all_its_numbers() -> None:
    assert per_pod_value(115_000, 30_000, 4, TENTH) == MetricProposal(4, 115 / 120, "tolerance", average_milli=28_750)
    assert per_pod_value(90_000, 30_000, 4, TENTH) == MetricProposal(3, 0.75, average_milli=22_500)


def test_an_average_over_no_samples_at_all_is_the_sum() -> None:
    assert use(10, 5, 50, 0, 0).average_milli == 10


BROKEN = Unmeasured("api_failed", "no answer")


def asks(replicas: int) -> MetricProposal:
    return MetricProposal(replicas, 1.0)


def test_the_first_to_reach_the_largest_is_credited() -> None:
    assert combine([asks(2), asks(5), asks(5)], 3) == CombinedProposal(5, metric=1)


def test_a_running_zero_gives_its_credit_away() -> None:
    assert combine([asks(0), asks(0)], 3) == CombinedProposal(0, metric=1)


def test_a_running_zero_is_replaced_even_by_less() -> None:
    assert combine([asks(0), asks(-3)], 3) == CombinedProposal(-3, metric=1)


def test_all_broken_is_no_recommendation_and_the_first_is_named() -> None:
    assert combine([BROKEN, BROKEN], 0) == NoRecommendation(0)


def test_one_broken_blocks_a_fall() -> None:
    assert combine([asks(3), BROKEN], 5) == NoRecommendation(1)


def test_one_broken_does_not_block_staying_or_rising() -> None:
    assert combine([asks(5), BROKEN], 5) == CombinedProposal(5, 0, partial=True)
    assert combine([BROKEN, asks(7), BROKEN], 5) == CombinedProposal(7, 1, partial=True)


def test_from_zero_a_negative_proposal_beside_a_broken_metric_fails() -> None:
    assert combine([asks(0), asks(-3), BROKEN], 0) == NoRecommendation(2)


def test_the_upper_edge_is_inside_although_the_difference_is_not() -> None:
    assert Tolerance().holds(1.1)
    assert abs(1.0 - 1.1) > 0.1


def test_a_stored_tolerance_may_lie_one_ulp_above_its_decimal() -> None:
    assert Tolerance(up=570 * 0.001).holds(1.57)
    assert not Tolerance().holds(1.5)


def test_what_is_no_number_is_outside() -> None:
    assert not Tolerance().holds(math.nan)
    assert not Tolerance().holds(math.inf)


def test_each_edge_has_its_own_side() -> None:
    band = Tolerance(up=0.5, down=0.25)
    assert [band.holds(ratio) for ratio in (0.74, 0.75, 1.0, 1.5, 1.51)] == [False, True, True, True, False]
