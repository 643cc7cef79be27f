"""`forecaster explain`: the decision record of a workload in sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster.cli.options import ConfigFile, Instant, PrometheusUrl, matching, settings_of


def explain(
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The workload; shell patterns.")],
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    at: Instant = None,
) -> None:
    """Say how the numbers of a workload came about: inputs, model, quantile, every clamp in order, and why."""
    from forecaster.cli.once import one_cycle
    from forecaster.decisions.explain import explanation
    from forecaster.decisions.hpa_next import next_sync

    outcome = one_cycle(settings_of(config, prometheus, None), at)
    ours = matching((one.id for one in outcome.recommendations), workload)
    if not ours:
        known = ", ".join(sorted(str(one.id) for one in outcome.recommendations)[:10]) or "none at all"
        failures = "".join(f"\n! {failure}" for failure in outcome.report.failures)
        typer.echo(f"No workload matches {workload!r}. Known are: {known}{failures}", err=True)
        raise typer.Exit(1)
    for target, one in zip(outcome.inventory.workloads, outcome.recommendations, strict=True):
        if one.id in ours:
            typer.echo("\n".join([*explanation(one), *("  " + line for line in next_sync(target, one))]))
