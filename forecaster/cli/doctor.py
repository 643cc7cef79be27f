"""`forecaster doctor`: check everything that is needed, and give the remedy for each fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from forecaster.cli.options import SourceOptions, grouped, known_workloads
from forecaster.domain.amounts import counted
from forecaster.domain.report import Check
from forecaster.report.formats import DocumentOutput

if TYPE_CHECKING:
    from forecaster.config.settings import Settings


class ChecksView(msgspec.Struct, frozen=True):
    """Checks in the order in which they were made."""

    checks: list[Check]


@grouped
def doctor(
    given: SourceOptions,
    output: Annotated[DocumentOutput, typer.Option("--output", "-o", help="Output format.")] = DocumentOutput.TEXT,
) -> None:
    """Try address, authentication, queries, sample age, history length, clock, rights and store; say what is wrong."""
    from forecaster.app.clock import current
    from forecaster.app.live_facts import live_checks
    from forecaster.app.rights import fallback_checks, rights_checks
    from forecaster.report.progress import shown_progress
    from forecaster.sources.probe import probe
    from forecaster.store.state import probe_state

    settings = given.settings
    source = (settings.prometheus, settings.queries, current(), settings.signals, settings.cycle.delay)
    tried: dict[str, Callable[[], Iterable[Check]]] = {
        "Prometheus": partial(probe, *source),
        "live facts": partial(live_checks, settings),
        "rights": partial(rights_checks, settings),
        "fallbacks": partial(fallback_checks, settings),
        "state": partial(probe_state, settings.state.directory),
        "overrides": partial(_overrides, settings, whole=not given.namespace),
    }
    checks: list[Check] = []
    with shown_progress("doctor") as shown:
        for i, (stage, check) in enumerate(tried.items()):
            shown.began(stage, i / len(tried))
            checks += check()
    print_checks(checks, output)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _overrides(settings: Settings, *, whole: bool) -> list[Check]:
    """Check for overrides that match no workload; none if workloads cannot be read, as another check says."""
    from forecaster.errors import SourceError

    policies = settings.policies
    if not policies.overrides or not whole:
        return []
    try:
        idle = policies.without_a_workload(known_workloads(settings))
    except SourceError:
        return []
    remedy = "mend namespace, kind and name of its `match`, or drop it; `forecaster once -o name` lists the workloads"
    if not idle:
        return [Check("overrides", ok=True, detail=f"each of {len(policies.overrides)} matches a workload")]
    return [Check("overrides", ok=False, detail="; ".join(idle), remedy=remedy)]


def print_checks(checks: Sequence[Check], output: DocumentOutput) -> None:
    """Print one line for each check, and the remedy of those that failed."""
    from forecaster.report.printed import print_json, print_text, print_yaml

    if output is DocumentOutput.TEXT:
        print_text(*_lines(checks), hang=7)
        print_text(verdict(checks))
    else:
        (print_json if output is DocumentOutput.JSON else print_yaml)(ChecksView(list(checks)))


def verdict(checks: Sequence[Check]) -> str:
    """Say whether forecaster can work here, and which checks failed."""
    failed = [check.name for check in checks if not check.ok]
    if failed:
        return f"Not ready: {len(failed)} of {counted(len(checks), 'check')} failed: {', '.join(failed)}"
    return f"Ready: {counted(len(checks), 'check')} passed"


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    for check in checks:
        yield f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}"
        if not check.ok:
            yield f"       → {check.remedy}"
