"""`forecaster models`: which models there are."""

from __future__ import annotations

import typer


def models() -> None:
    """List the forecasting models that `forecast.model` can name."""
    from models import CATALOGUE, create

    for name in CATALOGUE:
        summary = (type(create(name)).__doc__ or "").strip().splitlines()[0]
        typer.echo(f"{name:22} {summary}")
