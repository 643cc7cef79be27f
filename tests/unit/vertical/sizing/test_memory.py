"""Memory sizes of containers with two weeks of usage, in GiB at five-minute points."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.vertical.sizing.memory import OOM_RAISE, Mechanism, memory_sizes, oom_floor
from forecaster.vertical.sizing.panel import ContainerPanel, SizeColumns

POINTS = 288
DAYS = 14
GIB = 2.0**30
POLICY = VerticalPolicy(change_price=0)
PRICED = VerticalPolicy(change_price=0, oom_kills_a_year=366)
"""A policy in which only the price of a kill decides."""


def two_weeks(level: float | np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.asarray(level, float), DAYS * POINTS).copy()


def sizes(memory: np.ndarray, policy: VerticalPolicy = POLICY, **today: float) -> SizeColumns:
    """Sizes of a container with this usage in GiB; `today` has its request and limit in GiB, by default none."""
    return memory_sizes(panel_of(memory, **today), policy)


def panel_of(
    memory: np.ndarray, *, cpu: np.ndarray | None = None, growth: float = 1.0, **today: float
) -> ContainerPanel:
    stated = {name: np.array([today.get(name, np.nan)]) * GIB for name in ("memory_request", "memory_limit")}
    quiet = np.full(memory.shape, np.nan) if cpu is None else cpu
    unknown = np.array([np.nan])
    floor = np.array([today.get("oom_floor", 0.0)]) * GIB
    return ContainerPanel(
        quiet[None], memory[None] * GIB, POINTS, unknown, unknown, **stated, oom_floor=floor, growth=np.array([growth])
    )


def gib(sized: SizeColumns) -> float:
    return float(sized.request[0] / GIB)


def days_ago(day: int, value: float, base: float = 0.5) -> np.ndarray:
    """Flat usage with an hour at another level, `day` days before the same hour of the coming day."""
    usage = two_weeks(base)
    begin = (DAYS - day) * POINTS + 100
    usage[begin : begin + 12] = value
    return usage


@pytest.mark.parametrize("memory_limit", ["request", "peak", "keep-ratio"])
def test_an_unchanged_size_is_reported_as_it_is(memory_limit: str) -> None:
    """The chance belongs to today's limit, not to the limit that another request would have had."""
    policy = VerticalPolicy.model_validate({"memory_limit": memory_limit})
    sized = sizes(two_weeks(1.3), policy, memory_request=1.0, memory_limit=2.0)
    assert (sized.unchanged[0], gib(sized), sized.limit[0] / GIB) == (True, 1.0, 2.0)
    assert 1e-6 < sized.over_limit[0] < 0.01
    assert sized.slack[0] == 0


class TestSteady:
    def test_is_covered_with_room(self) -> None:
        assert 0.5 < gib(sizes(two_weeks(0.5))) < 0.7

    def test_a_dearer_kill_takes_more_room(self) -> None:
        noisy = two_weeks(np.random.default_rng(1).lognormal(-1, 0.2, DAYS * POINTS))
        requests = [gib(sizes(noisy, VerticalPolicy(oom_price=price))) for price in (10, 100, 1000)]
        assert requests == sorted(requests)

    def test_the_request_is_the_limit(self) -> None:
        sized = sizes(two_weeks(0.5))
        assert sized.request[0] == sized.limit[0]

    def test_says_what_it_risks(self) -> None:
        sized = sizes(two_weeks(0.5))
        assert 0 < sized.over_limit[0] < 0.05

    def test_wastes_what_it_requests_beyond_usage(self) -> None:
        sized = sizes(two_weeks(0.5))
        assert sized.slack[0] == pytest.approx(sized.request[0] - 0.5 * GIB)

    def test_a_longer_wait_for_the_next_change_is_riskier(self) -> None:
        noisy = two_weeks(np.random.default_rng(1).lognormal(-1, 0.2, DAYS * POINTS))
        day = sizes(noisy, VerticalPolicy(change_price=1e6), memory_request=1.0, memory_limit=1.0)
        week = sizes(
            noisy, VerticalPolicy(change_price=1e6, horizon=timedelta(days=7)), memory_request=1.0, memory_limit=1.0
        )
        assert week.over_limit[0] > day.over_limit[0]


