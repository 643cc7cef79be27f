"""`forecaster outcome`: what last week's recorded decisions were worth."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from forecaster.cli.options import grouped
from forecaster.cli.replay_options import ReplayOptions, SpanOptions

Json = Annotated[bool, typer.Option("--json", help="Print for machines.")]


@grouped
def outcome(given: SpanOptions, json: Json = False) -> None:
    """Compare the decisions of the ledger with the HPA alone on the load that came: pod-hours, shortage, losses.

    The history is asked of Prometheus, the decisions are read from the database of --config.
    """
    from forecaster.cli.outcome_inputs import decisions_of
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.realised import outcome_of
    from forecaster.report.realised import print_realised

    inputs = inputs_of(ReplayOptions(**asdict(given), from_prometheus=True, no_cache=True))
    decisions = decisions_of(inputs.settings.state, [one.id for one in inputs.traces.workloads], inputs.begin)
    found = outcome_of(
        inputs.traces, decisions, inputs.policies, begin=inputs.begin, until=inputs.until, assumed=inputs.assumed
    )
    print_realised(found, as_json=json)
    if not found.workloads:
        raise typer.Exit(1)
