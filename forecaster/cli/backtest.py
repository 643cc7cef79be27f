"""`forecaster backtest`: replay of a policy over the stored history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

import msgspec
import typer

from forecaster.cli.options import DemoOptions, OutputForm, Pattern, chosen, finished, grouped, narrowed, of_namespaces
from forecaster.cli.streams import tell
from forecaster.domain.amounts import UNKNOWN_AMOUNT, counted
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.size_replay import Load
    from forecaster.replay.sizers import SizeOutcome
    from forecaster.report.printed import PrintedColumn
    from forecaster.report.progress import ShownProgress

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def backtest() -> None:
    """Replay a policy over measured history."""


BACKTEST_EPILOG = """\b
Examples:
  forecaster backtest vertical --demo
  forecaster backtest vertical 'shop/*' -o json \\
      --prometheus http://prometheus:9090"""


@app.command(epilog=BACKTEST_EPILOG)
@grouped
def vertical(given: DemoOptions, workload: Pattern = "*", output: OutputForm = Output.TABLE) -> None:
    """Replay requests and limits over the usage of one pod: kills, throttled time, waste, changes; VPA and KRR beside.

    The first half of the history is read before the first decision. The policy is that of --config; what a container
    wanted above its limit is not known from its history, so what is above the limits of that time is not counted.
    """
    from forecaster.cli.snapshot import take_demo_snapshot, take_snapshot
    from forecaster.cycle.advice import pod_usage
    from forecaster.replay.size_replay import measured_load
    from forecaster.report.progress import shown_progress

    settings = given.settings
    with shown_progress("backtest") as shown:
        if given.demo:
            snapshot = take_demo_snapshot(None, None, shown, settings if given.config else None)
        else:
            snapshot = take_snapshot(narrowed(settings, workload), given.at, None, None, shown)
        snapshot.tell_faults()
        if snapshot.outcome.lost:
            raise typer.Exit(1)
        known = of_namespaces(snapshot.outcome.inventory.ids, given.namespace if given.demo else None)
        ids = sorted(chosen(known, workload, None if given.demo else settings))
        usage, names = pod_usage(snapshot.cycle.history, ids), [str(id_) for id_ in ids]
        measured = [measured_load("cpu", names, usage.cpu), measured_load("memory", names, usage.memory)]
        loads: dict[str, Load] = {load.resource: load for load in measured if load is not None}
        results = _replayed(loads, settings.policy.vertical, shown)
    if not loads:
        tell("no workload has a day of usage per pod; half is read first, half a day is the least")
        raise typer.Exit(1)
    heads = {
        name: f"{name}: {counted(len(load.names), 'workload')}, {(load.demand.shape[1] - load.warm) / 288:.1f} days"
        for name, load in loads.items()
    }
    print_backtest(results, heads, output, ids)
    finished(shown)


def _replayed(loads: Mapping[str, Load], policy: VerticalPolicy, shown: ShownProgress) -> dict[str, list[SizeOutcome]]:
    """The outcomes of each resource; after Ctrl-C of those that are done."""
    from forecaster.replay.sizers import backtested_sizes

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


BACKTEST_HEADS = ("recommender", "setting", "slack", "over limit", "time over request", "cut off", "changes")


class SizeOutcomeView(msgspec.Struct, frozen=True):
    """Result of one setting of a recommender; slack is the mean of the containers' ratios."""

    recommender: str
    setting: str
    slack: float | None
    slack_of_total: float | None
    over_limit: int
    """Number of five-minute points with demand above the limit."""
    over_request_share: float | None
    over_limit_share: float | None
    cut_share: float | None
    changes: int


class SizesBacktestView(msgspec.Struct, frozen=True, omit_defaults=True):
    """Backtest of sizes by resource, for containers with a day of usage; ratios, null where there is none."""

    cpu: list[SizeOutcomeView] = []
    memory: list[SizeOutcomeView] = []


def print_backtest(
    outcomes: Mapping[str, Sequence[SizeOutcome]], heads: Mapping[str, str], output: Output, names: Sequence[WorkloadId]
) -> None:
    """One table for each resource, under its heading; `names` are the workloads that were replayed."""
    from forecaster.report.printed import Printable, print_as, print_table, print_text

    def table(wide: bool) -> None:  # noqa: FBT001  as `Printable` has it
        for name, rows in outcomes.items():
            print_text(heads[name], "")
            print_table(_columns(rows), wide=wide)
            print_text("")

    views = {name: [_view(outcome) for outcome in rows] for name, rows in outcomes.items()}
    result = Printable(
        table=table,
        document=lambda: SizesBacktestView(**views),
        rows=lambda: [
            {"resource": name, **msgspec.structs.asdict(view)} for name, rows in views.items() for view in rows
        ],
        ids=lambda: names,
    )
    print_as(output, result)


def _columns(rows: Sequence[SizeOutcome]) -> list[PrintedColumn]:
    from forecaster.report.printed import columns_from

    cells = [
        (
            outcome.family,
            outcome.setting,
            _known(outcome.summary.slack, ".2f"),
            str(outcome.summary.over_limit),
            _known(outcome.summary.over_request_share * 100, ".2f", " %"),
            _known(outcome.summary.cut_share * 100, ".2f", " %"),
            str(outcome.summary.changes),
        )
        for outcome in rows
    ]
    return columns_from(BACKTEST_HEADS, cells, (0, 0, 0, 0, 1, 2, 3), texts=2)


def _known(value: float, form: str, unit: str = "") -> str:
    return UNKNOWN_AMOUNT if isnan(value) else f"{value:{form}}{unit}"


def _view(outcome: SizeOutcome) -> SizeOutcomeView:
    amounts = outcome.summary._asdict()
    known = {name: None if isnan(value) else value for name, value in amounts.items()}
    return msgspec.convert({"recommender": outcome.family, "setting": outcome.setting, **known}, SizeOutcomeView)