class TestExpectedKills:
    """At most one OOM kill a year is expected, and no peak of the history would kill again."""

    NOISY = two_weeks(np.random.default_rng(1).lognormal(-1, 0.2, DAYS * POINTS))

    @pytest.mark.parametrize("usage", [two_weeks(0.5), NOISY, days_ago(13, 1.5)])
    def test_are_one_a_year_at_most(self, usage: np.ndarray) -> None:
        assert sizes(usage).over_limit[0] * 365 <= 1

    def test_are_reported_where_half_as_much_again_as_the_highest_peak_is_not_enough(self) -> None:
        sized = sizes(days_ago(7, 1.5))
        assert gib(sized) == pytest.approx(OOM_RAISE * 1.5)
        assert sized.over_limit[0] * 365 > 1

    def test_are_as_many_as_the_owner_states(self) -> None:
        few, many = (sizes(self.NOISY, VerticalPolicy(oom_price=1, oom_kills_a_year=kills)) for kills in (0.1, 20))
        assert few.over_limit[0] * 365 <= 0.1
        assert 1 < many.over_limit[0] * 365 <= 20
        assert gib(many) < gib(few)

    def test_a_request_is_never_below_a_peak_of_the_whole_history(self) -> None:
        sized = sizes(days_ago(13, 1.5), POLICY, memory_request=4.0, memory_limit=4.0)
        assert 1.1 * 1.5 <= gib(sized) < 4.0

    def test_an_owner_who_states_a_risk_pays_less(self) -> None:
        stated = VerticalPolicy(oom_price=5, oom_kills_a_year=366, change_price=0)
        assert gib(sizes(days_ago(13, 1.5), stated, memory_request=4.0, memory_limit=4.0)) < 1.0

    def test_a_size_of_today_that_expects_no_more_stays(self) -> None:
        first = gib(sizes(self.NOISY, VerticalPolicy()))
        later = sizes(1.02 * self.NOISY, VerticalPolicy(), memory_request=first, memory_limit=first)
        assert (gib(later), bool(later.unchanged[0])) == (pytest.approx(first), True)

    def test_a_size_of_today_that_expects_more_is_raised_although_a_change_costs(self) -> None:
        dear = VerticalPolicy(change_price=1e6)
        assert gib(sizes(two_weeks(0.5), dear, memory_request=0.54, memory_limit=0.54)) > 0.6


class TestWeeklyPeak:
    def test_is_remembered_after_six_quiet_days(self) -> None:
        assert gib(sizes(days_ago(7, 1.5))) >= 1.5

    def test_of_another_day_is_not_paid_for_today_for_ever(self) -> None:
        assert gib(sizes(days_ago(13, 1.5), VerticalPolicy(oom_price=5, oom_kills_a_year=366, change_price=0))) < 1.0


class TestLeak:
    LEAK = two_weeks(np.arange(DAYS * POINTS) / POINTS * 0.1 + 0.3)

    def test_is_seen_in_the_lows(self) -> None:
        assert sizes(self.LEAK).mechanism[0] == Mechanism.LEAK

    def test_goes_on_until_the_next_change(self) -> None:
        assert gib(sizes(self.LEAK)) > 0.3 + 0.1 * (DAYS + 1)

    def test_a_longer_horizon_needs_more(self) -> None:
        longer = VerticalPolicy(change_price=0, horizon=timedelta(days=4))
        assert gib(sizes(self.LEAK, longer)) > gib(sizes(self.LEAK)) + 0.25

    def test_noise_is_none(self) -> None:
        noisy = two_weeks(0.5) * np.random.default_rng(3).normal(1, 0.02, DAYS * POINTS)
        assert sizes(noisy).mechanism[0] == Mechanism.STEADY


