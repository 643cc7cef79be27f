from __future__ import annotations

from datetime import timedelta

from forecaster.vertical.choice.oom import HELD, RAISE, Kill, oom_floor
from tests.support.recommendations import GIB, NOON

DAY = timedelta(days=1)


def test_a_kill_raises_what_was_too_low() -> None:
    assert oom_floor([Kill(NOON - DAY, GIB)], NOON) == RAISE * GIB


def test_kills_at_one_limit_do_not_compound() -> None:
    once = oom_floor([Kill(NOON - DAY, GIB)], NOON)
    assert oom_floor([Kill(NOON - hours * timedelta(hours=1), GIB) for hours in range(1, 20)], NOON) == once


def test_a_kill_at_the_raised_limit_is_new_evidence() -> None:
    assert oom_floor([Kill(NOON - DAY, GIB), Kill(NOON, RAISE * GIB)], NOON) == RAISE**2 * GIB


def test_a_kill_is_forgotten() -> None:
    assert oom_floor([Kill(NOON - HELD, GIB)], NOON) == 0.0


def test_without_kills_there_is_no_floor() -> None:
    assert oom_floor([], NOON) == 0.0
