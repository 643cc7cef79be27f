"""Options that `replay`, `tune` and `outcome` share: which demand, under which HPA, and how the cluster behaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from forecaster.cli.options import ConfigFile, Namespace, Pattern, PrometheusUrl

Export = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="A bundle of `forecaster export`, or CSV or Parquet.",
    ),
]
FromPrometheus = Annotated[bool, typer.Option("--from-prometheus", help="The last weeks of a running cluster.")]
Hpas = Annotated[
    list[Path] | None,
    typer.Option(
        "--hpa", metavar="FILE", exists=True, dir_okay=False, help="HPA manifest, in place of what was measured."
    ),
]
Request = Annotated[
    list[str] | None,
    typer.Option("--request", metavar="RESOURCE=QUANTITY", help="What a pod requests, where nothing else says so."),
]
PodCapacity = Annotated[
    str | None,
    typer.Option("--pod-capacity", metavar="SIGNAL=AMOUNT", help="What fills a pod; default: its CPU request."),
]
Length = Annotated[
    str,
    typer.Option(
        "--length", metavar="DURATION", help="Length of history to use, ending at --until (tune: at least 6d)."
    ),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="End of the time (RFC 3339).")]
StartUps = Annotated[
    list[str] | None,
    typer.Option("--start-up", metavar="DURATION", help="Until a pod serves; several are equally likely. Default: 2m."),
]
MetricsDelay = Annotated[str, typer.Option("--metrics-delay", metavar="DURATION", help="Age of what the HPA sees.")]
Sync = Annotated[str, typer.Option("--sync", metavar="DURATION", help="From one pass of the HPA to the next.")]
Returns = Annotated[
    float,
    typer.Option("--returns", metavar="SHARE", help="Share of unserved demand that clients retry."),
]
Cold = Annotated[str, typer.Option("--cold", metavar="DURATION", help="How long a pod that is new carries less.")]
ColdShare = Annotated[
    float, typer.Option("--cold-share", metavar="SHARE", help="Of its capacity that it carries meanwhile.")
]
Every = Annotated[int, typer.Option("--every", min=1, max=60, help="Minutes between two forecasts.")]
Cache = Annotated[
    Path | None, typer.Option("--cache", metavar="DIR", file_okay=False, help="Where forecasts are kept.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Compute every forecast anew.")]
CoreHour = Annotated[
    float | None, typer.Option("--price-core-hour", "--core-hour", min=0, help="Price of a requested core for an hour.")
]
GibHour = Annotated[
    float | None, typer.Option("--price-gib-hour", "--gib-hour", min=0, help="Price of a requested GiB for an hour.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanOptions:
    """Options that select workloads, settings, the span of time and the start-up of pods."""

    workload: Pattern = "*"
    prometheus: PrometheusUrl = None
    config: ConfigFile = None
    namespace: Namespace = None
    length: Length = "7d"
    until: Until = None
    start_up: StartUps = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions(SpanOptions):
    """Options that select the demand, the autoscaler and the behaviour of the cluster around it."""

    export: Export = None
    from_prometheus: FromPrometheus = False
    hpa: Hpas = None
    request: Request = None
    pod_capacity: PodCapacity = None
    metrics_delay: MetricsDelay = "0s"
    sync: Sync = "15s"
    returns: Returns = 0.0
    cold: Cold = "0s"
    cold_share: ColdShare = 0.5
    every: Every = 5
    cache: Cache = None
    no_cache: NoCache = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOptions(ReplayOptions):
    """A shorter time, minute by minute, and what it costs."""

    length: Length = "1d"
    every: Every = 1
    core_hour: CoreHour = None
    gib_hour: GibHour = None
