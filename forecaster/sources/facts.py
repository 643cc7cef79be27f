"""Meaning of the answer to each query of the inventory, by workload or HPA, and of container queries by container."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from forecaster.domain.workload import (
    ContainerBlock,
    ContainerFacts,
    ContainerId,
    NamedContainer,
    Resources,
    Target,
    TargetType,
    WorkloadId,
    may_be_a_name,
    scaled_workload,
)
from forecaster.sources.blocks import each_once, matrix_of, owner_of, single_values, workload_of
from forecaster.sources.pacing import Grid
from forecaster.sources.promql import CARRIED
from forecaster.sources.wire import QueryAnswer

TARGET_WORDS = {
    "utilization": (TargetType.UTILIZATION, 100.0),
    "average": (TargetType.AVERAGE_VALUE, 1.0),
    "value": (TargetType.VALUE, 1.0),
}
"""Target types of kube-state-metrics: ours, and its unit per unit of ours."""


class InstantRow(NamedTuple):
    """One series of an instant answer."""

    labels: Mapping[str, str]
    value: float


class HpaName(NamedTuple):
    """Identity of an HPA."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Identity(NamedTuple):
    """Workload and pod that a series belongs to."""

    several: frozenset[WorkloadId] = frozenset()
    """Workloads reported as more than one object: their sums are the sums of all these objects."""
    exported: int = 0
    """Number of pods reported under the names of their exporters."""
    clusters: int = 0
    """Number of clusters, by the creation times of their kube-system; 0 where none is reported."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Answers to the queries about specifications, by name; empty until they are read."""

    pod_requests: Mapping[WorkloadId, Mapping[str, float]] = field(default_factory=dict)
    pod_limits: Mapping[WorkloadId, Mapping[str, float]] = field(default_factory=dict)
    hpa_scale_targets: Mapping[WorkloadId, Sequence[HpaName]] = field(default_factory=dict)
    hpa_min_replicas: Mapping[HpaName, float] = field(default_factory=dict)
    hpa_max_replicas: Mapping[HpaName, float] = field(default_factory=dict)
    hpa_metric_targets: Mapping[HpaName, Sequence[Target]] = field(default_factory=dict)
    hpa_containers: Mapping[WorkloadId, tuple[NamedContainer, ...]] | None = None
    """None until it is read."""
    state_metrics: Sequence[str] = ()
    identity: Identity = field(default_factory=Identity)

    @property
    def named(self) -> frozenset[str]:
        """The containers that HPAs name."""
        every = (target.container for targets in self.hpa_metric_targets.values() for target in targets)
        return frozenset(name for name in every if name)

    def renewed(self, name: str, rows: Sequence[InstantRow]) -> Facts:
        """Return the facts with a new answer of one query."""
        return replace(self, **{name: _READ[name](rows)})


def rows_of(answer: QueryAnswer) -> tuple[InstantRow, ...]:
    """Every series of an instant answer with a finite, non-negative value. Raises `MalformedAnswer`."""
    pairs = zip(answer.series, single_values(answer.series).tolist(), strict=True)
    return tuple(InstantRow(series.metric, value) for series, value in pairs if not math.isnan(value))


def by_workload(answer: QueryAnswer) -> dict[WorkloadId, float]:
    """The finite, non-negative value of each workload in an instant answer. Raises `MalformedAnswer`."""
    pairs = zip(answer.series, single_values(answer.series).tolist(), strict=True)
    return {id_: value for series, value in pairs if not math.isnan(value) and (id_ := owner_of(series))}


def _by_resource(rows: Sequence[InstantRow]) -> dict[WorkloadId, dict[str, float]]:
    amounts: dict[WorkloadId, dict[str, float]] = defaultdict(dict)
    for row in rows:
        resource = row.labels.get("resource")
        if resource in {"cpu", "memory"} and (id_ := workload_of(row.labels)):
            amounts[id_][resource] = row.value
    return amounts


def _owned(rows: Sequence[InstantRow]) -> dict[WorkloadId, list[HpaName]]:
    owned: dict[WorkloadId, set[HpaName]] = defaultdict(set)
    for row, hpa in _with_hpa(rows):
        kind, name = row.labels.get("scaletargetref_kind", ""), row.labels.get("scaletargetref_name", "")
        if all(map(may_be_a_name, (kind, name))):
            owned[scaled_workload(hpa.namespace, kind, name)].add(hpa)
    return {workload: sorted(names) for workload, names in owned.items()}


def _by_hpa(rows: Sequence[InstantRow]) -> dict[HpaName, float]:
    return {hpa: row.value for row, hpa in _with_hpa(rows)}


def _targets(rows: Sequence[InstantRow]) -> dict[HpaName, list[Target]]:
    """Return the targets in alphabetical order of the metric: the order of series is the server's, some come twice."""
    targets: dict[HpaName, set[Target]] = defaultdict(set)
    for row, hpa in _with_hpa(rows):
        if meant := TARGET_WORDS.get(row.labels.get("metric_target_type", "")):
            name, container = row.labels.get("metric_name", ""), row.labels.get("container", "")
            targets[hpa].add(Target(name, meant[0], row.value / meant[1], container))
    return {
        hpa: sorted(listed, key=attrgetter("metric", "type", "container", "value")) for hpa, listed in targets.items()
    }


