from __future__ import annotations

from forecaster.vertical.sizing.memory import OOM_RAISE, oom_floor
from tests.support.recommendations import GIB


def test_a_kill_raises_what_was_too_low() -> None:
    assert oom_floor(GIB) == OOM_RAISE * GIB


def test_a_kill_at_the_raised_limit_is_new_evidence() -> None:
    assert oom_floor(oom_floor(GIB)) == OOM_RAISE**2 * GIB


def test_without_kills_there_is_no_floor() -> None:
    assert oom_floor(None) == 0.0
