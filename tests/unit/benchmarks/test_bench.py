"""The bench on cases that were computed by hand, and as its page shows it."""

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.bench import made_up as made_up_load
from benchmarks.bench.__main__ import PARTS, main
from benchmarks.bench.accuracy import origins
from benchmarks.bench.frontier import Comparison, at_cost, cheapest, compared, frontier_table
from benchmarks.bench.loads import Series, binned, load, sample
from benchmarks.bench.losses import covered, geometric_mean_ratio, pinball, quantile_loss
from benchmarks.bench.peers import FORESIGHT, PEERS
from benchmarks.bench.publishers import chosen_without
from benchmarks.bench.replay import TARGETS, Account, Replay, account, counts_of, hpa_counts, replay_of, scalable
from benchmarks.bench.tables import Table
from benchmarks.plugins import forecaster
from tests.support.snippets import ROOT

MINUTES_OF_DAY = 1440
NOTHING = np.full(8, np.nan)


def made_up(days: int = 6, seed: int = 0) -> Replay:
    """A noisy day that repeats, of which the last half day is replayed."""
    minutes = np.arange(days * MINUTES_OF_DAY)
    noise = np.random.default_rng(seed).gamma(4, 0.25, len(minutes))
    demand = (60 + 40 * np.sin(2 * np.pi * minutes / MINUTES_OF_DAY)) * noise
    first = len(minutes) - MINUTES_OF_DAY // 2
    return Replay("x", "made-up", 60, first * 60, demand[:first], demand[first:], demand[first:], 10.0)


def steps(*demand: float, pod: float = 1.0) -> Replay:
    """A replay of a few ticks after a past of one value."""
    values = np.array(demand)
    return Replay("x", "made-up", 60, 0, values[:1], values, values, pod)


def curve(pod_hours: list[float], unserved: list[float], changes: float = 10.0) -> Account:
    return Account(
        np.array(unserved), np.array(unserved), np.array(pod_hours), np.full(len(pod_hours), changes, dtype=float)
    )


def test_pinball_loss_charges_the_two_sides_by_the_level() -> None:
    loss = pinball(np.array([10.0, 10.0]), np.array([[8.0, 12.0]]), [0.9])
    assert loss == pytest.approx(np.array([[1.8, 0.2]]))


def test_quantile_loss_is_twice_the_mean_over_levels_of_the_sum_over_measured_steps() -> None:
    actual, forecast = np.array([10.0, np.nan]), np.array([[8.0, 0.0], [12.0, 0.0]])
    assert quantile_loss(actual, forecast, (0.5, 0.9)) == pytest.approx(1.0 + 0.2)


def test_a_step_that_was_not_measured_is_not_covered() -> None:
    assert covered(np.array([1.0, np.nan, 3.0]), np.array([[2.0, 9.0, 2.0]])).tolist() == [1]


def test_a_ratio_over_series_is_geometric() -> None:
    assert geometric_mean_ratio(np.array([2.0, 0.5]), np.array([1.0, 1.0])) == pytest.approx(1.0)


def test_bins_are_means_and_a_bin_without_samples_is_unknown() -> None:
    start, values = binned(np.array([60, 120, 660]), np.array([1.0, 3.0, 5.0]), 300)
    assert start == 0
    np.testing.assert_array_equal(values, [2.0, np.nan, 5.0])


def test_origins_lie_in_the_last_two_fifths_and_ascend() -> None:
    series = Series("x", "f", "cpu", 300, 300, 0, np.ones(1000))
    places = origins(series, 5, 12)
    assert len(places) == 5
    assert places == sorted(places)
    assert places[0] >= 600
    assert places[-1] + 12 <= 1000


def test_a_pod_serves_when_its_start_up_is_over_and_is_gone_at_once() -> None:
    counts = counts_of(np.array([[1.0, 3.0, 3.0, 3.0, 1.0]]), start_up=2)
    assert counts.ready.tolist() == [[1.0, 1.0, 1.0, 3.0, 1.0]]


