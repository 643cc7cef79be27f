"""`forecaster settings`: all settings, the meaning of one, and the origin of those that are set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from forecaster.cli.options import ConfigFile, OutputForm, PrometheusUrl, given_of
from forecaster.cli.streams import tell
from forecaster.publish.health import SettingView
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.config.settings import Settings


class SettingsView(msgspec.Struct, frozen=True):
    """Settings that are in force, those that something states first."""

    settings: list[SettingView]


def setting_names(incomplete: str) -> list[str]:
    """Complete the names of settings in a shell."""
    from forecaster.config.settings import setting_paths

    return [path for path, _ in setting_paths() if path.startswith(incomplete)]


def settings(
    key: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="Explain this one, e.g. policy.horizontal.", autocompletion=setting_names),
    ] = None,
    config: ConfigFile = None,
    prometheus: PrometheusUrl = None,
    origin: Annotated[bool, typer.Option("--origin", help="Print only settings that are stated, and where.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema, for editors.")] = False,
    output: OutputForm = Output.TABLE,
) -> None:
    """Print all settings with their defaults, ranges and reasons as YAML; explain one; check a file.

    With --config the file is checked, and overrides that match no workload are reported if Prometheus is reachable.
    -o wide, json, csv and name list the settings that are in force, each with its origin.
    """
    from forecaster.config.settings import load
    from forecaster.config.text import explained_setting, schema_of_settings, settings_text
    from forecaster.report.printed import print_json

    explained = None if key is None else explained_setting(key)
    if schema:
        print_json(schema_of_settings())
    elif origin or output is not Output.TABLE:
        _print_in_force(config, prometheus, output, key, stated=origin)
    elif explained is not None:
        typer.echo(explained)
        if config is not None:
            _print_in_force(config, prometheus, output, key, stated=False)
    elif config is not None:
        loaded = load(config, given_of(prometheus, None))
        typer.echo(f"{config}: no fault found")
        if loaded.overrides:
            _tell_idle(loaded)
    else:
        typer.echo(settings_text(), nl=False)


def _print_in_force(config: Path | None, url: str | None, output: Output, key: str | None, *, stated: bool) -> None:
    """The settings with their origins; of `key` alone; only those that something states."""
    from forecaster.config.settings import load
    from forecaster.config.text import origins_of
    from forecaster.publish.health import DEFAULT_ORIGIN, settings_in_force
    from forecaster.report.printed import PrintedColumn, print_listing

    given = given_of(url, None)
    each = settings_in_force(load(config, given).model_dump(mode="json"), origins_of(config, given), longest=None)
    chosen = [setting for setting in each if key is None or f"{setting.path}.".startswith(f"{key}.")]
    shown = [setting for setting in chosen if not stated or setting.origin != DEFAULT_ORIGIN]
    columns = [
        PrintedColumn("SETTING", [setting.path for setting in shown]),
        PrintedColumn("VALUE", [setting.value for setting in shown], words=True),
        PrintedColumn("ORIGIN", [setting.origin for setting in shown]),
    ]
    print_listing(SettingsView(shown), shown, columns, output)


def _tell_idle(loaded: Settings) -> None:
    """Overrides that match nothing, where Prometheus answers."""
    from forecaster.cli.options import known_workloads, tell_idle_overrides
    from forecaster.errors import SourceError

    try:
        ids = known_workloads(loaded, patient=False)
    except SourceError as error:
        tell(f"Whether overrides match workloads is not known: {error}")
    else:
        tell_idle_overrides(loaded.policies, ids)
