"""`forecaster once`: one cycle, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, Instant, Namespaces, Pattern, PrometheusUrl, matching, settings_of
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Cycle, Outcome


def once(
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    namespaces: Namespaces = None,
    workload: Pattern = "*",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
    at: Instant = None,
) -> None:
    """Read the history of all workloads once, and print what each should have."""
    from forecaster.report.recommendations import print_outcome

    outcome = one_cycle(settings_of(config, prometheus, namespaces), at, workload)
    chosen = matching((one.id for one in outcome.recommendations), workload)
    print_outcome(outcome, chosen, output)
    if not outcome.recommendations and outcome.report.failures:
        raise typer.Exit(1)


def one_cycle(settings: Settings, at: str | None, shown: str) -> Outcome:
    """The outcome of a single cycle at the last full minute, or at the instant given; `shown` is a pattern."""
    return cycle_run(settings, at, shown)[1]


def cycle_run(settings: Settings, at: str | None, shown: str) -> tuple[Cycle, Outcome]:
    """The same, with the cycle and what it has learned."""
    from forecaster.app.clock import instant
    from forecaster.app.compose import single_cycle
    from forecaster.domain.window import last_multiple

    now = last_multiple(instant(at), settings.cycle.interval)
    cycle = single_cycle(settings, now, shown=lambda id_: bool(matching([id_], shown)))
    return cycle, cycle.run(now)
