"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from forecaster.cli.streams import tell
from forecaster.report.formats import Output

INTERRUPTED = 130

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.client import ApiClient
    from forecaster.report.progress import ShownProgress


def workload_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names for the shell's completion, of the Prometheus that is named before; none where it does not answer."""
    from forecaster.errors import ForecasterError

    config, prometheus, namespace = (ctx.params.get(name) for name in ("config", "prometheus", "namespace"))
    try:
        ids = known_workloads(settings_of(config, prometheus, namespace), patient=False)
    except ForecasterError:
        return []
    return [name for name in map(str, ids) if name.startswith(incomplete)]


def existing_file(flag: str, about: str) -> Any:
    """Return the option of a file that has to be there."""
    return typer.Option(flag, metavar="FILE", exists=True, dir_okay=False, help=about)


def _alone(ctx: typer.Context, value: Any) -> Any:
    """Refuse --prometheus beside --demo, in either order: the one would be ignored."""
    if value and (ctx.params.get("prometheus") or ctx.params.get("demo")):
        raise typer.BadParameter("reads the recorded load; leave --prometheus out, or --demo", param_hint="--demo")
    return value


PrometheusUrl = Annotated[
    str | None,
    typer.Option("--prometheus", metavar="URL", help="Address of Prometheus; wins over --config.", callback=_alone),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", exists=True, help="Settings and policies, or a folder of such files."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAMES", help="Only these namespaces, e.g. shop or 'shop,team-*'."),
]
Instant = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Evaluate at this instant (RFC 3339, or 09:02 UTC) instead of now."),
]
Pattern = Annotated[
    str,
    typer.Argument(
        metavar="NAMESPACE/NAME", help="Only these workloads, e.g. 'shop/*'.", autocompletion=workload_names
    ),
]
Named = Annotated[
    str, typer.Argument(metavar="NAMESPACE/NAME", help="The workload; or e.g. 'shop/*'.", autocompletion=workload_names)
]
Donors = Annotated[
    bool,
    typer.Option("--donors", help="Read all workloads, so that those under two days old can borrow forecasts."),
]
Demo = Annotated[
    bool, typer.Option("--demo", help="Read the demo's recorded load instead of a Prometheus.", callback=_alone)
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig of the cluster; default: $KUBECONFIG, ~/.kube/config, this pod's account.",
    ),
]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="In the kubeconfig; default: its current one.")]
OutputForm = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]


def settings_of(config: Path | None, prometheus: str | None = None, namespace: str | None = None) -> Settings:
    """Settings of the file with the options over it."""
    from forecaster.config.settings import load

    return load(config, given_of(prometheus, namespace))


def given_of(prometheus: str | None, namespace: str | None) -> dict[str, object]:
    """Return the options as a layer of settings."""
    from forecaster.sources.promql import expression_of

    given: dict[str, object] = {"prometheus": {"url": prometheus}} if prometheus else {}
    if namespace:
        given["queries"] = {"namespaces": "|".join(expression_of(name.strip()) for name in namespace.split(","))}
    return given


def api_client(kubeconfig: Path | None, context: str) -> ApiClient:
    """A client of the cluster that is chosen as kubectl chooses it.

    Raises:
        ClientConfigError: there is no way to the API server.
    """
    from forecaster.kube.client import ApiClient
    from forecaster.kube.config import sought_config_source

    return ApiClient(sought_config_source(kubeconfig, context)).configured()


def matching(ids: Iterable[WorkloadId], pattern: str) -> set[WorkloadId]:
    """Return the workloads with a `namespace/name` that matches a pattern; without a slash it matches any namespace."""
    from fnmatch import fnmatchcase

    qualified = pattern if "/" in pattern else f"*/{pattern}"
    return {id_ for id_ in ids if fnmatchcase(str(id_), qualified)}


def in_namespaces(names: str | None) -> Callable[[str], bool]:
    """Whether a namespace is one of those in `--namespace`."""
    from fnmatch import fnmatchcase

    patterns = [name.strip() for name in (names or "*").split(",")]
    return lambda name: any(fnmatchcase(name, pattern) for pattern in patterns)


def of_namespaces(ids: Iterable[WorkloadId], names: str | None) -> list[WorkloadId]:
    """Return the workloads of the namespaces in `--namespace`; without that option all of them.

    Raises:
        UnknownName: there is none.
    """
    from forecaster.errors import UnknownName

    each, meant = list(ids), in_namespaces(names)
    inside = [id_ for id_ in each if meant(id_.namespace)]
    if names and not inside:
        raise UnknownName("namespace", names, {id_.namespace for id_ in each})
    return inside


def narrowed(settings: Settings, pattern: str) -> Settings:
    """Return settings with queries restricted to the workloads of a pattern: one workload costs one workload."""
    namespace, _, name = pattern.rpartition("/")
    return settings.model_copy(update={"queries": settings.queries.about(namespace or "*", name)})


