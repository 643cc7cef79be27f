"""`forecaster shards`: the processes that compute a fleet in shards beside `forecaster run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, settings_of

if TYPE_CHECKING:
    from forecaster.config.sharding import ShardingSettings

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Health = Annotated[
    str, typer.Option("--health", metavar="[HOST]:PORT", help="Address at which /health answers probes, without TLS.")
]


@app.callback()
def shards() -> None:
    """Workers and scheduler of a fleet in shards."""


@app.command(epilog="\b\nExample:\n  forecaster shards worker --config /etc/forecaster/settings")
def worker(config: ConfigFile = None, health: Health = "127.0.0.1:8790") -> None:
    """Compute shards, one at a time, until SIGTERM."""
    from forecaster.app import telemetry
    from forecaster.app.sharding import dask

    telemetry.configure()
    dask.work(_sharding(config), health)


@app.command(epilog="\b\nExample:\n  forecaster shards scheduler --config /etc/forecaster/settings")
def scheduler(config: ConfigFile = None, health: Health = "127.0.0.1:8790") -> None:
    """Hand shards to workers, until SIGTERM. It listens on the port of sharding.scheduler."""
    from forecaster.app import telemetry
    from forecaster.app.sharding import dask

    telemetry.configure()
    dask.schedule(_sharding(config), health)


def _sharding(config: ConfigFile) -> ShardingSettings:
    settings = settings_of(config).sharding
    if not settings.scheduler:
        raise typer.BadParameter("sharding.scheduler is empty: name its address in the settings", param_hint="--config")
    return settings
