"""Plots: what is drawn where, in shares of the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from forecaster.report.plot import ZERO, Area, Axis, Line, Mark, Plot, linear, logarithmic, round_numbers, scale_of
from forecaster.report.replay_plots import _places, time_ticks, trajectory
from tests.support.builders import NOON
from tests.support.replays import small_comparison


def test_axes_have_round_numbers() -> None:
    assert round_numbers(0.0, 9.3) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert round_numbers(3.0, 3.0) == [3.0]


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("bytes", 3.0 * 2**30, (2.0**30, "Gi")),
        ("bytes", 900.0 * 2**20, (2.0**20, "Mi")),
        ("bytes", 0.0, (1.0, "bytes")),
        ("cores", 0.4, (0.001, "millicores")),
        ("cores", 4.0, (1.0, "cores")),
        ("requests/s", 0.5, (1.0, "requests/s")),
    ],
)
def test_an_axis_has_one_scale(unit: str, largest: float, expected: tuple[float, str]) -> None:
    assert scale_of(unit, largest) == expected


def test_a_gap_is_shaded_and_never_drawn_as_no_demand() -> None:
    workload = small_comparison().workloads[0]
    demand = workload.demand.copy()
    demand[10:20] = np.nan
    drawn = trajectory(replace(workload, demand=demand), NOON, {"hpa": "the HPA alone"})
    assert drawn.count('class="gap"') == 1
    assert drawn.count('class="line demand"') == 2
    assert "null" in drawn
    assert 'class="gap"' not in trajectory(workload, NOON, {"hpa": "the HPA alone"})


def test_a_logarithmic_axis_has_whole_decades_and_a_place_for_zero() -> None:
    axis = logarithmic([0.0, 0.004, 2.0])
    assert [tick.label for tick in axis.ticks(" %")] == ["0 %", "0.001 %", "0.01 %", "0.1 %", "1 %", "10 %"]
    assert axis.place(0.0) == ZERO < axis.place(0.001) < axis.place(0.1) < axis.place(10.0) == 1.0
    assert axis.place(0.1) - axis.place(0.01) == pytest.approx(axis.place(1.0) - axis.place(0.1))


def test_nothing_short_anywhere_has_an_axis_all_the_same() -> None:
    assert logarithmic([0.0]).place(0.0) == ZERO


def test_equal_values_are_within_their_axis() -> None:
    assert 0.0 < linear([5.0, 5.0]).place(5.0) < 1.0


def test_a_step_is_drawn_where_the_value_changes() -> None:
    line = Line([(0, 0.5), (0.5, 0.5), (1, 1)], "ours", stepped=True)
    assert 'd="M0,500H1000V0H1000"' in Plot("t", (), (), "u", [line]).html()


def test_what_is_short_is_shaded_and_nothing_else() -> None:
    area = Area([(0, 0.2), (0.5, 0.8), (1, 0.2)], [(0, 0.4), (0.5, 0.4), (1, 0.4)], "shortage")
    html = Plot("t", (), (), "u", [], [area]).html()
    assert 'class="shortage" d="M500,600V200H1000V600Z"' in html


def test_a_dot_says_what_it_is() -> None:
    html = Plot(
        "t", (), (), "u", [Line([(0, 0)], "hpa", marks=[Mark(0.5, 0.5, "4 < 5", own=True)])], note="here"
    ).html()
    assert 'data-says="4 &lt; 5"' in html
    assert ">here</span>" in html


def test_days_stand_at_midnight_and_hours_between() -> None:
    labels = [tick.label for tick in time_ticks(NOON, timedelta(days=1))]
    assert "Mon 02 Mar" in labels
    assert "18:00" in labels
    week = [tick.label for tick in time_ticks(NOON, timedelta(days=7))]
    assert (week[0], week[-1]) == ("Mon 02 Mar", "Sun 08 Mar")


def test_a_week_is_drawn_by_the_minutes_of_the_largest_demand() -> None:
    demand = np.zeros(7 * 1440)
    demand[5003] = 9.0
    drawn = _places(demand)
    assert len(drawn) <= 480
    assert 5003 in drawn


def test_a_linear_axis_is_what_it_says() -> None:
    assert Axis(2.0, 4.0).place(3.0) == 0.5
