"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.config.settings import Settings
    from forecaster.domain.workload import WorkloadId

PrometheusUrl = Annotated[
    str | None, typer.Option("--prometheus", metavar="URL", help="Address of Prometheus; overrides the file.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings and policies, or a folder of such files.")
]
Namespaces = Annotated[
    str | None, typer.Option("--namespaces", metavar="REGEX", help="Only these namespaces, e.g. 'shop|team-.*'.")
]
Instant = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="Evaluate at this instant (RFC 3339) instead of now.")
]
Pattern = Annotated[str, typer.Argument(metavar="[NAMESPACE/NAME]", help="Only these workloads; shell patterns.")]
Demo = Annotated[bool, typer.Option("--demo", help="On the recorded load of the demo.")]


def settings_of(config: Path | None, prometheus: str | None, namespaces: str | None) -> Settings:
    """Settings of the file with the options over it."""
    from forecaster.config.settings import load

    given: dict[str, object] = {}
    if prometheus:
        given["prometheus"] = {"url": prometheus}
    if namespaces:
        given["queries"] = {"namespaces": namespaces}
    return load(config, given)


def matching(ids: Iterable[WorkloadId], pattern: str) -> set[WorkloadId]:
    """Workloads whose `namespace/name` matches a shell pattern; without a slash any namespace does."""
    from fnmatch import fnmatchcase

    wanted = pattern if "/" in pattern else f"*/{pattern}"
    return {id_ for id_ in ids if fnmatchcase(str(id_), wanted)}
