"""`forecaster export`: histories, workloads, settings and decisions as one file to take away."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import DemoOptions, Pattern, chosen, duration_of, finished, grouped, narrowed, of_namespaces
from forecaster.domain.amounts import counted
from forecaster.errors import StoreError

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.report.progress import ShownProgress
    from forecaster.sources.bundle import Bundle

Out = Annotated[Path, typer.Argument(metavar="OUT.zip", dir_okay=False, help="The file to write.")]
Length = Annotated[str, typer.Option("--length", metavar="DURATION", help="Length of the history, up to --at.")]
Minutes = Annotated[
    str,
    typer.Option(
        "--minutes",
        metavar="DURATION",
        help="Part of it by the minute; the time before that has steps of five minutes.",
    ),
]


@grouped
def export(
    given: DemoOptions, out: Out, workload: Pattern = "*", length: Length = "14d", minutes: Minutes = "1d"
) -> None:
    """Write histories, workloads with their HPAs, settings and decisions into one file.

    `replay --export`, `tune --export` and the notebooks read it. It holds no address, no secret and no code.
    With --demo it holds all recorded days, and no decisions.
    """
    from forecaster.app import traces
    from forecaster.app.traces import bundle_of
    from forecaster.cli.streams import check_writable
    from forecaster.report.progress import shown_progress
    from forecaster.sources.bundle import write_bundle

    if given.demo and (given.at, length, minutes) != (None, "14d", "1d"):
        raise typer.BadParameter("has all recorded days; leave --at, --length and --minutes out", param_hint="--demo")
    check_writable(out)
    if out.exists() and not out.is_file():  # a device or a pipe
        raise StoreError(f"{out}: is no regular file, and the bundle would take its place; name a file ending in .zip")
    settings = given.settings
    whole, fine = duration_of("--length", length), duration_of("--minutes", minutes)
    with shown_progress("export") as shown:
        shown.began("history", 0.0)
        if given.demo:
            every = traces.recorded()
            ids = [traced.id for traced in every.workloads]
            chosen_ids = chosen(of_namespaces(ids, given.namespace), workload)
            bundle = bundle_of(every.take([i for i, id_ in enumerate(ids) if id_ in chosen_ids]), settings)
        else:
            bundle = _measured(settings, workload, given.at, whole, fine, shown)
        write_bundle(out, bundle)
    typer.echo(
        f"{out}: {counted(len(bundle.workloads), 'workload')}, {', '.join(bundle.manifest.signals)}, "
        f"{counted(len(bundle.decisions), 'decision')}, {out.stat().st_size / 2**20:.1f} MiB"
    )
    finished(shown)


def _measured(
    settings: Settings, workload: str, at: str | None, whole: timedelta, fine: timedelta, shown: ShownProgress
) -> Bundle:
    """Read the history and decisions of the workloads of a pattern, and decide about them."""
    from forecaster.app import traces
    from forecaster.app.clock import instant
    from forecaster.app.traces import bundle_of, change_rows
    from forecaster.cli.decisions import recorded_changes
    from forecaster.cli.once import cycle_run

    measured = traces.measured(
        settings.prometheus,
        narrowed(settings, workload).queries,
        settings.signals,
        length=min(fine, whole),
        history=max(whole - fine, settings.cycle.interval * 5),
        until=instant(at),
        chosen=partial(chosen, pattern=workload, settings=settings, at=instant(at)),
    )
    outcome = cycle_run(settings, measured.end.isoformat(), workload, shown)[1]
    ids = [traced.id for traced in measured.workloads]
    changes = change_rows(recorded_changes(settings.state, ids, measured.start))
    return bundle_of(measured, settings, outcome.recommendations, changes)
