"""What `forecaster replay` prints and writes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError
from forecaster.report.printed import output_console
from forecaster.report.replay_page import page
from forecaster.report.replay_table import LIMITS, sentences, table_of
from forecaster.report.replay_view import comparison_view

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.replay.assumptions import Assumptions
    from forecaster.replay.comparison import Comparison

STANDARD_OUTPUT = "-"


def write_outcome(one: Comparison, assumed: Assumptions, origin: str, json: Path | None, html: Path | None) -> None:
    """The table, unless JSON goes where it would; and the files that were asked for."""
    printed = json is not None and str(json) == STANDARD_OUTPUT
    if json is not None:
        _write(json, msgspec.json.format(msgspec.json.encode(comparison_view(one, assumed, origin)), indent=1).decode())
    if html is not None:
        _write(html, page(one, assumed, origin))
    if not printed:
        _print(one)


def _print(one: Comparison) -> None:
    console = output_console()
    for sentence in sentences(one):
        console.print(sentence, highlight=False)
    if one.workloads:
        console.print(table_of(one))
    for id_, reason in one.left_out.items():
        console.print(f"Left out: {id_}, {reason if reason.endswith('?') else reason + '.'}", highlight=False)
    if not one.workloads:
        return
    took = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in one.seconds.items())
    console.print(f"It took: {took}.", style="dim", highlight=False)
    console.print(f"Beware: {LIMITS[0]} (--html and --json say more.)", style="dim", highlight=False)


def _write(path: Path, text: str) -> None:
    if str(path) == STANDARD_OUTPUT:
        sys.stdout.write(text + "\n")
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        remedy = "name a file in a directory that may be written"
        raise StoreError(f"{path}: cannot be written ({error.strerror}); {remedy}") from error
