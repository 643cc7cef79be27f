"""What `forecaster replay` prints and writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError
from forecaster.report.printed import Printable, print_as, print_table, print_text
from forecaster.report.replay_page import page
from forecaster.report.replay_table import REPLAY_LEGEND, columns_of, left_out_lines, limits_of, rows_of, sentences
from forecaster.report.replay_view import comparison_view

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.replay.assumptions import Assumptions
    from forecaster.replay.comparison import Comparison
    from forecaster.report.formats import Output


def check_writable(*paths: Path | None) -> None:
    """Refuse a file that could not be written, before the work.

    Raises:
        StoreError: its folder is missing, or it may not be written.
    """
    for path in filter(None, paths):
        if str(path) == "-":
            raise StoreError("-: standard output is printed with -o json; --json and --html name files")
        folder = path.parent
        if not folder.is_dir():
            raise StoreError(f"{path}: there is no folder {folder}; {OUTPUT_REMEDY}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise StoreError(f"{path}: may not be written; {OUTPUT_REMEDY}")


OUTPUT_REMEDY = "name a file in a directory that may be written"


def write_outcome(
    one: Comparison, assumed: Assumptions, origin: str, output: Output, json: Path | None, html: Path | None
) -> None:
    """Print it, and write the files that were asked for; a row of CSV is a strategy on a workload."""
    if json is not None:
        view = comparison_view(one, assumed, origin)
        write_view(json, view)
    if html is not None:
        write_file(html, page(one, assumed, origin))
    result = Printable(
        table=lambda wide: _print(one, assumed, wide=wide),
        document=lambda: comparison_view(one, assumed, origin),
        rows=lambda: [
            {**each.workload.id._asdict(), **dict(zip(CSV_COLUMNS, cells, strict=True))}
            for each in one.workloads
            for cells in rows_of(one, each)
        ],
        ids=lambda: (each.workload.id for each in one.workloads),
    )
    print_as(output, result)


CSV_COLUMNS = ("strategy", "pod_hours", "short_minutes", "short_ratio", "changes", "short_at_equal_cost", "saved_ratio")


def _print(one: Comparison, assumed: Assumptions, *, wide: bool) -> None:
    print_text(*sentences(one))
    if one.workloads:
        print_table(columns_of(one), wide=wide)
        print_text(REPLAY_LEGEND, style="dim")
    print_text(*left_out_lines(one.left_out))
    if not one.workloads:
        return
    if wide:
        took = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in one.seconds.items())
        print_text(f"It took: {took}.", style="dim")
    print_text(f"Beware: {limits_of(assumed.feedback)[0]} (--html and --json say more.)", style="dim")


def write_view(path: Path, view: msgspec.Struct) -> None:
    """Write a document as JSON. Raises `StoreError` where it cannot be written after all."""
    write_file(path, msgspec.json.format(msgspec.json.encode(view), indent=1).decode())


def write_file(path: Path, text: str) -> None:
    """Write a file that was checked before.

    Raises:
        StoreError: it cannot be written after all.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); {OUTPUT_REMEDY}") from error
