"""Ctrl-C once is enough; twice does not disturb the cleaning up."""

from __future__ import annotations

import signal

import pytest

from forecaster.report.demo import Interrupt, interruptible


def interrupted(cleaned: list[str]) -> None:
    with interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
            cleaned.append("too late")
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned.append("all of it")


def test_the_first_one_stops_at_once_and_the_second_one_does_not_disturb_the_cleaning_up() -> None:
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(cleaned)
    assert cleaned == ["all of it"]


def test_afterwards_the_signal_is_handled_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_a_wish_that_was_swallowed_is_granted_before_the_next_step() -> None:
    interrupt = Interrupt()
    steps = interrupt.between(range(5))
    assert next(steps) == 0
    interrupt.asked = True
    with pytest.raises(KeyboardInterrupt):
        next(steps)
