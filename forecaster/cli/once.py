"""`forecaster once`: one cycle, printed; `forecaster top`: one after the other, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import (
    CycleOptions,
    Demo,
    OutputForm,
    Pattern,
    SourceOptions,
    chosen,
    finished,
    grouped,
    matching,
    narrowed,
    refuse_namespaces,
    tell_idle_overrides,
)
from forecaster.cli.streams import tell
from forecaster.errors import SourceError
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Cycle, Outcome
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.peaks import Paths
    from forecaster.report.progress import ShownProgress


@grouped
def once(given: CycleOptions, workload: Pattern = "*", output: OutputForm = Output.TABLE) -> None:
    """Read the history of all workloads once, and print what each should have."""
    from forecaster.report.progress import shown_progress
    from forecaster.report.recommendations import print_outcome

    with given.staged(given.at, demo=given.demo) as (settings, now), shown_progress("once") as shown:
        outcome = cycle_run(settings, now, workload, shown, donors=given.donors)[1]
        ids = workloads_of(outcome, workload, settings)
    print_outcome(outcome, ids, output)
    if workload == "*" and not given.namespace and ids:
        tell_idle_overrides(settings.policies, outcome.inventory.ids)
    if not ids:
        raise typer.Exit(1)
    finished(shown)


def workloads_of(outcome: Outcome, pattern: str, settings: Settings) -> set[WorkloadId]:
    """The workloads of a pattern; none where not even their names can be read, which the report says.

    Raises:
        UnknownName: there are others, or there are namespaces of other names.
    """
    ids = [recommendation.id for recommendation in outcome.recommendations]
    if not ids and pattern == "*":
        if not outcome.report.failures:
            refuse_namespaces(settings, outcome.report.at)
        return set()
    try:
        return chosen(ids, pattern, settings, outcome.report.at)
    except SourceError:
        return set()


def cycle_run(
    settings: Settings,
    at: str | None,
    pattern: str,
    shown: ShownProgress | None = None,
    paths: Paths | None = None,
    *,
    donors: bool = False,
) -> tuple[Cycle, Outcome]:
    """Run a single cycle at the last full minute, or at the given instant, for the workloads of `pattern`.

    Forecasts step by step are put into `paths`, if given. Only the workloads of the pattern are read, unless `donors`
    are needed: half the forecast of a workload with less than two days comes from others like it.
    """
    from forecaster.app.clock import instant
    from forecaster.app.compose import single_cycle
    from forecaster.domain.window import last_multiple

    now = last_multiple(instant(at), settings.cycle.interval)
    limited = settings if donors else narrowed(settings, pattern)
    cycle = single_cycle(limited, now, shown=lambda id_: bool(matching([id_], pattern)), watch=shown)
    cycle.forecaster.paths = paths
    outcome = cycle.run(now)
    tell_missing_donors(cycle, outcome, pattern, donors=donors)
    return cycle, outcome


def tell_missing_donors(cycle: Cycle, outcome: Outcome, pattern: str, *, donors: bool) -> None:
    """Say that the service would forecast otherwise, if less than the fleet was read and a workload needs donors."""
    if pattern != "*" and not donors and borrows(cycle, matching(outcome.inventory.ids, pattern)):
        tell(
            "! A workload under two days old has half its forecast from others like it, which were not read; --donors "
            "reads the whole fleet."
        )


def borrows(cycle: Cycle, ids: set[WorkloadId]) -> bool:
    """Whether one of these workloads is so new that donors matter."""
    import numpy as np

    from forecaster.domain.window import DAY, FIVE_MINUTES
    from models.donors import GROWN_DAYS, YOUNG_DAYS

    day = DAY // FIVE_MINUTES
    for signal in cycle.history.signals:
        weeks = cycle.history.window(signal, FIVE_MINUTES)
        if weeks.values.shape[1] < GROWN_DAYS * day:
            continue
        rows = [row for row, id_ in enumerate(weeks.keys) if id_ in ids]
        known = ~np.isnan(weeks.values[rows])
        if (known.any(axis=1) & ~known[:, : -YOUNG_DAYS * day].any(axis=1)).any():
            return True
    return False


@grouped
def top(
    given: SourceOptions,
    workload: Pattern = "*",
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="Most rows; default: what fits.")] = None,
    once_only: Annotated[bool, typer.Option("--once", help="Print once, then stop.")] = False,
    demo: Demo = False,
) -> None:
    """Watch recommendations live, what changes most first: a cycle each interval of the settings, until Ctrl-C."""
    import time

    from forecaster.app.clock import current, instant
    from forecaster.app.compose import single_cycle
    from forecaster.domain.window import last_multiple
    from forecaster.report.progress import shown_progress
    from forecaster.report.recommendations import LiveTable

    with given.staged(None, demo=demo) as (settings, begin):
        limited, interval = narrowed(settings, workload), settings.cycle.interval
        behind = current() - instant(begin) if begin else settings.cycle.delay
        now = last_multiple(current() - behind, interval)
        with shown_progress("top") as shown:
            cycle = single_cycle(limited, now, shown=lambda id_: bool(matching([id_], workload)), watch=shown)
            outcome = cycle.run(now)
        cycle.watch = None
        with LiveTable(rows, lasts=not once_only) as picture:
            while True:
                picture.show(outcome, workloads_of(outcome, workload, settings), cycle.history)
                finished(shown)
                if once_only:
                    return
                time.sleep(max(0.0, (now + interval + behind - current()).total_seconds()))
                now = last_multiple(current() - behind, interval)
                outcome = cycle.run(now)
