"""A living table on a terminal, lines elsewhere."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from forecaster.app.demo import PlayedMinute, play, setups_of
from forecaster.report.demo import frame, watch
from tests.support.builders import minutes
from tests.support.recommendations import NOON
from tests.support.stage import stage

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
CLEARED = "\x1b[2K\x1b[?25h"
"""The picture is taken away: lines are erased up to the cursor's return."""
LENGTH = minutes(120)


def moments() -> Iterator[PlayedMinute]:
    scene = stage([2.0] * 125, [4])
    return play(scene, setups_of(scene)[0], LENGTH)


def console(*, terminal: bool, width: int = 100) -> Console:
    return Console(file=StringIO(), force_terminal=terminal, width=width, _environ={"TERM": "xterm"})


def written(to: Console) -> str:
    assert isinstance(to.file, StringIO)
    return to.file.getvalue()


def test_without_a_terminal_there_is_a_line_an_hour_and_no_control_code() -> None:
    out = console(terminal=False)
    last = watch(moments(), NOON, LENGTH, out)
    assert last.now == NOON + LENGTH
    assert written(out).count("of 2 h") == 2
    assert "\x1b" not in written(out)


def test_a_dumb_terminal_gets_lines() -> None:
    out = Console(file=StringIO(), force_terminal=True, width=100, _environ={"TERM": "dumb"})
    watch(moments(), NOON, LENGTH, out)
    assert HIDE not in written(out)


def test_on_a_terminal_the_cursor_is_back_at_the_end() -> None:
    out = console(terminal=True)
    watch(moments(), NOON, LENGTH, out)
    assert CLEARED in written(out)
    assert written(out).rfind(SHOW) > written(out).rfind(HIDE) >= 0


def test_on_a_terminal_the_last_picture_stays_and_the_cursor_is_back_when_the_play_is_stopped() -> None:
    def stopped() -> Iterator[PlayedMinute]:
        yield next(moments())
        raise KeyboardInterrupt

    out = console(terminal=True)
    with pytest.raises(KeyboardInterrupt):
        watch(stopped(), NOON, LENGTH, out)
    assert written(out).rfind(SHOW) > written(out).rfind(HIDE) >= 0
    assert CLEARED not in written(out)


@pytest.mark.parametrize("width", [80, 160])
def test_a_picture_has_one_line_for_each_workload_at_any_width(width: int) -> None:
    out = console(terminal=False, width=width)
    out.print(frame(next(moments()), NOON, LENGTH, out))
    lines = written(out).splitlines()
    assert sum("shop/" in line for line in lines) == 2
    assert len(lines) == 8
    assert ("CPU LIMIT" in written(out)) == (width > 100)
