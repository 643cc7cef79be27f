"""What was earned and decided, joined and cut by workload: shards take over what others have learned of their own."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from forecaster.cycle.observed import VERSION, PersistedColumn, PersistedObservations
from forecaster.horizontal.standing import Gates
from forecaster.horizontal.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.cycle.lead_times import PersistedStartUps
    from forecaster.horizontal.columns import Table

    Place = Callable[[str], int]
    """The shard of a namespace."""

PERSISTED_LISTS = ("lead_times", "pods", "capacities")
"""What is kept as records that name their workload."""


def handed_over(kept: Iterable[bytes], place: Place) -> dict[int, bytes]:
    """Distribute persisted observations of several shards (`Observed.kept`) to the shards of a new partition.

    Raises:
        msgspec.MsgspecError: one of them is no such JSON, or that of another version.
    """
    parts = [msgspec.json.decode(one, type=PersistedObservations) for one in kept]
    if others := {one.version for one in parts} - {VERSION}:
        raise msgspec.ValidationError(f"version {min(others)}, and not {VERSION}")
    if not parts:
        return {}
    return {shard: msgspec.json.encode(one) for shard, one in _cut(_joined(parts), place).items()}


def _joined(parts: Sequence[PersistedObservations]) -> PersistedObservations:
    """All of them as one."""
    return PersistedObservations(
        version=VERSION,
        images=_images(parts),
        pools=_pools(parts),
        gates=_joined_columns(Gates, [one.gates for one in parts]),
        state=_joined_columns(State, [one.state for one in parts]),
        **{name: _chained(parts, name) for name in (*PERSISTED_LISTS, "gated", "fleet")},
    )


def _images(parts: Sequence[PersistedObservations]) -> dict[str, PersistedStartUps]:
    """Merge what several shards know of an image: the one with the most pods counts."""
    found: dict[str, PersistedStartUps] = {}
    for image, told in chain.from_iterable(one.images.items() for one in parts):
        if image not in found or len(told.took) > len(found[image].took):
            found[image] = told
    return found


def _pools(parts: Sequence[PersistedObservations]) -> dict[str, tuple[PersistedStartUps, ...]]:
    """What all shards know of each node pool, whose nodes run workloads of several."""
    found: defaultdict[str, list[PersistedStartUps]] = defaultdict(list)
    for pool, told in chain.from_iterable(one.pools.items() for one in parts):
        found[pool] += told
    return {pool: tuple(told) for pool, told in found.items()}


def _cut(known: PersistedObservations, place: Place) -> dict[int, PersistedObservations]:
    """Split observations by shard of the workloads' namespaces; images go to all shards."""
    fleet, gated = _places(known.fleet, place), _places(known.gated, place)
    lists = {name: _spread(getattr(known, name), place) for name in PERSISTED_LISTS}
    pools = {pool: _spread(told, place) for pool, told in known.pools.items()}
    shards = {*fleet.tolist(), *gated.tolist(), *chain.from_iterable(lists.values())}
    found = {}
    for shard in shards:
        here, judged = np.flatnonzero(fleet == shard), np.flatnonzero(gated == shard)
        found[shard] = msgspec.structs.replace(
            known,
            fleet=tuple(known.fleet[row] for row in here.tolist()),
            gated=tuple(known.gated[row] for row in judged.tolist()),
            gates=_columns_at(Gates, known.gates, judged),
            pools={pool: tuple(of_shard[shard]) for pool, of_shard in pools.items() if shard in of_shard},
            state=_columns_at(State, known.state, here),
            **{name: tuple(of_shard[shard]) for name, of_shard in lists.items()},
        )
    return found


def _places(rows: Sequence[tuple[tuple[str, str, str], float]], place: Place) -> NDArray[np.int64]:
    """[row] the shard of each."""
    return np.fromiter((place(id_[0]) for id_, _ in rows), np.int64, len(rows))


def _spread(records: Iterable[Any], place: Place) -> defaultdict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for one in records:
        found[place(one.id[0])].append(one)
    return found


def _joined_columns(table: type[Table], parts: Iterable[Mapping[str, PersistedColumn]]) -> dict[str, PersistedColumn]:
    """Persisted rows of several tables, one after the other."""
    tables = [table.of_arrays(_arrays(part)) for part in parts if part]
    if not tables:
        return {}
    ends = np.cumsum([one.rows for one in tables])
    placed = [(np.arange(end - one.rows, end), one) for end, one in zip(ends.tolist(), tables, strict=True)]
    return _packed(table.side_by_side(int(ends[-1]), placed).arrays())


def _columns_at(
    table: type[Table], columns: Mapping[str, PersistedColumn], rows: NDArray[np.int64]
) -> dict[str, PersistedColumn]:
    """Some rows of a persisted table."""
    return _packed(table.of_arrays(_arrays(columns)).take(rows).arrays()) if columns else {}


def _chained(parts: Sequence[PersistedObservations], name: str) -> Any:
    return tuple(chain.from_iterable(getattr(one, name) for one in parts))


def _arrays(columns: Mapping[str, PersistedColumn]) -> dict[str, NDArray[Any]]:
    return {name: one.array() for name, one in columns.items()}


def _packed(arrays: Mapping[str, NDArray[Any]]) -> dict[str, PersistedColumn]:
    return {name: PersistedColumn.of(one) for name, one in arrays.items()}