def chosen(
    ids: Iterable[WorkloadId], pattern: str, settings: Settings | None = None, at: datetime | None = None
) -> set[WorkloadId]:
    """Return the workloads of a pattern.

    Raises:
        UnknownName: there is none, or none in these namespaces, and no failure explains it; near names are those of
            `ids`, or of all workloads in Prometheus where only this pattern was read.
    """
    from forecaster.errors import UnknownName

    matches = matching(ids, pattern)
    if not matches:
        known = known_workloads(settings, at) if settings else ids
        if settings and not known:
            refuse_namespaces(settings, at)
        raise UnknownName("workload", pattern, map(str, known))
    return matches


def refuse_namespaces(settings: Settings, at: datetime | None = None) -> None:
    """Refuse namespaces in which no workload was read.

    Raises:
        UnknownName: there are others.
    """
    from forecaster.errors import UnknownName

    namespaces, every = settings.queries.namespaces, type(settings.queries).model_fields["namespaces"].default
    if namespaces == every:
        return
    wider = settings.model_copy(update={"queries": settings.queries.model_copy(update={"namespaces": every})})
    if known := {id_.namespace for id_ in known_workloads(wider, at)}:
        raise UnknownName("namespace", namespaces.replace("|", ","), known)


def known_workloads(settings: Settings, at: datetime | None = None, *, patient: bool = True) -> list[WorkloadId]:
    """Every workload, of a Prometheus by one question; without patience where a shell waits for its completion.

    Raises:
        SourceError: there was no answer.
    """
    from contextlib import closing

    from forecaster.app.clock import current
    from forecaster.domain.workload import WorkloadId
    from forecaster.sources.factory import opened, prometheus
    from forecaster.sources.wire import at_instant

    if settings.source.kind != "prometheus":
        with opened(settings) as other:
            return sorted(other.inventory(at or current()).ids)
    how = settings.prometheus
    if not patient:
        how = how.model_copy(update={"retries": 0, "connect_timeout_seconds": 1.0, "read_timeout_seconds": 2.0})
    with closing(prometheus(how, settings.queries)) as source:
        rows = source.rows(at_instant("replicas", settings.queries.inventory()["replicas"], at or current()))
    named = ("namespace", "workload_kind", "workload")
    return sorted({WorkloadId(*(row.labels.get(label, "") for label in named)) for row in rows})


MAX_DURATION = timedelta(days=36_500)
"""Longest duration on the command line: an instant so long ago can still be represented."""


def duration_of(option: str, text: str) -> timedelta:
    """Return the duration of an option; a length is longer than zero.

    Raises:
        ConfigError: it is none.
    """
    from forecaster.domain.settings import parse_duration
    from forecaster.errors import ConfigError, Fault

    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise ConfigError("command line", [Fault(option, text, str(error))]) from error
    if not isinstance(duration, timedelta) or duration > MAX_DURATION or (option == "--length" and not duration):
        raise ConfigError("command line", [Fault(option, text, "must be a duration like 90s, 5m or 7d")])
    return duration


def tell_idle_overrides(policies: Policies, ids: Iterable[WorkloadId]) -> None:
    """A line on standard error for each override that no workload has; `ids` are all there are."""
    for line in policies.without_a_workload(ids):
        tell(f"! {line}")


def finished(shown: ShownProgress) -> None:
    """End a command that Ctrl-C cut short, after its partial results have been printed.

    Raises:
        typer.Exit: with the code of an interrupted command.
    """
    if shown.interrupted_in:
        tell(f"Interrupted in {shown.interrupted_in}: the results above are those until then.")
        raise typer.Exit(INTERRUPTED)


# Options in groups: a command takes a dataclass, and the command line has one option for each of its fields.


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """A Prometheus, and the settings that it is put into."""

    prometheus: PrometheusUrl = None
    config: ConfigFile = None
    namespace: Namespace = None

    @property
    def settings(self) -> Settings:
        """Settings of the file with the options over it."""
        return settings_of(self.config, self.prometheus, self.namespace)

    @contextmanager
    def staged(self, at: str | None, *, demo: bool) -> Iterator[tuple[Settings, str | None]]:
        """Return the settings and the instant; with `demo` those of the recorded load, served while the block lasts."""
        if not demo:
            yield self.settings, at
            return
        from forecaster.app.demo import settings_for, staged

        with staged() as stage:
            stated = self.config is not None or self.namespace
            settings = replace(self, prometheus=stage.url).settings if stated else settings_for(stage.url)
            yield settings, at or stage.begin.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions(SourceOptions):
    """A Prometheus at an instant, or the recorded load of the demo in its place."""

    at: Instant = None
    demo: Demo = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOptions(DemoOptions):
    """The source of one cycle, and whether donors are read."""

    donors: Donors = False


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its first parameter's type spelled out as options, before its own ones."""
    hints = get_type_hints(command, include_extras=True)
    first, *others = inspect.signature(command).parameters.values()
    group = hints[first.name]
    kinds, names = get_type_hints(group, include_extras=True), [field.name for field in fields(group)]
    spelled = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name])
        for field in fields(group)
    ]
    own = [parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]) for parameter in others]

    @wraps(command)
    def called(**given: object) -> None:
        command(group(**{name: given.pop(name) for name in names if name in given}), **given)

    called.__signature__ = Signature([*spelled, *own])  # type: ignore[attr-defined]  # what inspect, and so typer, reads
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*spelled, *own)}
    return called
