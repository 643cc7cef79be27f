"""`forecaster explain`: the decision record of a workload in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, Instant, PrometheusUrl, matching, settings_of
from forecaster.cli.recommend import Objects, ServerVersion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.workload import Workload


def explain(
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The workload; shell patterns.")],
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    at: Instant = None,
    objects: Objects = None,
    server_version: ServerVersion = None,
) -> None:
    """Say how the numbers of a workload came about: inputs, model, quantile, every clamp in order, and why."""
    from forecaster.cli.once import one_cycle
    from forecaster.decisions.explain import explanation
    from forecaster.decisions.hpa_next import next_sync

    prove = _prover(objects, server_version)
    outcome = one_cycle(settings_of(config, prometheus, None), at, workload)
    ours = matching((one.id for one in outcome.recommendations), workload)
    if not ours:
        known = ", ".join(sorted(str(one.id) for one in outcome.recommendations)[:10]) or "none at all"
        failures = "".join(f"\n! {failure}" for failure in outcome.report.failures)
        typer.echo(f"No workload matches {workload!r}. Known are: {known}{failures}", err=True)
        raise typer.Exit(1)
    for target, one in zip(outcome.inventory.workloads, outcome.recommendations, strict=True):
        if one.id in ours:
            lines = (*next_sync(target, one), *prove(target, one))
            typer.echo("\n".join([*explanation(one), *("  " + line for line in lines)]))


def _prover(objects: list[Path] | None, server: str | None) -> Callable[[Workload, Recommendation], list[str]]:
    """What the cluster would say to the sizes of a workload; nothing where its objects are not given."""
    if not objects:
        return lambda _workload, _one: []

    from forecaster.cli.look import cluster_from
    from forecaster.output.advice_table import finding_lines
    from forecaster.vertical.advice.advice import advise

    cluster = cluster_from(objects, server)
    return lambda workload, one: finding_lines(advise(workload, one, cluster))
