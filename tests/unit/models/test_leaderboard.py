"""The leaderboard: models at the same past origins, with time and cost."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest

from models import LastValue, Panel, QuestionError, SeasonalNaive
from models.fitted import FittedRule
from models.leaderboard import Leaderboard, compare
from tests.support.panels import daily_waves


@dataclass(frozen=True)
class Tenfold:
    """Ten times last value: a bad model."""

    name: str = "tenfold"

    def fit(self, panel: Panel) -> FittedRule[None]:
        return FittedRule(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: tuple[float, ...]) -> np.ndarray:
        return np.repeat(10 * history.values[:, -1:, None], steps, axis=2).repeat(len(levels), axis=1)


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    ticks = count()
    return compare(
        daily_waves(3, days=10), ["last-value", Tenfold()], steps=6, count=4, clock=lambda: float(next(ticks))
    )


def test_the_reference_takes_part_and_is_one(board: Leaderboard) -> None:
    row = board.table().loc["seasonal-naive-day"]
    assert row[["sQL_rel", "cost_rel"]].tolist() == pytest.approx([1, 1])


def test_a_bad_model_is_last_and_costs_most(board: Leaderboard) -> None:
    table = board.table()
    assert table.index[-1] == "tenfold"
    assert table["cost_rel"].idxmax() == "tenfold"


def test_time_is_that_of_fit_and_forecast_for_one_series_at_one_origin(board: Leaderboard) -> None:
    a_tick_for_three_series = 1000 / 3
    assert board.table()["ms"].tolist() == pytest.approx([a_tick_for_three_series] * 3)


def test_each_series_has_its_loss_under_each_model(board: Leaderboard) -> None:
    assert board.per_series().shape == (3, 3)
    assert board.per_series().idxmax(axis=1).tolist() == ["tenfold"] * 3


def test_the_picture_has_a_bar_per_model(board: Leaderboard) -> None:
    losses, shares = board.plot().axes
    assert len(losses.patches) == 3
    assert len(shares.get_legend().get_texts()) == 3


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(QuestionError, match="two models are called 'last-value'"):
        compare(daily_waves(1), [LastValue(), "last-value"])


def test_a_specification_counts_as_the_reference() -> None:
    board = compare(daily_waves(1), [SeasonalNaive()], steps=3, count=2)
    assert board.table().index.tolist() == ["seasonal-naive-day"]


def test_each_level_has_a_column_of_its_own() -> None:
    board = compare(daily_waves(2, days=10), ["last-value"], steps=6, count=3, levels=(0.5, 0.995, 0.999))
    assert {"cov50", "cov99.5", "cov99.9"} <= set(board.table().columns)
    _, shares = board.plot().axes
    assert [text.get_text() for text in shares.get_legend().get_texts()] == ["p50", "p99.5", "p99.9"]
