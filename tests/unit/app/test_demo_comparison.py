"""Floor against plain HPA, and against the plain HPA that spends as much."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.app.demo import play, setups_of
from forecaster.app.demo_comparison import FloorComparison, compare, curves, hpa_alone, in_all
from forecaster.replay.account import Account
from tests.support.builders import minutes
from tests.support.stage import WEB, stage

DAY = timedelta(days=1)


def account(pod_hours: float, missing: float) -> Account:
    return Account(pod_hours, DAY, timedelta(hours=missing), 100.0, missing)


def compared(floored: float, equal: float | None) -> FloorComparison:
    return FloorComparison(account(10, 5.0), account(12, floored), None if equal is None else account(12, equal))


def test_worse_is_what_the_one_definition_says() -> None:
    assert [compared(2.2, 2.0).worse, compared(2.1, 2.0).worse, compared(1.0, None).worse] == [True, False, False]


def test_the_sum_has_a_figure_at_equal_pod_hours_only_if_every_workload_has_one() -> None:
    assert in_all([compared(2.0, 1.0), compared(2.0, 3.0)]).equal == account(12, 1.0) + account(12, 3.0)
    assert in_all([compared(2.0, 1.0), compared(2.0, None)]).equal is None


def test_a_floor_that_comes_in_time_beats_lower_targets_at_the_same_cost() -> None:
    """Nothing is short with a floor from three minutes before the jump on; lower targets pay all the time."""
    length = minutes(60)
    cores = [2.0] * 40 + [6.0] * 30
    scene = stage(cores, [4] * 35 + [12])
    setups, _ = setups_of(scene)
    *_, last = play(scene, setups, length)
    one = compare(last, curves(scene, setups, length))[WEB]
    assert one.floored.missing == 0.0
    assert one.equal is not None
    assert one.equal.pod_hours == pytest.approx(one.floored.pod_hours)
    assert one.plain.missing > one.equal.missing > 0.0
    assert not one.worse


def test_the_hpa_alone_costs_what_the_plain_cluster_of_the_play_costs() -> None:
    scene = stage([2.0] * 5 + [6.0] * 15, [9])
    setups, _ = setups_of(scene)
    *_, last = play(scene, setups, minutes(15))
    alone, plain = hpa_alone(scene, setups, minutes(15))[WEB], last.plain[WEB].account
    assert (alone.short, alone.measured, alone.changes) == (plain.short, plain.measured, plain.changes)
    assert alone.pod_hours == pytest.approx(plain.pod_hours)
    assert alone.missing == pytest.approx(plain.missing)


def test_a_floor_that_nobody_needs_costs_and_is_never_praised() -> None:
    length = minutes(30)
    scene = stage([2.0] * 40, [5])
    setups, _ = setups_of(scene)
    *_, last = play(scene, setups, length)
    one = compare(last, curves(scene, setups, length))[WEB]
    assert one.floored.pod_hours > one.plain.pod_hours
    assert one.plain.missing == one.floored.missing == 0.0
