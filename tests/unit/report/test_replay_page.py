"""The page needs nothing but itself, and says nothing that could run."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import msgspec

from forecaster.horizontal.standing import Gate, Standing
from forecaster.replay import Assumptions, Prices
from forecaster.replay.gated import GateSince
from forecaster.report.replay_page import page
from forecaster.report.replay_table import LIMITS, rows_of, sentences, worst_hours
from forecaster.report.replay_view import comparison_view
from forecaster.report.svg import Line, Picture, round_numbers
from tests.support.builders import NOON, minutes
from tests.support.replays import small_comparison

VOID = {"meta"}
PRICE_OF_A_POD = 2.0
"""It requests one core."""


class Tags(HTMLParser):
    """Every tag that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing() -> None:
    text = page(small_comparison(), Assumptions(), "two <made up> series")
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert "svg" in tags.seen
    assert not tags.seen & {"script", "link", "img", "iframe"}
    assert "http" not in text
    assert "two &lt;made up&gt; series" in text


def test_the_page_states_its_limits_and_what_was_left_out() -> None:
    text = page(small_comparison(), Assumptions(), "")
    assert all(limit[:40] in text for limit in LIMITS)
    assert "no HPA scales it" in text


def test_the_page_names_the_worst_hours_and_the_money() -> None:
    text = page(small_comparison(), Assumptions(prices=Prices(core_hour=2.0)), "")
    (hour,) = worst_hours(small_comparison())
    assert hour.at == NOON
    assert hour.missing["hpa"] > hour.missing["perfect"] == 0.0
    assert f"<td>2026-03-01 12:00</td><td>{hour.workload}</td><td>{hour.missing['hpa']:.2f}</td><td>0.00</td>" in text
    spent = small_comparison().own("hpa").pod_hours * PRICE_OF_A_POD
    assert f"<td>all</td><td>{spent:.2f}</td>" in text
    assert "<h2>Money</h2>" not in page(small_comparison(), Assumptions(), "")


def test_the_gate_tells_how_often_the_forecast_acts_and_why() -> None:
    one = small_comparison()
    id_ = one.workloads[0].workload.id
    stood = (GateSince(0, Gate()), GateSince(45, Gate(Standing.ACTING, why="promoted: it was better")))
    gated = replace(one, gates={id_: stood})
    assert "the gate lets the forecast act on 1 of 1 workload(s), 25% of the time" in " ".join(sentences(gated))
    assert f"{id_}: acts 25% of the time; in the end acting, promoted: it was better" in page(gated, Assumptions(), "")
    seen = comparison_view(gated, Assumptions(), "").gates
    assert [(view.standing, view.at) for view in seen] == [("observe", NOON), ("acting", NOON + minutes(45))]


def test_machines_get_every_point_and_track_and_money_where_prices_are_given() -> None:
    view = msgspec.to_builtins(
        comparison_view(small_comparison(), Assumptions(prices=Prices(core_hour=2.0)), "made up")
    )
    workload = view["workloads"][0]
    curve = workload["strategies"]["hpa"]
    assert curve["own"]["money"] == 2.0 * curve["own"]["pod_hours"]
    assert len(curve["frontier"]) == len(Assumptions().shares)
    assert len(curve["track"]["asked"]) == 60
    assert view["left_out"][0]["reason"].startswith("no HPA")
    assert view["limits"]


def test_there_is_a_row_for_everybody_and_one_for_the_bound() -> None:
    rows = rows_of(small_comparison())
    assert [row[0] for row in rows] == ["the HPA alone", "perfect foresight", "needed at least"]
    assert len({len(row) for row in rows}) == 1


def test_sentences_name_both_sides() -> None:
    said = " ".join(sentences(small_comparison()))
    assert "With the HPA alone" in said
    assert "perfect foresight:" in said


def test_axes_have_round_numbers() -> None:
    assert round_numbers(0.0, 9.3) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert round_numbers(3.0, 3.0) == [3.0]


def test_nothing_to_draw_is_said() -> None:
    assert "Nothing" in Picture([Line([], "c0")], "x", "y").svg()


def test_a_step_is_drawn_where_the_value_changes() -> None:
    flat = Picture([Line([(0, 1), (1, 1), (2, 3)], "c0", stepped=True)], "x", "y").svg()
    assert flat.count("V") == 2  # the axis and one step
