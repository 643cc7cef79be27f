"""`forecaster backtest`: what a policy would have done over the history that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from forecaster.cli.options import (
    ConfigFile,
    Demo,
    Instant,
    Namespace,
    OutputForm,
    Pattern,
    PrometheusUrl,
    chosen,
    finished,
    narrowed,
    of_namespaces,
    settings_of,
)
from forecaster.cli.streams import tell
from forecaster.domain.amounts import counted
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.replay.size_compare import SizeOutcome
    from forecaster.replay.size_replay import Load
    from forecaster.report.progress import ShownProgress

app = typer.Typer(
    help="What a policy would have done over measured history.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def backtest() -> None:
    """What a policy would have done over measured history."""


BACKTEST_EPILOG = """\b
Examples:
  forecaster backtest vertical --demo
  forecaster backtest vertical 'shop/*' -o json \\
      --prometheus http://prometheus:9090"""


@app.command(epilog=BACKTEST_EPILOG)
def vertical(
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    namespace: Namespace = None,
    workload: Pattern = "*",
    output: OutputForm = Output.TABLE,
    demo: Demo = False,
    at: Instant = None,
) -> None:
    """Replay requests and limits over the usage of one pod: kills, throttled time, waste, changes; VPA and KRR beside.

    The first half of the history is read before the first decision. The policy is that of --config; what a container
    wanted above its limit is not known from its history, so what is above the limits of that time is not counted.
    """
    from forecaster.cli.look import look, look_at_demo
    from forecaster.cycle.advice import pod_usage
    from forecaster.replay.size_replay import measured_load
    from forecaster.report.progress import shown_progress
    from forecaster.report.sizes_backtest import print_backtest

    settings = settings_of(config, prometheus, namespace)
    with shown_progress("backtest") as shown:
        seen = look_at_demo(None, None, shown) if demo else look(narrowed(settings, workload), at, None, None, shown)
        seen.tell_faults()
        if seen.outcome.lost:
            raise typer.Exit(1)
        known = of_namespaces(seen.outcome.inventory.ids, namespace if demo else None)
        ids = sorted(chosen(known, workload, None if demo else settings))
        usage, names = pod_usage(seen.cycle.history, ids), [str(id_) for id_ in ids]
        found = [measured_load("cpu", names, usage.cpu), measured_load("memory", names, usage.memory)]
        loads: dict[str, Load] = {load.resource: load for load in found if load is not None}
        results = _replayed(loads, settings.policy.vertical, shown)
    if not loads:
        tell("no workload has a day of usage per pod; half is read first, half a day is the least")
        raise typer.Exit(1)
    heads = {
        name: f"{name}: {counted(len(load.names), 'workload')}, {(load.wanted.shape[1] - load.warm) / 288:.1f} days"
        for name, load in loads.items()
    }
    print_backtest(results, heads, output, ids)
    finished(shown)


def _replayed(loads: Mapping[str, Load], policy: VerticalPolicy, shown: ShownProgress) -> dict[str, list[SizeOutcome]]:
    """The outcomes of each resource; after Ctrl-C of those that are done."""
    from forecaster.replay.size_compare import backtested_sizes

    results: dict[str, list[SizeOutcome]] = {}
    for name, load in loads.items():
        shown.began(f"sizes of {name}", 0.5 + 0.5 * len(results) / len(loads))
        try:
            results[name] = backtested_sizes(load, policy)
        except KeyboardInterrupt:
            if results and shown.interrupted(name):
                break
            raise
    return results
