"""`forecaster models` and `forecaster schema`: which models there are, and of what form documents are."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import msgspec
import typer

from forecaster.cli.options import OutputForm
from forecaster.report.formats import Output

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENTS = {
    "backtest vertical": "cli.backtest:SizesBacktestView",
    "demo": "report.demo:DemoView",
    "diff": "report.decided:DiffView",
    "doctor": "cli.doctor:ChecksView",
    "explain": "report.recommendations:ExplanationsDocument",
    "history": "report.decided:HistoryView",
    "hpa simulate": "cli.hpa:SimulationView",
    "models": "cli.catalogue:ModelsView",
    "nodes": "cycle.node_document:NodesView",
    "once": "report.recommendations:RecommendationsDocument",
    "recommend": "report.advice_view:AdvicesView",
    "replay": "report.comparison_view:ComparisonView",
    "report": "report.week:WeekView",
    "settings": "cli.settings:SettingsView",
    "store move": "cli.store:MovedView",
    "tune": "cli.tune:TuningView",
}
"""Type of each command's document, as `MODULE:TYPE` in forecaster; imported when its schema is printed."""


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of a command's document, made of the type that is encoded; raises KeyError for one without."""
    module, _, name = DOCUMENTS[command].partition(":")
    made = msgspec.json.schema(getattr(import_module(f"forecaster.{module}"), name))
    return {"$schema": DIALECT, "title": f"forecaster {command} -o json", **made}


class ModelView(msgspec.Struct, frozen=True, gc=False):
    """A model that `forecast.model` can name."""

    name: str
    summary: str


class ModelsView(msgspec.Struct, frozen=True):
    """All models, by name."""

    models: list[ModelView]


def model_names(incomplete: str) -> list[str]:
    """Complete the names of models in a shell."""
    from models import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(incomplete)]


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Describe this model.", autocompletion=model_names),
    ] = None,
    output: OutputForm = Output.TABLE,
) -> None:
    """List the forecasting models that `forecast.model` can name."""
    from forecaster.cli.replay_inputs import known_models
    from forecaster.report.printed import columns_from, print_listing, print_text
    from models import CATALOGUE, create

    if name is not None:
        known_models([name])
    texts = {model: getdoc(type(create(model))) or "" for model in (CATALOGUE if name is None else [name])}
    if name is not None and output is Output.TABLE:
        print_text(*_lines(texts[name]))
        return
    views = [ModelView(model, text.partition("\n")[0]) for model, text in texts.items()]
    cells = [msgspec.structs.astuple(view) for view in views]
    named, summary = columns_from(("name", "summary"), cells, (0, 0), texts=2)
    print_listing(ModelsView(views), views, [named, replace(summary, words=True)], output)


def _lines(text: str) -> list[str]:
    """Paragraphs but for code, as one line each, so that they end where the terminal does; an indented one stays."""
    blocks = [block for block in text.split("\n\n") if not block.startswith(">>>")]
    joined = [block if block.startswith(" ") or "\n " in block else block.replace("\n", " ") for block in blocks]
    return [line for block in joined for line in (*block.split("\n"), "")][:-1]


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Command whose output is described; default: list them.",
            autocompletion=lambda: [*DOCUMENTS],
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with -o json."""
    from forecaster.errors import UnknownName
    from forecaster.report.printed import print_json

    name = " ".join(command or ())
    if not name:
        typer.echo("\n".join(DOCUMENTS))
    elif name in DOCUMENTS:
        print_json(schema_of(name))
    else:
        raise UnknownName("document", name, DOCUMENTS)
