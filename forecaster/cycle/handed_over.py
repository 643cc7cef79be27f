"""What was earned and decided, joined and cut by workload: shards take over what others have learned of their own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from forecaster.cycle.gates import TIMES
from forecaster.cycle.observed import VERSION, PersistedColumn, PersistedObservations
from forecaster.horizontal.ring import Ring
from forecaster.horizontal.standing import GATE_COLUMNS, Gates
from forecaster.horizontal.state import BY_ROW, BY_SIGNAL, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.cycle.lead_times import PersistedStartUps

    Place = Callable[[str], int]
    """The shard of a namespace."""

PERSISTED_LISTS = ("lead_times", "pods", "coverage", "capacities")
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
    gates, state = [one.gates for one in parts if one.gates], [one.state for one in parts if one.state]
    return PersistedObservations(
        version=VERSION,
        images=_images(parts),
        gates=_packed(_joined_gates([_arrays(one) for one in gates])) if gates else {},
        state=_packed(_joined_state([State.of_arrays(_arrays(one)) for one in state]).arrays()) if state else {},
        **{name: _chained(parts, name) for name in (*PERSISTED_LISTS, "gated", "fleet")},
    )


def _images(parts: Sequence[PersistedObservations]) -> dict[str, PersistedStartUps]:
    """Merge what several shards know of an image: the one with the most pods counts."""
    found: dict[str, PersistedStartUps] = {}
    for image, told in chain.from_iterable(one.images.items() for one in parts):
        if image not in found or len(told.took) > len(found[image].took):
            found[image] = told
    return found


def _cut(known: PersistedObservations, place: Place) -> dict[int, PersistedObservations]:
    """Split observations by shard of the workloads' namespaces; images go to all shards."""
    fleet, gated = _places(known.fleet, place), _places(known.gated, place)
    lists = {name: _spread(getattr(known, name), place) for name in PERSISTED_LISTS}
    gates = {name: column.array() for name, column in known.gates.items()}
    state = State.of_arrays(_arrays(known.state)) if known.state else None
    shards = {*fleet.tolist(), *gated.tolist(), *chain.from_iterable(lists.values())}
    found = {}
    for shard in shards:
        here, judged = np.flatnonzero(fleet == shard), np.flatnonzero(gated == shard)
        found[shard] = msgspec.structs.replace(
            known,
            fleet=tuple(known.fleet[row] for row in here.tolist()),
            gated=tuple(known.gated[row] for row in judged.tolist()),
            gates=_packed({name: one if name == "signals" else one[judged] for name, one in gates.items()}),
            state=_packed(state.take(here).arrays()) if state else {},
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


def _joined_gates(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Rows of several, one after the other."""
    signals = _union(Gates.of_arrays(one).signals for one in parts)
    found: dict[str, NDArray[Any]] = {"signals": np.array(signals, np.str_)}
    for name in (*GATE_COLUMNS, *TIMES):
        found[name] = np.concatenate([one[name] for one in parts])
    found["signal"] = np.concatenate([_moved(one["signal"], one["signals"].tolist(), signals) for one in parts])
    return found


def _joined_state(parts: Sequence[State]) -> State:
    """Rows of several, one after the other; a row has nothing in a slot in which its shard was not decided."""
    signals = _union(one.signals for one in parts)
    ordered = [_ordered(one, signals) for one in parts]
    columns: dict[str, Any] = {
        **{name: np.concatenate([getattr(one, name) for one in ordered]) for name in BY_ROW},
        **{name: np.concatenate([getattr(one, name) for one in ordered], axis=1) for name in BY_SIGNAL},
        "recommendations": _joined_rings([(one.recommendations, one.rows) for one in ordered]),
    }
    return replace(ordered[0], **columns)


def _ordered(state: State, signals: tuple[str, ...]) -> State:
    """Return the state with its signals in this order."""
    whole = state.covering(signals)
    order = [whole.signals.index(one) for one in signals]
    columns: dict[str, Any] = {name: getattr(whole, name)[order] for name in BY_SIGNAL}
    return replace(whole, signals=signals, gone=_moved(state.gone, state.signals, signals), **columns)


def _joined_rings(rings: Sequence[tuple[Ring, int]]) -> Ring:
    """Join rings of given numbers of rows."""
    times = tuple(sorted(set(chain.from_iterable(one.times for one, _ in rings))))
    known = [(dict(zip(one.times, one.values, strict=True)), rows) for one, rows in rings]
    nothing = rings[0][0].nothing
    values = tuple(np.concatenate([of.get(at, np.full(rows, nothing)) for of, rows in known]) for at in times)
    return Ring(nothing, times, values)


def _moved(positions: NDArray[Any], before: Sequence[str], after: Sequence[str]) -> NDArray[Any]:
    """Positions of signals in another order; -1 stays."""
    places: NDArray[Any] = np.array([*(after.index(one) for one in before), -1], positions.dtype)
    return np.asarray(places[positions])


def _union(several: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(several)))


def _chained(parts: Sequence[PersistedObservations], name: str) -> Any:
    return tuple(chain.from_iterable(getattr(one, name) for one in parts))


def _arrays(columns: Mapping[str, PersistedColumn]) -> dict[str, NDArray[Any]]:
    return {name: one.array() for name, one in columns.items()}


def _packed(arrays: Mapping[str, NDArray[Any]]) -> dict[str, PersistedColumn]:
    return {name: PersistedColumn.of(one) for name, one in arrays.items()}
