"""Plots of replays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.app import traces
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare
from forecaster.replay.strategies import HPA, PERFECT
from forecaster.report import plots

if TYPE_CHECKING:
    from forecaster.replay.comparison import Comparison

NOON = datetime(2021, 10, 19, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def outcome() -> Comparison:
    load = traces.recorded()
    transcoders = load.take([i for i, workload in enumerate(load.workloads) if workload.id.name == "transcoder"])
    assumed = Assumptions(shares=(1.2, 1.0, 0.8))
    return compare(transcoders, None, (HPA, PERFECT), begin=NOON, until=NOON + timedelta(hours=1), assumed=assumed)


def test_a_frontier_has_a_line_a_strategy_and_marks_the_targets_of_the_owner(outcome: Comparison) -> None:
    (axes,) = plots.frontier(outcome).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["the HPA alone", "perfect foresight"]
    assert [len(line.get_xdata()) for line in axes.lines] == [3, 1, 3, 1]


def test_what_nothing_can_beat_looks_like_no_strategy_at_any_place(outcome: Comparison) -> None:
    (axes,) = plots.frontier(replace(outcome, strategies=(HPA, HPA, HPA, PERFECT))).axes
    assert axes.lines[-1].get_color() != axes.lines[0].get_color()


def test_a_trajectory_has_demand_and_pods_of_both(outcome: Comparison) -> None:
    figure = plots.trajectory(outcome, "media/transcoder", traces.recorded(), strategy="perfect")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].startswith("media/transcoder, the HPA alone: ")
    assert titles[1].endswith("0.00% of demand short")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [60, 60]
    above, below = figure.axes
    assert above.get_shared_x_axes().joined(above, below)


def test_spans_are_named_in_every_row(outcome: Comparison) -> None:
    figure = plots.trajectory(outcome, "media/transcoder", traces.recorded(), strategy="perfect")
    named = plots.with_spans(figure, {"sale": (NOON, NOON + timedelta(minutes=2))})
    assert ["sale" in [text.get_text() for text in axes.texts] for axes in named.axes] == [True, True]
