"""`forecaster explain`: the decision record of a workload in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, Instant, PrometheusUrl, matching, settings_of
from forecaster.cli.recommend import Objects, ServerVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from forecaster.cycle.run import Cycle, Outcome
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.vertical.admission.cluster import Cluster


def explain(
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The workload; shell patterns.")],
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    at: Instant = None,
    joint: Annotated[
        bool, typer.Option("--joint", help="Say, too, what count and size chosen together would be.")
    ] = False,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Say, too, what another policy would decide, e.g. quantile=0.95 or horizontal.lead_time=5m.",
        ),
    ] = None,
    objects: Objects = None,
    server_version: ServerVersion = None,
) -> None:
    """Say how the numbers of a workload came about: inputs, model, quantile, every clamp in order, and why."""
    from forecaster.cli.once import cycle_run
    from forecaster.horizontal.explain import explanation
    from forecaster.horizontal.hpa_next import next_sync
    from forecaster.publish.rows import encoded_readers, offered_cycle
    from forecaster.publish.values import values_for

    cluster = _cluster(objects, server_version)
    prove = _prover(cluster)
    cycle, outcome = cycle_run(settings_of(config, prometheus, None), at, workload)
    ours = matching((one.id for one in outcome.recommendations), workload)
    if not ours:
        known = ", ".join(sorted(str(one.id) for one in outcome.recommendations)[:10]) or "none at all"
        failures = "".join(f"\n! {failure}" for failure in outcome.report.failures)
        typer.echo(f"No workload matches {workload!r}. Known are: {known}{failures}", err=True)
        raise typer.Exit(1)
    together = _together(cycle, outcome, cluster) if joint else {}
    policies = [cycle.policies.of(one.id) for one in outcome.recommendations]
    offers = offered_cycle(outcome.report.at, outcome.recommendations, policies)
    otherwise = cycle.what_if(with_changes(cycle.policies, changed), outcome.report.at) if changed else None
    for place, target in enumerate(outcome.inventory.workloads):
        if target.id not in ours:
            continue
        one = outcome.recommendations[place]
        signal = policies[place].horizontal.demand_signal
        offered = values_for(offers.offer(place, encoded_readers(one.targets)), one.targets, one.at, signal)
        lines = (*next_sync(target, one, offered), *prove(target, one), *together.get(one.id, ()))
        typer.echo("\n".join([*explanation(one), *("  " + line for line in lines)]))
        if otherwise is not None:
            typer.echo("\n".join([f"what if {', '.join(changed or ())}", *explanation(otherwise[place])[1:]]))


def with_changes(policies: Policies, changed: Sequence[str]) -> Policies:
    """Policies with these settings over every workload; a name without a dot is one of `policy.horizontal`.

    Raises:
        ConfigError: a change is not `NAME=VALUE`, or no policy can have it.
    """
    import yaml
    from pydantic import ValidationError

    from forecaster.config.faults import faults_of
    from forecaster.domain.policies import Policies, merged
    from forecaster.domain.policy import Policy, PolicySelector
    from forecaster.errors import ConfigError, Fault

    fragment: dict[str, object] = {}
    for one in changed:
        name, equals, value = one.partition("=")
        if not (name and equals):
            raise ConfigError("--set", [Fault("--set", one, "NAME=VALUE is expected, e.g. quantile=0.95")])
        *sections, field = name.split(".") if "." in name else ("horizontal", name)
        nested: object = yaml.safe_load(value)
        for key in reversed([*sections, field]):
            nested = {key: nested}
        fragment = merged(fragment, nested)  # type: ignore[arg-type]  # a mapping after at least one section
    try:
        Policy.model_validate(merged(policies.defaults.model_dump(), fragment))
    except ValidationError as error:
        raise ConfigError("--set", faults_of(error)) from error
    return Policies(policies.defaults, (*policies.overrides, (PolicySelector(), fragment)), signals=policies.signals)


def _cluster(objects: list[Path] | None, server: str | None) -> Cluster | None:
    """From the files of its objects; None where they are not given."""
    if not objects:
        return None

    from forecaster.cli.look import cluster_from

    return cluster_from(objects, server)


def _together(cycle: Cycle, outcome: Outcome, cluster: Cluster | None) -> dict[WorkloadId, list[str]]:
    """Count and size together, in a line for each workload."""
    from forecaster.cli.look import Look
    from forecaster.report.advice_table import joint_line
    from forecaster.vertical.admission.cluster import Cluster as Known
    from forecaster.vertical.sizing.joint import ResourceCosts

    seen = Look(outcome, cycle, cluster or Known())
    return {id_: [f"together: {joint_line(one)}"] for id_, one in seen.joint(ResourceCosts()).items()}


def _prover(cluster: Cluster | None) -> Callable[[Workload, Recommendation], list[str]]:
    """What the cluster would say to the sizes of a workload; nothing where its objects are not given."""
    if cluster is None:
        return lambda _workload, _one: []

    from forecaster.report.advice_table import finding_lines
    from forecaster.vertical.admission.advice import advise

    return lambda workload, one: finding_lines(advise(workload, one, cluster))
