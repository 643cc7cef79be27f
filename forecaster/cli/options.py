"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


# Options in groups: a command takes a dataclass, and the command line has one option for each of its fields.


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its first parameter's type spelled out as options, before its own ones."""
    hints = get_type_hints(command, include_extras=True)
    first, *others = inspect.signature(command).parameters.values()
    group = hints[first.name]
    kinds, names = get_type_hints(group, include_extras=True), [one.name for one in fields(group)]
    spelled = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=kinds[one.name])
        for one in fields(group)
    ]
    own = [one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in others]

    @wraps(command)
    def called(**given: object) -> None:
        command(group(**{name: given.pop(name) for name in names}), **given)

    called.__signature__ = Signature([*spelled, *own])  # type: ignore[attr-defined]  # what inspect, and so typer, reads
    called.__annotations__ = {one.name: one.annotation for one in (*spelled, *own)}
    return called
