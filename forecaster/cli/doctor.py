"""`forecaster doctor`: try each thing that is needed, and say what to do about what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, Namespace, PrometheusUrl, known_workloads, settings_of
from forecaster.report.formats import DocumentOutput

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.domain.report import Check


def doctor(
    prometheus: PrometheusUrl = None,
    config: ConfigFile = None,
    namespace: Namespace = None,
    output: Annotated[DocumentOutput, typer.Option("--output", "-o", help="How to print.")] = DocumentOutput.TEXT,
) -> None:
    """Try address, authentication, queries, sample age, history length, clock, rights and store; say what is wrong."""
    from forecaster.app.clock import current
    from forecaster.app.compose import live_checks
    from forecaster.app.rights import rights_checks
    from forecaster.report.checks import print_checks
    from forecaster.sources.probe import probe
    from forecaster.store.state import probe_state

    settings = settings_of(config, prometheus, namespace)
    checks = [
        *probe(settings.prometheus, settings.queries, current(), settings.signals, settings.cycle.delay),
        *live_checks(settings),
        *rights_checks(settings),
        *probe_state(settings.state.directory),
        *([] if namespace else _overrides(settings)),
    ]
    print_checks(checks, output)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _overrides(settings: Settings) -> list[Check]:
    """Overrides that match nothing are mostly misspelt; where the workloads cannot be read another check says so."""
    from forecaster.domain.report import Check
    from forecaster.errors import SourceError

    policies = settings.policies
    if not policies.overrides:
        return []
    try:
        idle = policies.without_a_workload(known_workloads(settings))
    except SourceError:
        return []
    remedy = "mend namespace, kind and name of its `match`, or drop it; `forecaster once -o name` lists the workloads"
    if not idle:
        return [Check("overrides", ok=True, detail=f"each of {len(policies.overrides)} matches a workload")]
    return [Check("overrides", ok=False, detail="; ".join(idle), remedy=remedy)]
