"""`forecaster why-not`, `history`, `diff`: decisions beside what came, over time, and under other policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import (
    ConfigFile,
    CycleOptions,
    Demo,
    Instant,
    Named,
    Namespace,
    OutputForm,
    Pattern,
    PrometheusUrl,
    SourceOptions,
    chosen,
    duration_of,
    finished,
    grouped,
    narrowed,
    settings_of,
    workload_names,
)
from forecaster.cli.streams import tell
from forecaster.domain.amounts import counted
from forecaster.errors import ConfigError, Fault, SourceError
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signals
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Source
    from forecaster.store.ledger import Decision, SqlLedger
    from forecaster.store.state import StateSettings

AFTER = timedelta(minutes=30)
"""Time after the decision in which `why-not` looks for its effect."""


@grouped
def why_not(given: CycleOptions, workload: Named) -> None:
    """Say why a workload did not scale at an instant: demand, forecast, gate, clamps, bounds, mode, HPA; and what came.

    The decision is made again of what Prometheus has of that instant, by the policy of --config.
    """
    from forecaster.app.clock import current
    from forecaster.cli.once import cycle_run, workloads_of
    from forecaster.domain.window import MINUTE, last_multiple
    from forecaster.report.printed import print_text
    from forecaster.report.progress import shown_progress
    from forecaster.report.recommendations import failure_lines
    from forecaster.sources.factory import opened

    with given.staged(given.at, demo=given.demo) as (settings, now):
        with shown_progress("why-not") as shown:
            cycle, outcome = cycle_run(settings, now, workload, shown, donors=given.donors)
        ids = workloads_of(outcome, workload, settings)
        for line in failure_lines(outcome):
            tell(line)
        if not ids:
            raise typer.Exit(1)
        begin = outcome.report.at
        until = min(begin + AFTER, last_multiple(current() - MINUTE, MINUTE))
        with opened(narrowed(settings, workload)) as source:
            largest = cache(partial(largest_between, source, settings.signal_table, begin, until))
            for target, recommendation in zip(outcome.inventory.workloads, outcome.recommendations, strict=True):
                if target.id in ids:
                    came = (f"  - {line}" for line in what_came(recommendation, until, largest))
                    print_text(*why_lines(target, recommendation, cycle.policies.of(recommendation.id)), *came)
    finished(shown)


def why_lines(target: Workload, recommendation: Recommendation, policy: Policy) -> list[str]:
    """The count that was recommended, and each thing that kept it from being higher, in the order of the decision."""
    now, desired = recommendation.replicas_now, recommendation.recommended_replicas
    word = "more" if desired > now else "fewer" if desired < now else "as many"
    at = f"{recommendation.id} at {recommendation.at:%Y-%m-%d %H:%M} UTC"
    head = f"{at}: {counted(now, 'pod')}, {desired} recommended ({word})"
    lines = (*_decision(recommendation), *_effect(target, recommendation, policy))
    return [head, *(f"  - {' '.join(line.splitlines())}" for line in lines)]


def _decision(recommendation: Recommendation) -> Iterator[str]:
    from forecaster.domain.amounts import amount

    for view in recommendation.signals:
        if view.measured is not None and view.reactive_replicas is not None:
            few = "no more" if view.reactive_replicas <= recommendation.replicas_now else "more"
            needs = f"for {counted(view.reactive_replicas, 'pod')}: {few} than there are"
            yield f"{view.signal} measured {amount(view.measured, view.unit)}, {needs}"
        if view.forecast is not None and view.forecast_replicas is not None:
            pods = counted(view.forecast_replicas, "pod")
            text = f"{view.signal} forecast {amount(view.forecast.peak, view.unit)}, for {pods}"
            yield text + (f"; forecast {recommendation.gate_reason}" if recommendation.gate_reason else "")
        if view.note:
            yield f"{view.signal}: {view.note}"
    yield from (f"{clamp.rule}: {clamp.before} → {clamp.after}, {clamp.why}" for clamp in recommendation.clamps)
    yield f"{recommendation.replicas.reason}: {recommendation.replicas.message}"


def _effect(target: Workload, recommendation: Recommendation, policy: Policy) -> Iterator[str]:
    """Yield the steps between a recommendation and pods."""
    from forecaster.domain.published import own_metric

    hpa = target.autoscaler
    if hpa is None:
        yield "no HPA scales it: the recommendation is for its owner"
        return
    if recommendation.recommended_replicas >= hpa.max_replicas:
        yield f"HPA {hpa.name}: maxReplicas is {hpa.max_replicas}"
    if policy.mode == "observe":
        yield "mode observe: nothing reads the number; `mode: publish` or `floor` lets it act"
    elif policy.mode == "publish" and not any(own_metric(each.metric) for each in hpa.targets):
        yield f"HPA {hpa.name} reads no metric of ours: docs/integrate.md"


def what_came(
    recommendation: Recommendation, until: datetime, largest: Callable[[str], Mapping[WorkloadId, float]]
) -> list[str]:
    """The largest demand after a decision, signal by signal, and the pods that it would have filled."""
    from forecaster.domain.amounts import amount

    lines = []
    for view in recommendation.signals:
        peak = largest(view.signal).get(recommendation.id, math.nan)
        if view.pod and math.isfinite(peak):
            pods = counted(math.ceil(peak / view.pod), "pod")
            lines.append(
                f"what came until {until:%H:%M} UTC: {view.signal} {amount(peak, view.unit)}, which fills {pods}"
            )
    return lines


def largest_between(
    source: Source, signals: Signals, begin: datetime, until: datetime, name: str
) -> dict[WorkloadId, float]:
    """Largest demand of every workload by one signal, after `begin`; nothing where it cannot be read."""
    import numpy as np

    from forecaster.domain.window import MINUTE

    signal = signals.by_name.get(name)
    largest: dict[WorkloadId, float] = {}
    if signal is None or until <= begin:
        return largest
    try:
        for block in source.history(signal, begin + MINUTE, until, MINUTE):
            peaks = np.fmax.reduce(block.values, axis=1, initial=np.nan).tolist()
            for id_, peak in zip(block.ids, peaks, strict=True):
                largest[id_] = float(np.fmax(largest.get(id_, np.nan), peak))
    except SourceError:
        return {}
    return largest


def history(
    workload: Pattern = "*",
    config: ConfigFile = None,
    length: Annotated[str, typer.Option("--length", metavar="DURATION", help="How far to look back.")] = "1d",
    output: OutputForm = Output.TABLE,
) -> None:
    """List the changes of recorded decisions: when, from how many pods to how many, and why.

    They are read from the database of --config, in which the service keeps them.
    """
    from forecaster.app.clock import current
    from forecaster.report.decided import print_recorded

    settings = settings_of(config)
    since = current() - duration_of("--length", length)
    with closing(recorded_ledger(settings.state)) as ledger:
        if not (latest := ledger.latest()):
            raise ledger.nothing_recorded()
        changes = ledger.changes_of(chosen(latest, workload), since)
    recorded = [(id_, decision) for id_, decisions in changes.items() for decision in decisions if decision.at >= since]
    print_recorded(sorted(recorded, key=lambda each: (each[1].at, each[0])), length, output)


def recorded_ledger(state: StateSettings) -> SqlLedger:
    """Return the database in which the service stores decisions; it is not created, upgraded or written to."""
    from forecaster.app.serve import database_address
    from forecaster.store.ledger import SqlLedger

    return SqlLedger(database_address(state), keep=state.keep, only_read=True)


def recorded_changes(
    state: StateSettings, ids: Iterable[WorkloadId], since: datetime
) -> dict[WorkloadId, list[Decision]]:
    """Return the recorded changes of decisions; none without a ledger, nor, with a word on it, if it is unreadable."""
    from forecaster.errors import StoreError

    try:
        if not (state.database or state.database_file or (state.directory / "ledger.sqlite").exists()):
            return {}
        with closing(recorded_ledger(state)) as ledger:
            return ledger.changes_of(ids, since)
    except (StoreError, OSError) as error:
        tell(f"! the recorded decisions are left out: {error}")
        return {}


def diff(
    config: Annotated[Path, typer.Argument(metavar="FROM", exists=True, help="Settings of now, or a folder.")],
    other: Annotated[Path, typer.Argument(metavar="TO", exists=True, help="Settings to compare, or a folder.")],
    prometheus: PrometheusUrl = None,
    namespace: Namespace = None,
    workload: Annotated[
        str, typer.Option("--workload", metavar="PATTERN", help="Such as 'shop/*'.", autocompletion=workload_names)
    ] = "*",
    output: OutputForm = Output.TABLE,
    at: Instant = None,
    demo: Demo = False,
) -> None:
    """Decide once under the policies of two files, and print what they decide differently. Exit code 1 if anything is.

    Signals and queries are those of the first file; both decide on what was read once.
    """
    from forecaster.cli.once import cycle_run, workloads_of
    from forecaster.report.decided import numbers_of, print_differences
    from forecaster.report.progress import shown_progress
    from forecaster.report.recommendations import failure_lines

    second = settings_of(other, prometheus, namespace)
    first = SourceOptions(prometheus=prometheus, config=config, namespace=namespace)
    with first.staged(at, demo=demo) as (settings, now), shown_progress("diff") as shown:
        if settings.signals != second.signals:
            raise ConfigError("command line", [Fault("TO", "signals", "the signals of both files have to be the same")])
        cycle, outcome = cycle_run(settings, now, workload, shown)
        otherwise = cycle.what_if(second.policies, outcome.report.at)
        ids = workloads_of(outcome, workload, settings)
    for line in failure_lines(outcome):
        tell(line)
    if not ids:
        raise typer.Exit(1)
    pairs = [
        (before, after)
        for before, after in zip(outcome.recommendations, otherwise, strict=True)
        if before.id in ids and numbers_of(before) != numbers_of(after)
    ]
    print_differences(pairs, len(ids), output)
    finished(shown)
    if pairs:
        raise typer.Exit(1)