def _with_hpa(rows: Sequence[InstantRow]) -> Iterator[tuple[InstantRow, HpaName]]:
    for row in rows:
        hpa = HpaName(row.labels.get("namespace", ""), row.labels.get("horizontalpodautoscaler", ""))
        if all(map(may_be_a_name, hpa)):
            yield row, hpa


def _stated_by_container(rows: Sequence[InstantRow]) -> dict[WorkloadId, tuple[NamedContainer, ...]]:
    sides = ([row for row in rows if row.labels.get("what") == side] for side in ("request", "limit"))
    named: dict[WorkloadId, list[NamedContainer]] = defaultdict(list)
    for id_, resources in sorted(_resources(*sides).items()):
        named[id_.workload].append(NamedContainer(id_.name, resources))
    return {workload: tuple(containers) for workload, containers in named.items()}


def identity_of(rows: Sequence[InstantRow]) -> Identity:
    """The answer to the query `identity`."""
    facts = ("several", "exported", "clusters")
    several, *counts = ([row for row in rows if row.labels.get("what") == fact] for fact in facts)
    ids = frozenset(id_ for row in several if (id_ := workload_of(row.labels)))
    return Identity(ids, *(sum(round(row.value) for row in part) for part in counts))


_READ: Mapping[str, Callable[[Sequence[InstantRow]], Any]] = {
    "hpa_max_replicas": _by_hpa,
    "hpa_metric_targets": _targets,
    "hpa_min_replicas": _by_hpa,
    "hpa_scale_targets": _owned,
    "pod_limits": _by_resource,
    "pod_requests": _by_resource,
    "hpa_containers": _stated_by_container,
    "identity": identity_of,
    "state_metrics": lambda rows: tuple(sorted(version for row in rows if (version := row.labels.get("version")))),
}
WITH_TARGETS = ("hpa_containers", "identity", "state_metrics")
"""Names of the queries that say what targets of HPAs, and other series, mean: asked together with the targets."""
SPECIFICATIONS = tuple(name for name in _READ if name not in WITH_TARGETS)
"""Names of the queries with answers that change with a specification, and not by themselves."""


_SIDECAR = "Always"


def container_of(labels: Mapping[str, str]) -> ContainerId | None:
    """The container of a series; None when its labels do not say."""
    workload, name = workload_of(labels), labels.get("container")
    return ContainerId(workload, intern(name)) if workload and name else None


def container_block(answer: QueryAnswer, grid: Grid) -> ContainerBlock:
    """The usage in an answer, each container once with the higher of doubled values. Raises `MalformedAnswer`."""
    whose = [(series, id_) for series in answer.series if (id_ := container_of(series.metric))]
    values, _ = matrix_of(
        [series for series, _ in whose],
        start=grid.start.timestamp(),
        step=grid.step.total_seconds(),
        points=grid.points,
    )
    ids, values, _ = each_once([id_ for _, id_ in whose], values)
    return ContainerBlock(ids, grid.start, grid.step, values)


NEEDED_OF_CONTAINERS = frozenset({"container_images", "init_containers", "container_requests", "container_limits"})
"""Queries without whose answer, of whatever age, containers cannot be sized."""


def facts_of(answers: Mapping[str, Sequence[InstantRow]]) -> ContainerFacts:
    """Return facts from the answers of named queries; answers that are not needed may be missing."""
    images = {id_: row.labels.get("image", "") for id_, row in _whose(answers["container_images"])}
    init = _whose(answers["init_containers"])
    return ContainerFacts(
        images=images,
        init=frozenset(id_ for id_, row in init if row.labels.get("restart_policy") != _SIDECAR),
        resources=_resources(answers["container_requests"], answers["container_limits"]),
        oom_limits={id_: row.value for id_, row in _whose(answers.get("oom_kills", ()))},
        held_back={id_: row.value for id_, row in _whose(answers.get("held_back", ()))},
        carried={
            (id_, name.removeprefix(CARRIED)): row.value
            for name, rows in answers.items()
            for row in rows
            if name.startswith(CARRIED) and row.value > 0 and (id_ := workload_of(row.labels))
        },
    )


def _resources(requests: Sequence[InstantRow], limits: Sequence[InstantRow]) -> dict[ContainerId, Resources]:
    amounts_by_container: dict[ContainerId, dict[str, float]] = defaultdict(dict)
    for rows, side in ((requests, "request"), (limits, "limit")):
        for id_, row in _whose(rows):
            amounts_by_container[id_][f"{row.labels.get('resource')}_{side}"] = row.value
    fields = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
    return {id_: Resources(*(amounts.get(name) for name in fields)) for id_, amounts in amounts_by_container.items()}


def _whose(rows: Iterable[InstantRow]) -> list[tuple[ContainerId, InstantRow]]:
    return [(id_, row) for row in rows if (id_ := container_of(row.labels))]
