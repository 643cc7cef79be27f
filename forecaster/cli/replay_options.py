"""Options that `replay` and `tune` share: whose demand, under which HPA, and how the cluster around it behaves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Export = Annotated[
    Path | None,
    typer.Option(
        "--export", metavar="FILE", exists=True, dir_okay=False, help="Demand as CSV or Parquet, see docs/replay.md."
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
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="End of the replay (RFC 3339).")]
StartUps = Annotated[
    list[str] | None,
    typer.Option("--start-up", metavar="DURATION", help="Until a pod serves; several are equally likely. Default: 2m."),
]
MetricsDelay = Annotated[str, typer.Option("--metrics-delay", metavar="DURATION", help="Age of what the HPA sees.")]
Sync = Annotated[str, typer.Option("--sync", metavar="DURATION", help="From one pass of the HPA to the next.")]
Every = Annotated[int, typer.Option("--every", min=1, max=60, help="Minutes between two forecasts.")]
Cache = Annotated[
    Path | None, typer.Option("--cache", metavar="DIR", file_okay=False, help="Where forecasts are kept.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Compute every forecast anew.")]
