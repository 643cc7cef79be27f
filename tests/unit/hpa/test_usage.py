"""Sums between the groups and the formulas (docs/hpa.md, sections 6 and 8.1)."""

from __future__ import annotations

from forecaster.hpa.evaluate import (
    RequestedUsage,
    missing_share,
    remaining_samples,
    requested_usage,
    total_usage,
    unready_share,
)
from forecaster.hpa.pods import Groups
from forecaster.hpa.proposals import Share
from forecaster.hpa.samples import PodSample
from tests.support.hpa import NOW

SAMPLES = {"a": PodSample(1, NOW), "b": PodSample(20, NOW), "gone": PodSample(300, NOW)}


def test_ignored_and_unready_pods_lose_their_samples_and_strangers_do_not() -> None:
    assert set(remaining_samples(SAMPLES, Groups(0, ["a"], [], []))) == {"b", "gone"}
    assert set(remaining_samples(SAMPLES, Groups(0, [], [], ["b"]))) == {"a", "gone"}
    assert set(remaining_samples(SAMPLES, Groups(0, ["a"], [], ["b"]))) == {"gone"}
    assert remaining_samples(SAMPLES, Groups(2, [], ["c"], [])) is SAMPLES


def test_utilization_counts_samples_with_a_request() -> None:
    assert requested_usage(SAMPLES, {"a": 5, "b": 6, "c": 7}) == RequestedUsage(21, 11, 2)


def test_averages_count_all_samples() -> None:
    assert total_usage(SAMPLES) == 321


def test_a_missing_pod_is_filled_in_pod_by_pod() -> None:
    assert missing_share(["a", "b"], {"a": 5, "b": 7}, 50) == Share(2, 12, 12)
    assert missing_share(["a", "b"], {"a": 5, "b": 7}, 150) == Share(2, 12, 7 + 10)


def test_a_fill_wraps_before_it_is_divided() -> None:
    assert missing_share(["a"], {"a": 2**62}, 100).fill_milli == 0


def test_an_unready_pod_brings_its_request_and_no_usage() -> None:
    assert unready_share(["a", "b"], {"a": 5, "b": 7}) == Share(2, 12, 0)
