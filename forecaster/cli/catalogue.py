"""`forecaster models` and `forecaster schema`: which models there are, and of what form documents are."""

from __future__ import annotations

from inspect import getdoc
from typing import Annotated

import typer

from forecaster.cli.options import OutputForm
from forecaster.report.formats import Output


def model_names(incomplete: str) -> list[str]:
    """Complete the names of models in a shell."""
    from models import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(incomplete)]


def document_names(incomplete: str) -> list[str]:
    """Complete the names of documents in a shell; for a command of two words the first word."""
    from forecaster.report.schemas import DOCUMENTS

    return [name for name in DOCUMENTS if name.startswith(incomplete)]


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="All that one of them says of itself.", autocompletion=model_names),
    ] = None,
    output: OutputForm = Output.TABLE,
) -> None:
    """List the forecasting models that `forecast.model` can name."""
    from forecaster.cli.replay_inputs import known_models
    from forecaster.report.catalogue import ModelView, print_models
    from forecaster.report.printed import print_text
    from models import CATALOGUE, create

    if name is not None:
        known_models([name])
    texts = {one: getdoc(type(create(one))) or "" for one in (CATALOGUE if name is None else [name])}
    if name is not None and output is Output.TABLE:
        print_text(*_lines(texts[name]))
        return
    print_models([ModelView(one, text.splitlines()[0]) for one, text in texts.items()], output)


def _lines(text: str) -> list[str]:
    """Paragraphs as one line each, so that they end where the terminal does; what is indented stays as it is."""
    found = [one if one.startswith(" ") or "\n " in one else one.replace("\n", " ") for one in text.split("\n\n")]
    return [line for one in found for line in (*one.split("\n"), "")][:-1]


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="Whose document; without it, a list.", autocompletion=document_names),
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with -o json."""
    from forecaster.errors import UnknownName
    from forecaster.report.printed import print_json
    from forecaster.report.schemas import DOCUMENTS, schema_of

    name = " ".join(command or ())
    if not name:
        typer.echo("\n".join(DOCUMENTS))
    elif name in DOCUMENTS:
        print_json(schema_of(name))
    else:
        raise UnknownName("document", name, DOCUMENTS)