def test_the_hpa_scales_on_the_minute_before_and_holds_within_its_tolerance() -> None:
    counts = hpa_counts(steps(10.0, 10.5, 20.0, 20.0), NOTHING[:4], (1.0,), start_up=0)
    assert counts.requested.tolist() == [[10.0, 10.0, 10.0, 20.0]]


def test_the_hpa_scales_down_to_the_largest_count_of_five_minutes() -> None:
    counts = hpa_counts(steps(20.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0), NOTHING, (1.0,), start_up=0)
    assert counts.requested.tolist() == [[20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 5.0, 5.0]]


def test_a_missing_sample_changes_nothing() -> None:
    demand, measured = np.array([10.0, 30.0, 30.0]), np.array([10.0, np.nan, 30.0])
    replay = Replay("x", "made-up", 60, 0, demand[:1], measured, demand, 1.0)
    assert hpa_counts(replay, NOTHING[:3], (1.0,), start_up=0).requested.tolist() == [[10.0, 10.0, 10.0]]


def test_unserved_demand_is_what_exceeds_ready_pods_as_a_share_of_all() -> None:
    replay = steps(10.0, 20.0, 10.0)
    outcome = account(replay, counts_of(np.array([[10.0, 15.0, 10.0]]), 0))
    assert outcome.unserved == pytest.approx([5 / 40])
    assert outcome.minutes_short == pytest.approx([1 / 3])
    assert outcome.pod_hours == pytest.approx([35 / 60])
    assert outcome.changes == pytest.approx([2 / (3 / MINUTES_OF_DAY)])


def test_a_curve_is_read_between_its_settings_and_unknown_outside() -> None:
    own = curve([10.0, 20.0], [0.2, 0.0])
    assert at_cost(own, 15.0, own.unserved) == pytest.approx(0.1)
    assert np.isnan(at_cost(own, 25.0, own.unserved))


def test_the_cheapest_setting_that_is_as_safe_lies_on_the_curve() -> None:
    assert cheapest(curve([10.0, 20.0], [0.2, 0.0]), 0.05) == pytest.approx(17.5)
    assert np.isnan(cheapest(curve([10.0, 20.0], [0.2, 0.1]), 0.05))


def test_a_policy_is_compared_at_the_cost_of_a_target_of_80_percent_and_the_safety_of_70() -> None:
    hours = [float(10 + place) for place in range(len(TARGETS))]
    hpa = curve(hours, [0.11 - 0.01 * place for place in range(len(TARGETS))])
    comparison = compared(curve([hour - 2 for hour in hours], hpa.unserved.tolist(), changes=5.0), hpa)
    assert comparison.hpa_unserved == pytest.approx(0.05)
    assert comparison.unserved == pytest.approx(0.03)
    assert comparison.changes == pytest.approx(0.5)
    assert comparison.saved == pytest.approx(2 / 17)


def test_worse_is_more_than_a_twentieth_above_the_hpa() -> None:
    assert Comparison(0.0106, 0.01, 1.0, 0.0).is_worse
    assert not Comparison(0.0104, 0.01, 1.0, 0.0).is_worse


def test_dearer_is_more_than_a_tenth_above_the_pod_hours_of_an_hpa_as_safe() -> None:
    assert Comparison(0.0, 0.0, 1.0, saved=-0.11).is_dearer
    assert not Comparison(0.0, 0.0, 1.0, saved=-0.09).is_dearer
    assert not Comparison(0.0, 0.0, 1.0, saved=float("nan")).is_dearer


def test_a_table_has_the_mean_the_median_and_the_sum_of_the_series() -> None:
    series = [Comparison(0.01, 0.02, 1.0, -0.2), Comparison(0.03, 0.02, 2.0, 0.2)]
    assert frontier_table("t", {"ours": series}).rows == [
        ("ours", "1.000", "1.000", "1.000", "1 of 2", "1 of 2", "1.50", "0%", "2 of 2")
    ]