class TestCache:
    def test_that_fills_its_limit_is_kept(self) -> None:
        sized = sizes(two_weeks(0.99), memory_request=1.0, memory_limit=1.0)
        assert (sized.mechanism[0], gib(sized), bool(sized.unchanged[0])) == (Mechanism.CACHE, 1.0, True)

    def test_is_none_where_somebody_was_killed(self) -> None:
        sized = sizes(two_weeks(0.99), memory_request=1.0, memory_limit=1.0, oom_floor=1.5)
        assert gib(sized) >= 1.5


class TestLoad:
    CPU = two_weeks(np.repeat([1.0, 2.0, 1.5, 3.0, 2.5, 1.2, 2.2] * 2, POINTS))

    def test_that_memory_follows_is_recognized(self) -> None:
        sized = memory_sizes(panel_of(0.2 + 0.1 * self.CPU, cpu=self.CPU), POLICY)
        assert sized.mechanism[0] == Mechanism.LOAD

    def test_that_grows_takes_memory_along(self) -> None:
        """Memory is a tenth of a GiB per core, so half as much again of three cores takes 0.15 GiB more."""
        given = panel_of(0.2 + 0.1 * self.CPU, cpu=self.CPU)
        calm, growing = (memory_sizes(replace(given, growth=np.array([by])), PRICED) for by in (1.0, 1.5))
        assert gib(growing) - gib(calm) == pytest.approx(0.15, abs=0.06)


class TestPolicy:
    def test_a_heap_is_never_sized_down(self) -> None:
        heap = VerticalPolicy(change_price=0, heap_bounded=True)
        assert gib(sizes(two_weeks(0.5), heap, memory_request=2.0, memory_limit=2.0)) == 2.0

    def test_a_limit_at_the_peak_leaves_the_request_at_usage(self) -> None:
        peak = VerticalPolicy(change_price=0, memory_limit="peak")
        sized = sizes(days_ago(7, 1.5), peak)
        assert gib(sized) == pytest.approx(0.5)
        assert sized.limit[0] >= 1.5 * GIB

    def test_a_change_that_gains_too_little_is_not_made(self) -> None:
        sized = sizes(two_weeks(0.5), VerticalPolicy(change_price=24), memory_request=0.65, memory_limit=0.65)
        assert (gib(sized), bool(sized.unchanged[0])) == (pytest.approx(0.65), True)

    def test_a_size_that_is_far_too_large_is_changed(self) -> None:
        assert gib(sizes(two_weeks(0.5), VerticalPolicy(), memory_request=4.0, memory_limit=4.0)) < 1.0


def test_an_oom_floor_holds() -> None:
    assert gib(sizes(two_weeks(0.5), oom_floor=3.0)) == 3.0


def test_nothing_known_is_no_number() -> None:
    assert np.isnan(sizes(two_weeks(np.nan)).request[0])


def test_a_hot_pod_is_not_averaged_away() -> None:
    """The input is the usage of the hottest pod, so its peaks are covered."""
    hot = two_weeks(0.4)
    hot[::50] = 1.2
    assert gib(sizes(hot)) > 1.2


def test_usage_beyond_its_limit_is_no_cache() -> None:
    """The limit was higher at that time, so the container does not fill today's limit."""
    sized = sizes(two_weeks(2.0), memory_request=1.0, memory_limit=1.0)
    assert sized.mechanism[0] == Mechanism.STEADY
    assert gib(sized) > 2.0


def test_a_kill_raises_what_was_too_low() -> None:
    assert oom_floor(GIB) == OOM_RAISE * GIB


def test_a_kill_at_the_raised_limit_is_new_evidence() -> None:
    assert oom_floor(oom_floor(GIB)) == OOM_RAISE**2 * GIB


def test_without_kills_there_is_no_floor() -> None:
    assert oom_floor(None) == 0.0
