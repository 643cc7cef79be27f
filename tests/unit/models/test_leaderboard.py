"""The leaderboard: models at the same past origins, with time and cost."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest

from models import ContractError, Forecast, LastValue, Panel, Provenance, QuestionError, SeasonalNaive
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


@dataclass(frozen=True)
class Odd:
    """A model without the usual fitted model, that answers NaN or raises."""

    name: str = "odd"
    broken: bool = False

    def fit(self, panel: Panel) -> "Odd":
        if self.broken:
            raise KeyError("cpu")
        object.__setattr__(self, "panel", panel)
        return self

    def forecast(self, steps: int, levels: tuple[float, ...]) -> Forecast:
        keys = self.panel.keys  # type: ignore[attr-defined]
        by = Provenance(keys, (self.name,) * len(keys), ("",) * len(keys))
        return Forecast(np.full((len(keys), len(levels), steps), np.nan), self.panel.end, self.panel.step, levels, by)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("model", "promise"), [(Odd(), "finite numbers"), (Odd(broken=True), "it raises KeyError")])
def test_a_model_that_breaks_the_contract_is_named_with_the_origin_and_not_scored(model: Odd, promise: str) -> None:
    with pytest.raises(
        ContractError, match=f"odd breaks the contract: {promise}.*, on the panel until 2026-01-11 00:00"
    ):
        compare(daily_waves(2), [model], steps=6, count=4)


@pytest.mark.parametrize("question", [{"count": 0}, {"steps": 0}])
def test_no_origin_and_no_step_is_no_question(question: dict[str, int]) -> None:
    with pytest.raises(QuestionError, match="one of both at least"):
        compare(daily_waves(2), ["last-value"], **question)


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
