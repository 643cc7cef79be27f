"""`forecaster tune`: which policy would have been better, with its expected outcome and its uncertainty."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster.cli.options import ConfigFile, Namespaces, Pattern, PrometheusUrl
from forecaster.cli.replay_options import (
    Cache,
    Every,
    Export,
    FromPrometheus,
    Hpas,
    MetricsDelay,
    NoCache,
    PodCapacity,
    Request,
    StartUps,
    Sync,
    Until,
)


def tune(
    workload: Pattern = "*",
    export: Export = None,
    from_prometheus: FromPrometheus = False,
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    namespaces: Namespaces = None,
    hpa: Hpas = None,
    request: Request = None,
    pod_capacity: PodCapacity = None,
    length: Annotated[
        str, typer.Option("--length", metavar="DURATION", help="How much is replayed; six days at least.")
    ] = "7d",
    until: Until = None,
    start_up: StartUps = None,
    metrics_delay: MetricsDelay = "0s",
    sync: Sync = "15s",
    every: Every = 5,
    cache: Cache = None,
    no_cache: NoCache = False,
) -> None:
    """Search quantile, lead time, stabilization and target on replayed days, and print policy YAML.

    What is proposed was better on days that had no part in choosing it; where the evidence is thin nothing is proposed,
    and the reason is a comment. Exit code 1 when there is no proposal at all.
    """
    from forecaster.cli.options import settings_of
    from forecaster.cli.replay_inputs import Options, inputs_of
    from forecaster.compose import prepare_process
    from forecaster.output.replay.tuned import tuned_text
    from forecaster.replay.tuning import tune as tuned

    settings = settings_of(config, prometheus, namespaces)
    inputs = inputs_of(
        Options(
            settings,
            workload,
            export,
            from_prometheus,
            hpa or [],
            request or [],
            pod_capacity,
            length,
            until,
            start_up or [],
            metrics_delay,
            sync,
            every,
            cache=cache,
            caching=not no_cache,
        )
    )
    prepare_process()
    found = tuned(
        inputs.traces,
        inputs.policies,
        begin=inputs.begin,
        until=inputs.until,
        model=settings.forecast.model,
        terms=inputs.terms,
        foresee=inputs.foresee,
    )
    typer.echo(tuned_text(found), nl=False)
    if not found.proposals:
        raise typer.Exit(1)
