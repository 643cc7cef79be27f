"""Backtests: errors per origin with error bars, calibration, and the winner that is named, or is not, and why."""

from dataclasses import dataclass

import numpy as np
import pytest

from models import Fitted, LastValue, Panel, QuestionError, SeasonalNaive
from models.evaluate import error_bar
from models.fitted import FittedRule
from models.leaderboard import Leaderboard, Winner, compare, relative_draws
from tests.support.panels import HOUR, MONDAY, daily_waves


@dataclass(frozen=True)
class Shy:
    """A model that forecasts every other series only; its fallback forecasts the rest."""

    name: str = "shy"

    def fit(self, panel: Panel) -> FittedRule[None]:
        return FittedRule(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: tuple[float, ...]) -> np.ndarray:
        values = np.repeat(history.values[:, -1:, None], steps, axis=2).repeat(len(levels), axis=1).astype(float)
        values[::2] = np.nan
        return values


@dataclass(frozen=True)
class Twin:
    """Yesterday's values under another name."""

    name: str = "twin"

    def fit(self, panel: Panel) -> Fitted:
        return SeasonalNaive().fit(panel)


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    return compare(daily_waves(3, days=10), ["last-value"], steps=6, count=8)


def test_no_winner_is_named_when_more_than_a_tenth_is_unanswered() -> None:
    board = compare(daily_waves(4, days=10), ["last-value", Shy()], steps=6, count=4)
    assert board["shy"].unanswered == pytest.approx(0.5)
    assert board.winner().name is None
    assert board.winner().reason.startswith("no winner: unanswered by shy 50%; leave such a model out")


def test_a_tenth_or_less_may_be_unanswered() -> None:
    model = LastValue()
    waves = daily_waves(10, days=10)
    waves.values[0] = np.nan
    board = compare(waves, [model], steps=6, count=4)
    assert board["last-value"].unanswered == pytest.approx(0.1)
    assert board.winner().name == "seasonal-naive-day"


def test_no_winner_is_named_when_more_than_a_tenth_of_what_came_is_unknown() -> None:
    waves = daily_waves(3, days=10)
    waves.values[:, -60:][:, ::2] = np.nan
    assert "of what came is not known" in compare(waves, ["last-value"], steps=6, count=8).winner().reason


def test_no_winner_is_named_on_load_that_does_not_change() -> None:
    still = Panel(np.full((2, 240), 5.0), MONDAY, HOUR, ("a", "b"))
    board = compare(still, ["last-value"], steps=6, count=8)
    why = "no winner: no loss is comparable; take load that changes from one day to the next"
    assert board.winner() == Winner(None, why)
    assert board.table()["sQL_rel"].isna().all()
    board.plot()
    board.plot_origins()


def test_few_origins_do_not_tell_a_winner_from_chance() -> None:
    board = compare(daily_waves(3, noise=0.01), ["last-value"], steps=6, count=1)
    assert "chance" in board.winner().reason


def test_no_winner_is_named_where_chance_explains_the_difference() -> None:
    board = compare(daily_waves(3, days=10), [Twin()], steps=6, count=4)
    assert board.winner().name is None
    assert "chance" in board.winner().reason


def test_the_better_one_wins_by_more_than_its_error_bar(board: Leaderboard) -> None:
    winner = board.winner()
    assert winner.name == "seasonal-naive-day"
    assert "next best, on 8 origins" in str(winner)


def test_error_bars_hold_the_figure_and_equal_models_have_none(board: Leaderboard) -> None:
    table = board.table()
    assert (table["low"] <= table["sQL_rel"]).all()
    assert (table["sQL_rel"] <= table["high"]).all()
    same = board["seasonal-naive-day"]
    assert error_bar(relative_draws(same, same)) == (1.0, 1.0)


def test_errors_of_origins_add_up_to_the_score(board: Leaderboard) -> None:
    entry = board["last-value"]
    frame = entry.to_frame()
    assert len(frame) == 8 * 3
    assert entry.score.loss == pytest.approx(2 * entry.summed("loss").sum(axis=0) / entry.summed("scale").sum(axis=0))
    assert frame["cov90"].groupby("series").mean().to_numpy() == pytest.approx(entry.score.coverage[:, 1])


def test_calibration_lies_within_its_bar(board: Leaderboard) -> None:
    calibration = board["last-value"].calibration()
    assert list(calibration.index) == [0.5, 0.9, 0.95]
    assert ((calibration["low"] <= calibration["share"]) & (calibration["share"] <= calibration["high"])).all()


def test_cut_offs_show_the_origins_of_the_largest_errors(board: Leaderboard) -> None:
    entry = board["last-value"]
    worst = entry.worst_origins("s0", 2)
    loss = entry.summed("loss")[:, 0]
    assert min(loss[worst]) >= max(np.delete(loss, worst))
    titles = [axes.get_title(loc="left") for axes in entry.plot("s0", count=2).axes]
    assert titles == [f"made at {entry.origins[i]:%a %d %b %H:%M} UTC" for i in worst]


def test_every_picture_has_every_model(board: Leaderboard) -> None:
    for figure in (board.plot_calibration(), board.plot_origins()):
        assert len(figure.axes[0].get_legend().get_texts()) == 2
    assert board["last-value"].plot_calibration().axes
    assert "8 origins" in board["last-value"]._repr_html_()
    assert "seasonal-naive-day" in board._repr_html_()


def test_a_hostile_series_is_text_in_the_table_of_a_notebook() -> None:
    waves = daily_waves(2, days=3)
    hostile = Panel(waves.values, waves.start, waves.step, ("shop/<img src=x onerror=alert(1)>", "shop/web"))
    shown = compare(hostile, ["last-value"], steps=6, count=1)["last-value"]._repr_html_()
    assert "<img" not in shown
    assert "shop/&lt;img" in shown


def test_a_model_that_was_not_compared_is_named_with_those_that_were(board: Leaderboard) -> None:
    with pytest.raises(QuestionError, match="these were: seasonal-naive-day, last-value"):
        board["theta"]
