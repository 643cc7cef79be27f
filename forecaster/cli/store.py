"""`forecaster store`: the database of decisions and scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from forecaster.cli.options import ConfigFile, OutputForm, settings_of
from forecaster.report.formats import Output
from forecaster.store.move import MovedTable


class MovedView(msgspec.Struct, frozen=True):
    """Content of both databases after a move."""

    source: str
    target: str
    tables: list[MovedTable]


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def store() -> None:
    """The database of decisions and scores."""


EPILOG = """\b
Examples:
  forecaster store move --config settings.yaml --to-file address
  forecaster store move --from sqlite:////var/lib/forecaster/ledger.sqlite \\
      --to postgresql://forecaster@postgres/forecaster -o json"""

From = Annotated[
    str | None, typer.Option("--from", metavar="ADDRESS", help="Database to read; default: that of --config.")
]
To = Annotated[str | None, typer.Option("--to", metavar="ADDRESS", help="Empty database to fill.")]
ToFile = Annotated[
    Path | None,
    typer.Option("--to-file", metavar="FILE", help="File with that address, for one with a password."),
]


@app.command(epilog=EPILOG)
def move(
    config: ConfigFile = None,
    source: From = None,
    target: To = None,
    target_file: ToFile = None,
    output: OutputForm = Output.TABLE,
) -> None:
    """Copy decisions and scores into another database, and prove that all have come.

    What ended early goes on where it was when it is begun again. Nothing is taken from the old database.
    """
    from contextlib import closing

    from forecaster.app.serve import database_address
    from forecaster.report.progress import shown_progress
    from forecaster.store.database import Database
    from forecaster.store.move import move as copied
    from forecaster.store.state import StateSettings

    if (target is None) == (target_file is None):
        raise typer.BadParameter("name the database to fill, with --to or --to-file")
    old = source or database_address(settings_of(config).state)
    new = target or database_address(StateSettings(database_file=target_file))
    if old == new:
        raise typer.BadParameter("both databases are the same")
    before, after = Database(old, only_read=True), Database(new)
    with shown_progress("store move") as shown, closing(before), closing(after):
        moved = MovedView(str(before), str(after), copied(before, after, shown.began))
    print_moved(moved, output)


def print_moved(moved: MovedView, output: Output) -> None:
    """Print it; a row is a table."""
    from forecaster.report.printed import PrintedColumn, print_listing

    columns = [
        PrintedColumn("TABLE", [table.table for table in moved.tables]),
        PrintedColumn("ROWS", [str(table.rows) for table in moved.tables], right=True),
        PrintedColumn("COPIED NOW", [str(table.copied) for table in moved.tables], right=True),
        PrintedColumn("CHECKSUM", [table.checksum for table in moved.tables], rank=1),
    ]
    summary = f"{moved.source} → {moved.target}: every row is in both."
    print_listing(moved, moved.tables, columns, output, summary=summary)
