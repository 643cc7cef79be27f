"""The page of a month: what it says first, whom it shows, and that nobody is given more pods than the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.bench.frontier import Comparison
from benchmarks.bench.month import (
    DAYS,
    START_UP,
    UNSEEN_DAYS,
    Line,
    Month,
    equal_cost,
    firsts,
    line_of,
    month_replays,
    month_table,
    no_help,
    page,
    write_page,
)
from benchmarks.bench.replay import TARGETS, Counts, Replay, account, hpa_counts

if TYPE_CHECKING:
    from pathlib import Path

DAY = 1440


def replay(name: str, publisher: str = "made-up") -> Replay:
    """A month of a demand that doubles by day."""
    minutes = np.arange((DAYS + 1) * DAY)
    demand = 100 + 100 * (minutes % DAY > DAY // 2)
    return Replay(name, publisher, 60, DAY * 60, demand[:DAY], demand[DAY:], demand[DAY:], 10.0)


def month(name: str, publisher: str = "made-up", start_up: int = START_UP) -> Month:
    """Ours knows what comes a start-up later; the HPA does not."""
    load = replay(name, publisher)
    ahead = load.known[DAY - 1 + start_up : DAY - 1 + start_up + len(load.demand)]
    ahead = np.append(ahead, np.repeat(ahead[-1:], len(load.demand) - len(ahead)))
    nothing = np.full(len(load.demand), np.nan)
    return Month(load, hpa_counts(load, ahead, TARGETS, START_UP), hpa_counts(load, nothing, TARGETS, START_UP))


def line(
    name: str, unserved: float, hpa_unserved: float, saved: float = 0.1, minutes: tuple[float, float] = (3.0, 1.0)
) -> Line:
    comparison = Comparison(unserved, hpa_unserved, 1.0, saved)
    return Line(replay(name), comparison, minutes, comparison)


def test_foresight_is_reported_as_a_help() -> None:
    summary = line_of(month("a/b"))
    assert summary.ratio < 0.95
    assert summary.minutes_short[1] < summary.minutes_short[0]
    assert not no_help([summary])


@pytest.mark.parametrize(
    ("summary", "sentence"),
    [
        (line("a", 0.02, 0.01), "`a`: worse, 1.000% unserved becomes 2.000%."),
        (line("a", 0.01, 0.01), "`a`: the same, 1.000% unserved becomes 1.000%."),
        (line("a", 0.0, 0.0), "`a`: the HPA alone leaves 0.000% unserved; there is nothing to win."),
        (
            line("a", 0.005, 0.01, saved=-0.2),
            "`a`: less, 1.000% unserved becomes 0.500%; at equal shortage it takes 20% more pod-hours.",
        ),
        (
            line("a", 0.005, 0.01, minutes=(3.0, 9.0)),
            "`a`: less, 1.000% unserved becomes 0.500%, in 9 minutes a day instead of 3.",
        ),
    ],
)
def test_where_it_does_not_help_is_a_sentence(summary: Line, sentence: str) -> None:
    assert no_help([summary]) == [sentence]


def test_the_last_days_are_reported_apart_from_the_month() -> None:
    month_of_days = month("a/b")
    forecaster, hpa = (
        Counts(counts.requested.copy(), counts.ready.copy()) for counts in (month_of_days.forecaster, month_of_days.hpa)
    )
    last = (DAYS - UNSEEN_DAYS) * DAY
    forecaster.requested[:, last:], forecaster.ready[:, last:] = hpa.requested[:, last:], hpa.ready[:, last:]
    summary = line_of(Month(month_of_days.replay, forecaster, hpa))
    assert summary.ratio < 0.95
    assert summary.unseen.unserved == pytest.approx(summary.unseen.hpa_unserved)


def test_the_page_says_first_where_it_does_not_help() -> None:
    text = page([line("bad", 0.02, 0.01), line("good", 0.001, 0.01)], [("good", "pictures/good.svg")])
    assert text.index("`bad`: worse") < text.index("pictures/good.svg") < text.index("| good |")
    assert "**1 of 2 are helped.**" in text


def test_the_table_begins_with_what_is_helped_least() -> None:
    rows = month_table([line("good", 0.001, 0.01), line("bad", 0.02, 0.01)]).rows
    assert [row[0] for row in rows] == ["bad", "good"]


def test_the_first_series_of_each_publisher_is_shown() -> None:
    shown = firsts([month("a/1", "a"), month("a/2", "a"), month("b/1", "b")])
    assert [shown_month.replay.name for shown_month in shown] == ["a/1", "b/1"]


def test_ours_is_drawn_with_no_more_pod_hours_than_the_hpa() -> None:
    played = month("a/b")
    hpa, forecaster = (account(played.replay, counts).pod_hours[0] for counts in equal_cost(played))
    assert 0.9 * hpa < forecaster <= hpa


def test_the_same_counts_make_the_same_page_and_pictures(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    played = [month("a/1", "a_b")]
    pages = []
    for _ in range(2):
        write_page(played, [line_of(played_month) for played_month in played], tmp_path)
        pages.append([(tmp_path / path).read_text() for path in ("month.md", "pictures/month-a-b.svg")])
    assert pages[0] == pages[1]
    assert "ready, forecaster" in pages[0][1]


def test_a_month_is_played_on_what_is_long_enough() -> None:
    replays = month_replays()
    assert {len(series.demand) for series in replays} == {DAYS * DAY}
    assert len({series.family for series in replays}) == 4
    assert all(len(series.past) >= 2 * DAY for series in replays)
