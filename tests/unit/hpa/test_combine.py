"""Several metrics, one recommendation (docs/hpa.md, section 9)."""

from __future__ import annotations

from forecaster.hpa.proposals import CombinedProposal, MetricProposal, NoRecommendation, Unmeasured, combine

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
