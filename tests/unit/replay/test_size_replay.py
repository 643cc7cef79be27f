"""Requests and limits replayed over recorded usage: what is counted, and recommenders on known loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.made_up_memory import weekly_peak
from benchmarks.size_frontier import size_frontier
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.replay.size_replay import STEPS_A_DAY, HeldSizes, Load, measured_load, replay_sizes
from forecaster.replay.sizers import Ours, Vpa, backtested_sizes, ours, size_outcomes

if TYPE_CHECKING:
    from forecaster.replay.size_replay import SizeSummary

DAY = STEPS_A_DAY


class Fixed:
    """A recommender of one unit for every container, and of two once it was killed."""

    every = STEPS_A_DAY

    def __init__(self) -> None:
        self.size_now = 1.0
        self.observed: list[float] = []

    def observe(self, used: np.ndarray, at: int) -> None:
        self.observed.append(float(used[0]))

    def killed(self, rows: np.ndarray, limit: np.ndarray, at: int) -> None:
        self.size_now = 2.0

    def size(self, held: HeldSizes, at: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array([self.size_now]), np.array([self.size_now]), np.array([False])


def played(usage: list[float], warm: int = 2) -> tuple[SizeSummary, Fixed]:
    sizer = Fixed()
    account = replay_sizes(Load("memory", ("one",), np.array([usage]), warm), sizer)
    return account.summary(), sizer


def test_what_is_requested_and_not_used_is_slack() -> None:
    summary, _ = played([0, 0, 0.5, 0.5])
    assert (summary.slack, summary.over_limit, summary.changes) == (1.0, 0, 0)


def test_a_kill_counts_and_the_container_comes_back_larger() -> None:
    summary, _ = played([0, 0, 0.5, 1.5, 1.5, 1.5])
    assert (summary.over_limit, summary.changes) == (1, 1)


def test_recommenders_see_no_usage_above_the_limit() -> None:
    _, sizer = played([0, 0, 0.5, 1.5, 1.5])
    assert sizer.observed == [0, 0, 0.5, 1.0, 1.5]


def test_gaps_count_for_nothing() -> None:
    summary, _ = played([0, 0, 0.5, np.nan, 0.5])
    assert summary.slack == 1.0


def test_a_weekly_peak_is_survived_where_the_vpa_is_killed() -> None:
    load = weekly_peak()
    assert replay_sizes(load, Ours("memory", 1, VerticalPolicy())).summary().over_limit == 0
    assert replay_sizes(load, Vpa("memory", 1)).summary().over_limit > 0


def test_every_contestant_of_the_frontier_plays() -> None:
    rng = np.random.default_rng(0)
    load = Load("cpu", ("a", "b"), rng.gamma(2, 0.2, (2, 4 * DAY)), 2 * DAY)
    rows = size_outcomes([load], size_frontier("cpu"))
    assert len({(row.family, row.setting) for row in rows}) == len(rows)
    assert all(np.isfinite(row.summary.slack) for row in rows)


def test_a_dearer_hour_above_the_request_means_fewer_of_them() -> None:
    rng = np.random.default_rng(0)
    load = Load("cpu", ("a",), rng.lognormal(-1, 0.5, (1, 6 * DAY)), 3 * DAY)
    shares = [
        size_outcomes([load], [ours("ours", "", throttle_price=price, cpu_limit="none")])[0].summary.over_request_share
        for price in (3.0, 40.0)
    ]
    assert shares[0] > shares[1]


def test_a_container_that_used_nothing_has_no_share_in_the_mean_slack() -> None:
    used = np.array([np.full(4 * DAY, 1.0), np.zeros(4 * DAY)])
    load = measured_load("cpu", ["busy", "idle"], used)
    assert load is not None
    busy = measured_load("cpu", ["busy"], used[:1])
    assert busy is not None
    ours_, alone = (backtested_sizes(each, VerticalPolicy())[0].summary for each in (load, busy))
    assert ours_.slack == pytest.approx(alone.slack, abs=1e-3)


def test_containers_that_used_nothing_have_no_mean_slack() -> None:
    load = measured_load("cpu", ["idle"], np.zeros((1, 4 * DAY)))
    assert load is not None
    assert np.isnan(backtested_sizes(load, VerticalPolicy())[0].summary.slack)


def test_a_day_of_usage_is_enough() -> None:
    load = measured_load("cpu", ["web"], np.full((1, DAY), 0.5))
    assert load is not None
    summary = backtested_sizes(load, VerticalPolicy())[0].summary
    assert (summary.over_limit, summary.changes) == (0, 0)
    assert np.isfinite(summary.slack)
