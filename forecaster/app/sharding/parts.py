"""What each shard is told: its part of the inventory, and the settings by which it decides."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from forecaster.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from forecaster.cycle.targets import Targets
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.window import Inventory, StartedPod
    from forecaster.domain.workload import Workload, WorkloadId

STAYS_HERE = ("state", "serving", "keda", "remote_write", "acting", "floor", "scale", "resize", "replicas", "sharding")
"""Sections that are none of a worker's business, with the addresses and files of secrets that they name."""
V = TypeVar("V")


def settings_for_workers(settings: Settings) -> Settings:
    """Return the settings by which a shard is read and decided."""
    sections = {name: getattr(settings, name) for name in Settings.model_fields if name not in STAYS_HERE}
    return Settings.model_construct(**sections)


def parted(
    targets: Targets,
    started: Mapping[WorkloadId, tuple[StartedPod, ...]],
    stated: ClusterPolicies,
    rows: Mapping[int, Sequence[int]],
    shard: Callable[[WorkloadId], int],
    kinds: Iterable[str],
) -> dict[int, Inventory]:
    """What each shard has to know of the inventory, by its number, with the workloads in its rows."""
    inventory = targets.inventory
    spread = partial(_spread, shard=shard)
    lost, begun, images = spread(targets.lost), spread(started), spread(inventory.images)
    own, labels = spread(stated.own), spread(stated.labels)
    whole = frozenset(kinds)  # what is not listed here is lost by the inventory of all, or gone
    return {
        number: replace(
            inventory,
            workloads=tuple([inventory.workloads[row] for row in here]),
            faults=(),
            partly=lost[number],
            whole=whole,
            policies=replace(stated, own=own[number], labels=labels[number], faults=()),
            started=begun[number],
            images=images[number],
        )
        for number, here in rows.items()
    }


def rows_of(workloads: Sequence[Workload], shard: Callable[[WorkloadId], int]) -> dict[int, list[int]]:
    """The rows of each shard; one without workloads is in none."""
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for row, one in enumerate(workloads):
        rows[shard(one.id)].append(row)
    return dict(rows)


def _spread(found: Mapping[WorkloadId, V], shard: Callable[[WorkloadId], int]) -> defaultdict[int, dict[Any, V]]:
    parts: defaultdict[int, dict[Any, V]] = defaultdict(dict)
    for id_, value in found.items():
        parts[shard(id_)][id_] = value
    return parts
