"""`forecaster settings`: everything that can be set."""

from __future__ import annotations

import typer

from forecaster.cli.options import ConfigFile


def settings(config: ConfigFile = None) -> None:
    """Print all settings with their defaults, ranges and reasons as YAML; with --config, check that file."""
    from forecaster.config.settings import load
    from forecaster.config.text import settings_text

    if config is None:
        typer.echo(settings_text(), nl=False)
        return
    load(config)
    typer.echo(f"{config}: no fault found")
