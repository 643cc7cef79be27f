"""`forecaster doctor`: try each thing that is needed, and say what to do about what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from forecaster.cli.options import ConfigFile, Namespaces, PrometheusUrl, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.domain.report import Check


def doctor(prometheus: PrometheusUrl = None, config: ConfigFile = None, namespaces: Namespaces = None) -> None:
    """Try address, authentication, every query, sample age, history length, clock and store; say what is wrong."""
    from forecaster.app.clock import current
    from forecaster.sources.probe import probe
    from forecaster.store.state import probe_state

    settings = settings_of(config, prometheus, namespaces)
    checks = [
        *probe(settings.prometheus, settings.queries, current(), settings.signals),
        *probe_state(settings.state.directory),
    ]
    typer.echo("\n".join(_lines(checks)))
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _lines(checks: Iterable[Check]) -> Iterable[str]:
    for check in checks:
        yield f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}"
        if not check.ok:
            yield f"       → {check.remedy}"
