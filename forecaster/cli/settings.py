"""`forecaster settings`: everything that can be set, what one setting means, what is set and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, OutputForm, PrometheusUrl
from forecaster.cli.streams import tell
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.config.settings import Settings


def setting_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from forecaster.config.settings import setting_paths

    return [path for path, _ in setting_paths() if path.startswith(incomplete)]


def settings(
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="Explain this one: policy.horizontal.", autocompletion=setting_names),
    ] = None,
    config: ConfigFile = None,
    prometheus: PrometheusUrl = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say what is set, and where.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema, for editors.")] = False,
    output: OutputForm = Output.TABLE,
) -> None:
    """Print all settings with their defaults, ranges and reasons as YAML; explain one; check a file.

    With --config the file is checked, and overrides that match no workload are told where Prometheus answers.
    """
    from forecaster.config.settings import load
    from forecaster.config.text import explained_setting, schema_of_settings, settings_text
    from forecaster.report.printed import print_json

    if key is not None:
        typer.echo(explained_setting(key))
    elif schema:
        print_json(schema_of_settings())
    elif origin:
        _print_origins(config, prometheus, output)
    elif config is not None:
        loaded = load(config, {"prometheus": {"url": prometheus}} if prometheus else {})
        typer.echo(f"{config}: no fault found")
        _tell_idle(loaded)
    else:
        typer.echo(settings_text(), nl=False)


def _print_origins(config: Path | None, prometheus: str | None, output: Output) -> None:
    """The layers that were put over each other; what nothing says has its default."""
    from forecaster.config.settings import layers, parse
    from forecaster.config.text import origins
    from forecaster.domain.layers import merged
    from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table

    each = layers(config, {"prometheus": {"url": prometheus}} if prometheus else {})
    value: dict[str, object] = {}
    for _, layer in each:
        value = merged(value, layer)
    parse(value, str(config or "environment and command line"))
    found = origins(each)
    result = Printable(
        table=lambda wide: print_table(
            [
                PrintedColumn("SETTING", [one.path for one in found]),
                PrintedColumn("VALUE", [one.value for one in found], words=True),
                PrintedColumn("ORIGIN", [one.origin for one in found]),
            ],
            wide=wide,
        ),
        document=lambda: {"settings": [one._asdict() for one in found]},
        rows=lambda: [one._asdict() for one in found],
        ids=lambda: [one.path for one in found],
    )
    print_as(output, result)


def _tell_idle(loaded: Settings) -> None:
    """Overrides that match nothing, where Prometheus answers."""
    from forecaster.cli.options import known_workloads, tell_idle_overrides
    from forecaster.errors import SourceError

    if not loaded.overrides:
        return
    try:
        ids = known_workloads(loaded, patient=False)
    except SourceError as error:
        tell(f"Whether overrides match workloads is not known: {error}")
    else:
        tell_idle_overrides(loaded.policies, ids)