def test_a_rule_is_chosen_by_the_series_of_the_other_publishers() -> None:
    def short(**unserved: float) -> dict[str, Comparison]:
        return {name.replace("_", "/"): Comparison(value, 0.1, 1.0, 0.0) for name, value in unserved.items()}

    by_minutes = {2: short(one_a=0.05, one_b=0.05, two_a=0.09), 8: short(one_a=0.09, one_b=0.09, two_a=0.02)}
    assert chosen_without(by_minutes) == {"one": 8, "two": 2}


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="t: 1 cells for 2 columns"):
        Table("t", ("a", "b")).add("x")


@pytest.mark.parametrize("start_up", [2, 8])
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_expects_nothing_from_what_it_cannot_know(name: str, start_up: int) -> None:
    known, tick = made_up(), 300
    other = known.measured.copy()
    other[tick:] = other[tick:][::-1] * 3
    twin = Replay("x", "made-up", 60, known.start, known.past, other, other, known.pod)
    same = np.array_equal(
        PEERS[name](known, start_up)[: tick + 1], PEERS[name](twin, start_up)[: tick + 1], equal_nan=True
    )
    assert same == (name not in FORESIGHT)


@pytest.mark.parametrize("name", [name for name in PEERS if name != "HPA alone"])
def test_a_peer_expects_demand_of_the_right_size(name: str) -> None:
    replay = made_up()
    expected = PEERS[name](replay, 2)
    assert len(expected) == len(replay.demand)
    assert 0.5 * replay.demand.mean() < np.nanmean(expected) < 1.2 * replay.known.max()


@pytest.fixture(scope="module")
def recorded() -> list[Series]:
    return load(300)


def test_every_recorded_series_of_the_repository_is_read(recorded: list[Series]) -> None:
    assert len(recorded) == 121
    assert all(np.nanmax(series.values) > 0 for series in recorded)


def test_a_sample_has_every_family_before_one_twice(recorded: list[Series]) -> None:
    families = {series.family for series in recorded}
    assert {series.family for series in sample(recorded, len(families))} == families


def test_a_replay_begins_after_its_past_and_needs_at_most_the_pods_of_its_peak(recorded: list[Series]) -> None:
    replay = replay_of(next(scalable(recorded)))
    assert replay is not None
    assert len(replay.demand) == 3 * MINUTES_OF_DAY
    assert replay.needed.max() >= 20


def test_made_up_load_is_the_same_each_time_and_three_days_of_each_kind_are_replayed() -> None:
    first, again = list(made_up_load.replays(1)), list(made_up_load.replays(1))
    assert [replay.family for replay in first] == [
        *("on and off", "levels", "jobs", "daily jobs", "bursts", "mostly zero", "level shift", "flash crowds")
    ]
    for replay, same in zip(first, again, strict=True):
        assert np.array_equal(replay.known, same.known)
        assert len(replay.demand) == 3 * MINUTES_OF_DAY
        assert replay.needed.max() >= 20


def test_the_policy_on_the_page_of_the_bench_is_one() -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    block = re.search(r"(?m)^    \"\"\"The same time yesterday.*?(?=^\S)", page, re.DOTALL)
    assert block
    names: dict[str, Any] = {}
    exec(re.sub("(?m)^    ", "", block[0]), names)  # noqa: S102  our own page
    replay = made_up()
    np.testing.assert_array_equal(names["expected"](replay, 2)[:100], replay.past[2 - MINUTES_OF_DAY :][:100])


def test_the_command_refuses_a_part_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert f"there is no part speed; choose from {', '.join(PARTS)}" in capsys.readouterr().err


def test_a_plugin_holds_the_last_value_of_a_series_that_went_silent_and_never_says_nothing() -> None:
    wave = np.tile(np.arange(1.0, 25.0), 7)
    silent, never = np.append(wave, np.full(30, np.nan)), np.full(40, np.nan)
    forecasts = forecaster().forecast([wave, silent, never], 3600, 2, (0.5, 0.9), [0, 0, 0])
    assert forecasts[1:].tolist() == [[[24.0, 24.0]] * 2, [[0.0, 0.0]] * 2]
    assert (forecasts[0] > 0).all()
