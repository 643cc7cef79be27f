"""`forecaster report`: the benefit of a week, and of the decisions recorded in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import OutputForm, finished, grouped
from forecaster.cli.replay import Every, Length, PricedOptions
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.cli.replay_inputs import ReplayInputs
    from forecaster.domain.workload import ContainerLosses, WorkloadId
    from forecaster.replay.comparison import Comparison
    from forecaster.replay.realised import SpareCost
    from forecaster.replay.weekly import WeekOutcome
    from forecaster.report.progress import ShownProgress

Week = Annotated[bool, typer.Option("--week", help="Seven days; the default.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="Beginning of the time (RFC 3339); it ends at --to, or --length later."
    ),
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="End of the time, as --until.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="OUT", dir_okay=False, help="Write a page here, its figures beside it as JSON."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(PricedOptions):
    """A week."""

    length: Length = "7d"
    every: Every = 5


@grouped
def report(
    given: ReportOptions,
    week: Week = False,
    begin: From = None,
    end: To = None,
    output: OutputForm = Output.TABLE,
    html: Html = None,
) -> None:
    """Compare plain HPA, seasonal naive and forecaster on real demand; workloads where forecaster did worse come first.

    Pod-hours, shortage, OOM kills, throttling and money of each workload and in total; what was expected of each
    forecast when it began to act, and what came. With --from-prometheus and a ledger also the decisions as they were
    made. Without --export, --prometheus and --from-prometheus the load that comes with the package is looked back on.
    """
    from forecaster.cli.streams import check_writable, write_file
    from forecaster.report.printed import json_text
    from forecaster.report.progress import shown_progress
    from forecaster.report.week import print_week, week_page, week_view

    figures = html.with_suffix(".json") if html else None
    check_writable(html, figures)
    with shown_progress("report") as shown:
        shown.began("history", 0.0)
        outcome = _looked_back(*_spanning(given, begin, end, week=week), shown)
    if html is not None and figures is not None:
        write_file(html, week_page(outcome))
        write_file(figures, json_text(week_view(outcome)))
    print_week(outcome, output)
    finished(shown)
    if not outcome.comparison.workloads:
        raise typer.Exit(1)


def _spanning(
    given: ReportOptions, begin: str | None, end: str | None, *, week: bool
) -> tuple[ReportOptions, datetime | None]:
    """The options with the span that --week, --from, --to and --length name, and its beginning where it is stated."""
    from forecaster.app.clock import current, instant
    from forecaster.cli.options import duration_of
    from forecaster.errors import ConfigError, Fault

    until = end or given.until
    if week and begin:
        raise ConfigError("command line", [Fault("--week", begin, "is seven days; leave out --from, or name --to")])
    if begin is None:
        return replace(given, until=until, length="7d" if week else given.length), None
    first = instant(begin, "--from")
    last = instant(until, "--to") if until else min(current(), first + duration_of("--length", given.length))
    if last <= first:
        raise ConfigError("command line", [Fault("--from", begin, f"is not before {last:%Y-%m-%d %H:%M} UTC")])
    length = f"{int((last - first).total_seconds() // 60)}m"
    return replace(given, until=last.isoformat(), length=length), first


def _looked_back(options: ReportOptions, begin: datetime | None, shown: ShownProgress) -> WeekOutcome:
    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.compare import compare
    from forecaster.replay.strategies import looking_back
    from forecaster.replay.weekly import WeekOutcome, adoptions_of, sizes_of

    inputs = inputs_of(options, begin)
    prepare_process()
    compared = compare(
        inputs.traces,
        inputs.policies,
        looking_back(inputs.settings.forecast.model),
        begin=inputs.begin,
        until=inputs.until,
        assumed=inputs.assumed,
        forecasting=inputs.forecasting,
        watch=shown,
    )
    _end_where_nothing_is_compared(compared, shown)
    shown.began("sizes", 0.8)
    sizes = sizes_of(inputs.traces, inputs.policies, inputs.begin, inputs.until)
    shown.began("decisions", 0.95)
    if not options.measured:
        return WeekOutcome(compared, adoptions_of(compared), sizes)
    return WeekOutcome(compared, adoptions_of(compared), sizes, _losses(inputs), *_recorded(inputs))


def _losses(inputs: ReplayInputs) -> Mapping[WorkloadId, ContainerLosses] | None:
    """Return OOM kills and throttling of the workloads of the look back; None where no series reports them."""
    from forecaster.cli.streams import tell
    from forecaster.errors import SourceError
    from forecaster.sources import factory
    from forecaster.sources.container_queries import container_losses

    settings = inputs.settings
    source = factory.prometheus(settings.prometheus, settings.queries, settings.signals)
    try:
        losses = container_losses(source, inputs.begin, inputs.until)
    except SourceError as error:
        tell(f"! OOM kills and throttling are not known: {error}")
        return None
    return {workload.id: losses[workload.id] for workload in inputs.traces.workloads if workload.id in losses} or None


def _recorded(inputs: ReplayInputs) -> tuple[Comparison | None, list[SpareCost]]:
    """The decisions of the ledger on the load that came, None without any; and what spare pods cost."""
    from forecaster.cli.decisions import recorded_changes
    from forecaster.cli.streams import tell
    from forecaster.replay.realised import DecidedCount, outcome_of, spare_costs

    traces, policies, begin, until, assumed = inputs.traces, inputs.policies, inputs.begin, inputs.until, inputs.assumed
    changes = recorded_changes(inputs.settings.state, [workload.id for workload in traces.workloads], begin)
    decisions = {
        id_: [DecidedCount(change.at, change.decided.replicas, change.decided.spare) for change in each]
        for id_, each in changes.items()
    }
    if not decisions:
        return None, []
    realised = outcome_of(traces, decisions, policies, begin=begin, until=until, assumed=assumed)
    costs = spare_costs(traces.workloads, decisions, policies, begin=begin, until=until, prices=assumed.prices)
    if not realised.workloads:
        tell("! the ledger has no decision of this time: only what would have been decided is compared")
    return realised if realised.workloads else None, costs


def _end_where_nothing_is_compared(compared: Comparison, shown: ShownProgress) -> None:
    """After Ctrl-C a strategy may be missing: then end without a look back, with the results of the others."""
    from forecaster.report.comparison import sentences
    from forecaster.report.printed import print_text
    from forecaster.report.week import NAMES

    if shown.interrupted_in and any(name not in workload.curves for workload in compared.workloads for name in NAMES):
        print_text(*sentences(compared))
        finished(shown)
