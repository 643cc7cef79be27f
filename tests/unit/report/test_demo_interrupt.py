"""Ctrl-C once is enough; twice does not disturb the cleaning up."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from forecaster.report.demo import interruptible

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def test_a_step_of_the_play_ends_before_the_demo_stops() -> None:
    """Amid a step the exception of a handler may leave a lock locked, and the next step waited for it without end."""
    ended: list[int] = []

    def steps() -> Iterator[int]:
        for number in range(5):
            if number == 2:
                signal.raise_signal(signal.SIGINT)
            ended.append(number)
            yield number

    with interruptible() as interrupt, pytest.raises(KeyboardInterrupt):
        list(interrupt.between(steps()))
    assert ended == [0, 1, 2]


def test_a_stop_amid_the_last_step_is_no_whole_play() -> None:
    def steps() -> Iterator[int]:
        yield 0
        signal.raise_signal(signal.SIGINT)

    with interruptible() as interrupt, pytest.raises(KeyboardInterrupt):
        list(interrupt.between(steps()))


def test_after_the_play_a_stop_comes_at_once() -> None:
    with interruptible() as interrupt:
        assert list(interrupt.between(range(3))) == [0, 1, 2]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
