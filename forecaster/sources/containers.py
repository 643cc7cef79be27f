"""Answers about containers: whose series is whose, usage on a grid, facts by container."""

from __future__ import annotations

from collections import defaultdict
from sys import intern
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, Resources
from forecaster.sources.blocks import workload_of
from forecaster.sources.samples import matrix_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.sources.facts import Row
    from forecaster.sources.slices import Grid
    from forecaster.sources.wire import Answer

_SIDECAR = "Always"


def container_of(labels: Mapping[str, str]) -> ContainerId | None:
    """Whose series this is; None when its labels do not say."""
    workload, name = workload_of(labels), labels.get("container")
    return ContainerId(workload, intern(name)) if workload and name else None


def container_block(answer: Answer, grid: Grid) -> ContainerBlock:
    """The usage in an answer, each container once with the higher of doubled values. Raises `MalformedAnswer`."""
    whose = [(one, id_) for one in answer.series if (id_ := container_of(one.metric))]
    values, _ = matrix_of(
        [one for one, _ in whose],
        start=grid.start.timestamp(),
        step=grid.step.total_seconds(),
        points=grid.points,
    )
    rows: dict[ContainerId, int] = {}
    for _, id_ in whose:
        rows.setdefault(id_, len(rows))
    merged = np.full((len(rows), grid.points), np.nan)
    for (_, id_), row in zip(whose, values, strict=True):
        merged[rows[id_]] = np.fmax(merged[rows[id_]], row)
    return ContainerBlock(tuple(rows), grid.start, grid.step, merged)


def facts_of(answers: Mapping[str, Sequence[Row]]) -> ContainerFacts:
    """Facts from the answers of the queries of these names."""
    images = {id_: row.labels.get("image", "") for id_, row in _whose(answers["container_images"])}
    init = _whose(answers["init_containers"])
    return ContainerFacts(
        images=images,
        init=frozenset(id_ for id_, row in init if row.labels.get("restart_policy") != _SIDECAR),
        resources=_resources(answers["container_requests"], answers["container_limits"]),
        oom_limits={id_: row.value for id_, row in _whose(answers["oom_kills"])},
        held_back={id_: row.value for id_, row in _whose(answers["held_back"])},
    )


def _resources(requests: Sequence[Row], limits: Sequence[Row]) -> dict[ContainerId, Resources]:
    found: dict[ContainerId, dict[str, float]] = defaultdict(dict)
    for rows, what in ((requests, "request"), (limits, "limit")):
        for id_, row in _whose(rows):
            found[id_][f"{row.labels.get('resource')}_{what}"] = row.value
    return {
        id_: Resources(
            amounts.get("cpu_request"),
            amounts.get("cpu_limit"),
            amounts.get("memory_request"),
            amounts.get("memory_limit"),
        )
        for id_, amounts in found.items()
    }


def _whose(rows: Iterable[Row]) -> list[tuple[ContainerId, Row]]:
    return [(id_, row) for row in rows if (id_ := container_of(row.labels))]
