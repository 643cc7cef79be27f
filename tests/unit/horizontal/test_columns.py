"""Tables whose columns are declared once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from forecaster.horizontal.columns import SIGNAL, Table, column


@dataclass(frozen=True, eq=False)
class Loads(Table):
    """A table for these tests."""

    count: np.ndarray = column("q", 0)
    top: np.ndarray = column("q", -1, of_signal=True)
    load: np.ndarray = column("d", np.nan, SIGNAL, published=True)


def loads(*counts: int, signals: tuple[str, ...] = ("cpu",)) -> Loads:
    rows = len(counts)
    count, top = np.array(counts), np.zeros(rows, np.int64)
    return Loads(signals, count, top, np.full((len(signals), rows), 0.5))


def test_a_new_row_has_what_its_columns_declare() -> None:
    new = Loads.new(2, ["cpu", "memory"])
    assert (new.count.tolist(), new.top.tolist(), new.load.shape) == ([0, 0], [-1, -1], (2, 2))
    assert np.isnan(new.load).all()


def test_only_published_columns_are_planes_of_the_published_table() -> None:
    assert list(loads(3).planes(published=True)) == ["load"]
    assert loads(3).planes()["count"].tolist() == [[3]]


def test_positions_of_signals_move_with_the_signals() -> None:
    moved = loads(3).with_signals(("memory", "cpu"))
    assert moved.top.tolist() == [1]
    assert moved.load[1].tolist() == [0.5]
    assert np.isnan(moved.load[0]).all()


def test_parts_with_other_signals_lie_side_by_side_and_the_rest_is_new() -> None:
    parts = [(np.array([2, 0]), loads(7, 8)), (np.array([1]), loads(9, signals=("memory",)))]
    table = Loads.side_by_side(4, parts)
    assert table.signals == ("cpu", "memory")
    assert table.count.tolist() == [8, 9, 7, 0]
    assert table.top.tolist() == [0, 1, 0, -1]
    np.testing.assert_array_equal(table.load, [[0.5, np.nan, 0.5, np.nan], [np.nan, 0.5, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("count", np.zeros(2, np.int64), ValueError),
        ("load", np.zeros((2, 1)), ValueError),
        ("top", np.zeros(1), TypeError),
        ("top", None, KeyError),
    ],
)
def test_saved_columns_that_do_not_fit_together_are_refused(
    name: str, values: np.ndarray | None, error: type[Exception]
) -> None:
    arrays = loads(3).arrays()
    assert Loads.of_arrays(arrays).count.tolist() == [3]
    if values is None:
        del arrays[name]
    else:
        arrays[name] = values
    with pytest.raises(error):
        Loads.of_arrays(arrays)
