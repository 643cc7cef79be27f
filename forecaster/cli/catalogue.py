"""`forecaster models` and `forecaster schema`: which models there are, and of what form documents are."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster.cli.options import OutputForm
from forecaster.report.formats import Output


def models(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="All that one of them says of itself.")] = None,
    output: OutputForm = Output.TABLE,
) -> None:
    """List the forecasting models that `forecast.model` can name."""
    from forecaster.cli.replay_inputs import known_models
    from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table
    from models import CATALOGUE, create

    if name is not None:
        known_models([name])
        typer.echo((type(create(name)).__doc__ or "").strip())
        return
    summaries = {one: (type(create(one)).__doc__ or "").strip().splitlines()[0] for one in CATALOGUE}
    rows = [{"name": one, "summary": summary} for one, summary in summaries.items()]
    result = Printable(
        table=lambda wide: print_table(
            [PrintedColumn("NAME", list(summaries)), PrintedColumn("SUMMARY", list(summaries.values()), words=True)],
            wide=wide,
        ),
        document=lambda: {"models": rows},
        rows=lambda: rows,
        ids=lambda: summaries,
    )
    print_as(output, result)


def schema(
    command: Annotated[
        str | None, typer.Argument(metavar="[COMMAND]", help="Whose document; without it, a list.")
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with -o json."""
    from forecaster.errors import UnknownName
    from forecaster.report.printed import print_json
    from forecaster.report.schemas import DOCUMENTS, schema_of

    if command is None:
        typer.echo("\n".join(DOCUMENTS))
    elif command in DOCUMENTS:
        print_json(schema_of(command))
    else:
        raise UnknownName("document", command, DOCUMENTS)
