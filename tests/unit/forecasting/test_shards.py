"""Workloads stay in the shard of their neighbours, so that its model is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.signal import CPU, PeakForecast
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.forecasting import shards
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.shards import ROWS, Shard, Shards, regrouped
from models import Adaptive
from tests.support.builders import NOON, minutes
from tests.support.recommendations import ahead_of, workload_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.cleaning import Cleaning

IDS = [workload_id(f"web-{i}") for i in range(2 * ROWS + 10)]


def sizes(groups: Sequence[Shard]) -> list[int]:
    return [len(shard.ids) for shard in groups]


def test_workloads_are_cut_in_their_order() -> None:
    assert sizes(regrouped([], IDS)) == [ROWS, ROWS, 10]
    assert [id_ for shard in regrouped([], IDS) for id_ in shard.ids] == IDS


def test_the_same_workloads_in_another_order_change_nothing() -> None:
    groups = regrouped([], IDS)
    assert all(shard is other for shard, other in zip(regrouped(groups, IDS[::-1]), groups, strict=True))


def test_a_workload_that_goes_changes_one_group() -> None:
    groups = regrouped([], IDS)
    left = regrouped(groups, IDS[1:])
    assert sizes(left) == [ROWS - 1, ROWS, 10]
    assert left[1] is groups[1]


def test_a_workload_that_comes_joins_those_without_a_model() -> None:
    groups = regrouped(regrouped([], IDS), IDS[1:])
    assert sizes(regrouped(groups, [workload_id("new"), *IDS[1:]])) == [ROWS, ROWS, 10]


def test_an_empty_group_is_no_group() -> None:
    assert sizes(regrouped(regrouped([], IDS), IDS[ROWS:])) == [ROWS, 10]


@given(st.lists(st.sets(st.sampled_from(IDS)), max_size=5))
def test_everybody_has_one_place_whoever_comes_and_goes(rounds: list[set[WorkloadId]]) -> None:
    groups: list[Shard] = []
    for ids in rounds:
        groups = regrouped(groups, sorted(ids))
        placed = [id_ for shard in groups for id_ in shard.ids]
        assert sorted(placed) == sorted(ids)
        assert all(0 < size <= ROWS for size in sizes(groups))


SOON = PeakSpan(minutes(3), minutes(3))
WAVES = np.random.default_rng(5).gamma(20.0, size=(6, 4 * 288)).astype(np.float32)


class Fleet:
    """Workloads whose model learns from every sample, forecast every five minutes."""

    def __init__(self, refit_after: timedelta = timedelta(days=1)) -> None:
        self.forecaster = Forecaster("adaptive", refit_after, signals={CPU: Shards(Adaptive(replays=4))})
        self.passed = 0

    def ask(self, *there: int, learn: bool = True) -> dict[int, float]:
        """Median of the coming peak of each present workload that has a model."""
        self.passed += 1
        columns, ids = 3 * 288, tuple(IDS[number] for number in there)
        values = WAVES[list(there), self.passed : self.passed + columns]
        weeks = Window(ids, NOON + (self.passed - columns + 1) * FIVE_MINUTES, FIVE_MINUTES, values)
        history = FreshHistory(weeks, np.empty((len(ids), 0), np.float32), weeks.end)
        now = NOON + self.passed * FIVE_MINUTES
        peaks = self.forecaster.peaks_by_span(CPU, history, {SOON: ids}, now, learn=learn)[SOON]
        ahead = {number: ahead_of(peaks, IDS[number], 0.5) for number in there}
        return {number: peak.median for number, peak in ahead.items() if isinstance(peak, PeakForecast)}

    @property
    def sizes(self) -> list[int]:
        return sizes(self.forecaster.signals[CPU].shards)


class TestWhatWasLearned:
    """Three or four workloads, in shards of four at most."""

    @pytest.fixture(autouse=True)
    def of_four(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shards, "ROWS", 4)

    def test_of_others_is_not_touched_by_one_that_comes(self) -> None:
        fleet, undisturbed = Fleet(), Fleet()
        fleet.ask(0, 1, 2)
        undisturbed.ask(0, 1, 2)
        assert fleet.ask(0, 1, 2, 3, learn=False) == pytest.approx(undisturbed.ask(0, 1, 2, learn=False))
        assert set(fleet.ask(0, 1, 2, 3)) == {0, 1, 2, 3}
        assert fleet.sizes == [3, 1]

    def test_of_others_is_not_touched_by_one_that_goes(self) -> None:
        fleet, undisturbed = Fleet(), Fleet()
        fleet.ask(0, 1, 2, 3)
        undisturbed.ask(0, 1, 2, 3)
        for _ in range(2):
            expected = {number: median for number, median in undisturbed.ask(0, 1, 2, 3).items() if number != 1}
            assert fleet.ask(0, 2, 3, learn=False) == pytest.approx(expected)
        assert fleet.sizes == [3]

    def test_one_that_came_joins_the_others_when_they_are_fitted_anew(self) -> None:
        fleet = Fleet(refit_after=2 * FIVE_MINUTES)
        for there in ((0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3)):
            fleet.ask(*there)
        assert fleet.sizes == [4]
        assert set(fleet.ask(0, 1, 2, 3, learn=False)) == {0, 1, 2, 3}

    def test_a_workload_that_was_never_cleaned_takes_no_start_up_usage_from_the_others(self) -> None:
        parts, known = Shards(Adaptive(replays=4)), cast("Cleaning", object())
        ids, rows = tuple(IDS[:4]), np.arange(4)
        parts.shards = [
            replace(Shard.of(ids[:3]), rows=rows[:3], cleaning=known),
            replace(Shard.of(ids[3:]), rows=rows[3:]),
        ]
        weeks = Window(ids, NOON, FIVE_MINUTES, WAVES[:4])
        parts.learn(FreshHistory(weeks, np.empty((4, 0), np.float32), weeks.end), parts.shards[0], weeks.end)
        assert [(len(shard.ids), shard.cleaning) for shard in parts.shards] == [(3, known), (1, None)]
