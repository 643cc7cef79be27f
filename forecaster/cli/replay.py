"""`forecaster replay`: what would have happened on recorded, exported or measured demand.

Its options say which demand is replayed, under which HPA, and how the cluster behaves; `tune` and `report` share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from forecaster.cli.options import OutputForm, Pattern, SourceOptions, existing_file, finished, grouped
from forecaster.report.formats import Output

Export = Annotated[Path | None, existing_file("--export", "A bundle of `forecaster export`, or CSV or Parquet.")]
FromPrometheus = Annotated[
    bool,
    typer.Option(
        "--from-prometheus", help="Read the last weeks of the cluster by the settings; --prometheus implies it."
    ),
]
Hpas = Annotated[
    list[Path] | None,
    existing_file(
        "--hpa", "HPA manifest that replaces the HPA of its target; a single one applies to all workloads without one."
    ),
]
Request = Annotated[
    list[str] | None,
    typer.Option("--request", metavar="RESOURCE=QUANTITY", help="Request of one pod, where nothing else states it."),
]
PodCapacity = Annotated[
    str | None,
    typer.Option("--pod-capacity", metavar="SIGNAL=AMOUNT", help="What fills one pod; default: its CPU request."),
]
Length = Annotated[
    str,
    typer.Option(
        "--length", metavar="DURATION", help="Length of history to use, ending at --until (tune: at least 6d)."
    ),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Its end (RFC 3339); default: the latest.")]
StartUps = Annotated[
    list[str] | None,
    typer.Option("--start-up", metavar="DURATION", help="Until a pod serves; several are equally likely. Default: 2m."),
]
MetricsDelay = Annotated[str, typer.Option("--metrics-delay", metavar="DURATION", help="Age of what the HPA reads.")]
Sync = Annotated[str, typer.Option("--sync", metavar="DURATION", help="Time from one pass of the HPA to the next.")]
Returns = Annotated[
    float,
    typer.Option("--returns", metavar="SHARE", help="Share of unserved demand that clients retry."),
]
Cold = Annotated[str, typer.Option("--cold", metavar="DURATION", help="Time for which a new pod carries less.")]
ColdShare = Annotated[
    float, typer.Option("--cold-share", metavar="SHARE", help="Share of its capacity that a new pod carries meanwhile.")
]
Every = Annotated[int, typer.Option("--every", min=1, max=60, help="Minutes between two forecasts.")]
Cache = Annotated[
    Path | None, typer.Option("--cache", metavar="DIR", file_okay=False, help="Folder of stored forecasts.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Compute every forecast anew.")]
CoreHour = Annotated[
    float | None, typer.Option("--price-core-hour", "--core-hour", min=0, help="Price of a requested core for an hour.")
]
GibHour = Annotated[
    float | None, typer.Option("--price-gib-hour", "--gib-hour", min=0, help="Price of a requested GiB for an hour.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions(SourceOptions):
    """Options that select the demand, the span of time, the autoscaler and the behaviour of the cluster around it."""

    workload: Pattern = "*"
    length: Length = "7d"
    until: Until = None
    start_up: StartUps = None
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

    @property
    def measured(self) -> bool:
        """Whether demand is read from a Prometheus: one named by --prometheus, or that of the settings."""
        return self.from_prometheus or self.prometheus is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOptions(ReplayOptions):
    """A shorter span, minute by minute, and its cost."""

    length: Length = "1d"
    every: Every = 1
    core_hour: CoreHour = None
    gib_hour: GibHour = None


Models = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME", help="Also replay with this model; may be repeated.")
]
Learned = Annotated[bool, typer.Option("--learned", help="Also replay the learned policies.")]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", dir_okay=False, help="Write the result as JSON to this file.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="OUT", dir_okay=False, help="Write a page with pictures here.")
]


@grouped
def replay(
    given: PricedOptions,
    model: Models = None,
    learned: Learned = False,
    output: OutputForm = Output.TABLE,
    json: Json = None,
    html: Html = None,
) -> None:
    """Replay demand under today's HPA, seasonal naive, our policy and perfect foresight: shortage, pod-hours, frontier.

    Without --export, --prometheus and --from-prometheus the load that comes with the package is replayed. Policies are
    those of --config.
    """
    import time

    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of, known_models
    from forecaster.cli.streams import check_writable, tell, write_file
    from forecaster.replay.compare import compare
    from forecaster.replay.learned import shipped
    from forecaster.replay.strategies import strategies_with
    from forecaster.report.comparison_view import comparison_view, print_comparison
    from forecaster.report.page import page
    from forecaster.report.printed import json_text
    from forecaster.report.progress import shown_progress

    check_writable(json, html)
    known_models(model or [])
    with shown_progress("replay") as shown:
        shown.began("history", 0.0)
        inputs = inputs_of(given)
        prepare_process()
        outcome = compare(
            inputs.traces,
            inputs.policies,
            strategies_with(
                inputs.settings.forecast.model, model or [], learned=shipped() if learned else None, gated=True
            ),
            begin=inputs.begin,
            until=inputs.until,
            assumed=inputs.assumed,
            forecasting=inputs.forecasting,
            seconds=time.perf_counter,
            watch=shown,
        )
    if json is not None:
        write_file(json, json_text(comparison_view(outcome)))
    if html is not None:
        write_file(html, page(outcome))
    print_comparison(outcome, output)
    finished(shown)
    if not outcome.workloads:
        hints = [] if given.hpa else ["what scales it by --hpa FILE"]
        hints += [] if given.request or given.pod_capacity else ["its pods by --request cpu=500m"]
        if hints:
            tell(f"State {', and '.join(hints)}; see docs/replay.md.")
        raise typer.Exit(1)
