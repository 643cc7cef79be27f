"""`forecaster outcome`: what last week's recorded decisions were worth."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster.cli.options import ConfigFile, Namespaces, Pattern, PrometheusUrl


def outcome(
    workload: Pattern = "*",
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    namespaces: Namespaces = None,
    length: Annotated[str, typer.Option("--length", metavar="DURATION", help="How much, up to the end.")] = "7d",
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="End of the time (RFC 3339).")] = None,
    start_up: Annotated[
        list[str] | None,
        typer.Option("--start-up", metavar="DURATION", help="Until a pod serves; several are equally likely."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Compare the decisions of the ledger with the HPA alone on the load that came: pod-hours, shortage, losses.

    The history is asked of Prometheus, the decisions are read from the database of --config.
    """
    from forecaster.cli.options import settings_of
    from forecaster.cli.outcome_inputs import decisions_of
    from forecaster.cli.replay_inputs import Options, inputs_of
    from forecaster.output.replay.realised import print_realised
    from forecaster.replay.realised import outcome_of

    settings = settings_of(config, prometheus, namespaces)
    options = Options(
        settings, workload, from_prometheus=True, length=length, until=until, start_ups=start_up or [], caching=False
    )
    inputs = inputs_of(options)
    decisions = decisions_of(settings.state, [one.id for one in inputs.traces.workloads], inputs.begin)
    found = outcome_of(
        inputs.traces, decisions, inputs.policies, begin=inputs.begin, until=inputs.until, terms=inputs.terms
    )
    print_realised(found, as_json=json)
    if not found.workloads:
        raise typer.Exit(1)
