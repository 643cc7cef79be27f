"""`forecaster outcome`: what last week's recorded decisions were worth."""

from __future__ import annotations

from dataclasses import asdict

import typer

from forecaster.cli.options import OutputForm, grouped
from forecaster.cli.replay_options import ReplayOptions, SpanOptions
from forecaster.report.formats import Output


@grouped
def outcome(given: SpanOptions, output: OutputForm = Output.TABLE) -> None:
    """Compare the decisions of the ledger with the HPA alone on the load that came: pod-hours, shortage, losses.

    The history is asked of Prometheus, the decisions are read from the database of --config.
    """
    from forecaster.cli.outcome_inputs import decisions_of
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.realised import outcome_of
    from forecaster.report.progress import shown_progress
    from forecaster.report.realised import print_realised

    with shown_progress("outcome") as shown:
        shown.began("history", 0.1)
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
