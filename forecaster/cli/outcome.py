"""`forecaster outcome`: what last week's recorded decisions were worth."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import typer

from forecaster.cli.options import OutputForm, grouped
from forecaster.cli.replay_options import ReplayOptions, SpanOptions
from forecaster.report.formats import Output

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.realised import DecidedCount
    from forecaster.store.settings import StateSettings

HISTORY_BEFORE = timedelta(days=30)
"""A count that has not changed for long was decided long ago."""


@grouped
def outcome(given: SpanOptions, output: OutputForm = Output.TABLE) -> None:
    """Compare the decisions of the ledger with the HPA alone on the load that came: pod-hours, shortage, losses.

    The history is asked of Prometheus, the decisions are read from the database of --config.
    """
    from forecaster.cli.decisions import recorded_ledger
    from forecaster.cli.options import settings_of
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.realised import outcome_of
    from forecaster.report.progress import shown_progress
    from forecaster.report.realised import print_realised

    with shown_progress("outcome") as shown:
        shown.began("history", 0.1)
        recorded_ledger(settings_of(given.config, given.prometheus, None).state).close()  # before the work
        inputs = inputs_of(ReplayOptions(**asdict(given), from_prometheus=True, no_cache=True))
        shown.began("decisions", 0.5)
        decisions = decisions_of(inputs.settings.state, [one.id for one in inputs.traces.workloads], inputs.begin)
        shown.began("replay", 0.6)
        found = outcome_of(
            inputs.traces, decisions, inputs.policies, begin=inputs.begin, until=inputs.until, assumed=inputs.assumed
        )
    print_realised(found, output)
    if not found.workloads:
        raise typer.Exit(1)


def decisions_of(
    settings: StateSettings, workloads: Iterable[WorkloadId], begin: datetime
) -> dict[WorkloadId, list[DecidedCount]]:
    """Every change of a decision since `begin`, and the one that was in force then.

    Raises:
        StoreError: the database cannot be read.
    """
    from forecaster.cli.decisions import recorded_ledger
    from forecaster.replay.realised import DecidedCount

    ledger = recorded_ledger(settings)
    try:
        kept = {id_: ledger.decisions_of(id_, begin - HISTORY_BEFORE) for id_ in workloads}
    finally:
        ledger.close()
    return {id_: [DecidedCount(one.at, one.decided.replicas) for one in some] for id_, some in kept.items()}
