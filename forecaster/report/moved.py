"""What `forecaster store move` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec

from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table, print_text
from forecaster.store.move import MovedTable  # noqa: TC001  msgspec resolves the annotations when it encodes

if TYPE_CHECKING:
    from forecaster.report.formats import Output


class MovedView(msgspec.Struct, frozen=True):
    """Content of both databases after a move."""

    source: str
    target: str
    tables: list[MovedTable]


def print_moved(moved: MovedView, output: Output) -> None:
    """Print it; a row is a table."""
    shown = Printable(
        table=lambda wide: _print(moved, wide=wide),
        document=lambda: moved,
        rows=lambda: [asdict(one) for one in moved.tables],
        ids=lambda: [one.table for one in moved.tables],
    )
    print_as(output, shown)


def _print(moved: MovedView, *, wide: bool) -> None:
    columns = [
        PrintedColumn("TABLE", [one.table for one in moved.tables]),
        PrintedColumn("ROWS", [str(one.rows) for one in moved.tables], right=True),
        PrintedColumn("COPIED NOW", [str(one.copied) for one in moved.tables], right=True),
        PrintedColumn("CHECKSUM", [one.checksum for one in moved.tables], rank=1),
    ]
    print_text(f"{moved.source} → {moved.target}: every row is in both.")
    print_table(columns, wide=wide)
