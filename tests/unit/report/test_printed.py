"""Tables fit the terminal without cutting a number or breaking a word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from forecaster.report.printed import (
    PrintedColumn,
    change,
    fitting,
    json_text,
    mebi,
    milli,
    print_names,
    print_table,
    print_text,
    table_rows,
)

if TYPE_CHECKING:
    import pytest

NUMBERS = PrintedColumn("CPU", ["10655m", "9m"], right=True)
REASON = PrintedColumn("WHY", ["a sentence that is long enough to go on in the next line", "short"], rank=1, words=True)
SPARE = PrintedColumn("SPARE", ["1234567890", "1"], rank=2, right=True)
cells = st.text("abc 0123456789m", min_size=1, max_size=30)


def test_the_least_important_columns_go_first() -> None:
    columns = [NUMBERS, REASON, SPARE]
    assert fitting(columns, 80) == columns
    assert fitting(columns, 40) == [NUMBERS, REASON]
    assert fitting(columns, 20) == [NUMBERS]


def test_a_column_of_numbers_stays_whole_where_even_it_has_no_room() -> None:
    assert table_rows(fitting([NUMBERS, SPARE], 3), 3) == [["   CPU"], ["10655m"], ["    9m"]]


def test_a_pipe_has_no_width() -> None:
    head, first, _ = table_rows([NUMBERS, REASON, SPARE], None)
    assert (len(head), len(first)) == (1, 1)


@given(
    rows=st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=5),
    width=st.integers(30, 120),
)
def test_every_word_of_what_is_kept_is_on_some_line_in_one_piece(rows: list[tuple[str, str, str]], width: int) -> None:
    first, second, third = zip(*rows, strict=True)
    columns = fitting(
        [
            PrintedColumn("A", first),
            PrintedColumn("B", second, 2, right=True),
            PrintedColumn("C", third, 1, words=True),
        ],
        width,
    )
    for i, lines in enumerate(table_rows(columns, width)[1:]):
        printed = " ".join(lines).split()
        assert all(word in printed for column in columns for word in column.cells[i].split())
        assert len(columns) == 1 or all(len(line) <= width for line in lines)


def test_nothing_is_a_command_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "web\x1b[2J\x9b1A\r\nroot"
    print_table([PrintedColumn("NAME", [hostile])])
    print_text(f"! {hostile}")
    print_names([hostile])
    printed = capsys.readouterr().out
    assert printed == "NAME\nweb?[2J?1A??root\n! web?[2J?1A?\nroot\nweb?[2J?1A??root\n"


def test_a_name_of_a_metric_does_not_turn_the_line_around_in_which_it_stands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([PrintedColumn("signal", ["s0-\u202eupc\u2028"]), PrintedColumn("replicas", ["3 → 5"])])
    assert capsys.readouterr().out.splitlines()[1] == "s0-?upc?  3 → 5"


def test_machines_get_numbers_without_the_digits_that_sums_of_floats_add() -> None:
    document = {"sum": 0.1 + 0.2, "bytes": 89925877760, "lists": [(-0.0, 1842.3624999999997, None)]}
    assert json.loads(json_text(document)) == {"sum": 0.3, "bytes": 89925877760, "lists": [[0.0, 1842.3625, None]]}
    assert "-0" not in json_text(document)


def test_one_unit_for_one_column() -> None:
    assert [milli(value) for value in (0.25, 12.5, None)] == ["250m", "12500m", "–"]
    assert [mebi(value) for value in (2**20, 3 * 2**30)] == ["1Mi", "3072Mi"]
    assert (change("1m", "2m"), change("1m", "1m"), change("1m", None)) == ("1m → 2m", "1m", "1m")
