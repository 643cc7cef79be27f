"""TableFile: the offers and records of a cycle as a table in the file that the serving process watches.

Numbers are columns and written unchanged. A text is a name: its column has a position among the names of the cycle. The
sentences of a record are made of both when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.domain.report import CycleReport, DecisionChange
from forecaster.domain.signal import BUILT_IN, Signal, Signals, StepForecast
from forecaster.domain.workload import Prices, WorkloadId
from forecaster.horizontal.columns import rows_before, taken
from forecaster.publish.beside import TextsBeside
from forecaster.publish.decided import DecidedRows
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.health import HealthHistory
from forecaster.publish.publisher import OfferedCycle
from forecaster.publish.record import encoded_sizes
from forecaster.publish.table import NAMES, PLACES, SIZES, TEXTS, TableMeta, WrittenColumn, write_table

Gauges = Literal["none", "counts", "all"]
CODE_OF = {"float64": "d", "int64": "q", "int32": "i", "int8": "b", "bool": "?"}
"""Type codes of arrays in the table."""


@dataclass(eq=False)
class TableFile:
    """`OfferReceiver` into one file. Its callables are called at every publication.

    A cycle has a report only when it has ended, so the table's cycles and scores end with the previous cycle.
    """

    path: Path
    _: KW_ONLY
    interval: timedelta
    version: str
    gauges: Gauges = "none"
    history: DecisionHistory = field(default_factory=DecisionHistory)
    """Decisions before this process."""
    paths: Callable[[], Mapping[WorkloadId, Mapping[Signal, StepForecast]]] = dict
    metrics: Callable[[], str] = str
    last_report: Callable[[], CycleReport | None] = lambda: None
    signals: Signals = BUILT_IN
    live: Callable[[datetime], Collection[str]] = lambda _at: ()
    """Kinds whose counts and targets came from the API server at that instant."""
    health: HealthHistory = field(default_factory=HealthHistory)
    note: str = ""
    """Shown on every page of the dashboard."""
    prices: Prices | None = None
    nodes: Callable[[], bytes] = bytes
    """Node pools ahead of time as JSON; nothing where they are not known."""
    beside: dict[str, Callable[[], TextsBeside]] = field(default_factory=dict)
    """Texts beside decisions, by the keys of `beside`."""

    def __post_init__(self) -> None:
        self._before: DecidedRows | None = None
        self._paths, self._sizes, self._order = EncodedPaths(), EncodedSizes(), TableOrder(())

    def receive(self, cycle: OfferedCycle) -> None:
        """Replace the published table as a whole. Raises StoreError."""
        report = self.last_report()
        changed = cycle.recommendations.changed_since(self._before, sizes=False)
        self._before = cycle.recommendations
        verdicts = ((cycle.ids[row], cycle.recommendations.verdict(row)) for row in changed)
        changes = ((id_, DecisionChange.of(cycle.at, verdict)) for id_, verdict in verdicts)
        self.history.follow(cycle.at, cycle.ids, changes, report)
        self.health.follow(report)
        if cycle.ids != self._order.ids:
            self._order = TableOrder(cycle.ids)
        columns = dict(self._columns(cycle))
        write_table(self.path, self._meta(cycle.at), len(cycle.ids), cycle.decided.signals, columns)

    def _columns(self, cycle: OfferedCycle) -> Iterator[tuple[str, WrittenColumn]]:
        rows = self._order.rows
        yield from self._order.identity.items()
        for name, column in cycle.columns.items():
            yield name, column_of(column, rows)
        fleet, places = cycle.recommendations, rows.tolist()
        sizes, readers = self._sizes.of(fleet), fleet.numbers.readers.tolist()
        yield from name_columns(fleet.numbers.names)
        yield from text_columns("sizes", [sizes[row] for row in places])
        yield from text_columns("consumers", [fleet.name(readers[row]) for row in places])
        yield from text_columns("history", self.history.encoded(self._order.sorted))
        yield from text_columns("steps", self._paths.of(self._order.sorted, self.paths()))
        yield "nodes", WrittenColumn.of("B", 0, self.nodes())
        for key, encode in self.beside.items():
            whole, texts = encode()
            if whole:
                yield key, WrittenColumn.of("B", 0, whole)
                yield from text_columns(key, [texts.get(id_, b"") for id_ in self._order.sorted])
        yield "health", WrittenColumn.of("B", 0, msgspec.json.encode(self.health.view(self.history)))

    def _meta(self, at: datetime) -> TableMeta:
        return TableMeta(
            published_at=at,
            interval_seconds=self.interval.total_seconds(),
            version=self.version,
            metrics=self.metrics(),
            gauges=self.gauges,
            survives_zero=tuple(str(signal) for signal in self.signals.demand if signal.survives_zero),
            measured=tuple(map(str, self.signals.demand)),
            live=tuple(sorted(self.live(at))),
            note=self.note,
            prices=self.prices,
        )


class TableOrder:
    """The order of the rows of a table, and the columns of their names: both stand while the workloads are the same."""

    def __init__(self, ids: tuple[WorkloadId, ...]) -> None:
        self.ids = ids
        order = sorted(range(len(ids)), key=lambda row: (ids[row].namespace, ids[row].name, ids[row].kind))
        self.rows = np.array(order, np.intp)
        self.sorted = [ids[row] for row in order]
        self.identity: dict[str, WrittenColumn] = {}
        for name in ("namespace", "name", "kind"):
            self.identity |= text_columns(name, [getattr(ids[row], name).encode() for row in order])


NO_PATHS: Mapping[Signal, StepForecast] = {}


class EncodedPaths:
    """Every workload's paths as bytes, encoded again only when they have changed."""

    def __init__(self) -> None:
        self._known: dict[WorkloadId, tuple[Mapping[Signal, StepForecast], bytes]] = {}

    def of(self, ids: Iterable[WorkloadId], paths: Mapping[WorkloadId, Mapping[Signal, StepForecast]]) -> list[bytes]:
        """Return the paths of these workloads."""
        before = self._known
        self._known = {
            id_: known if (known := before.get(id_)) and known[0] is mine else (mine, _encoded_paths(mine))
            for id_, mine in ((id_, paths.get(id_, NO_PATHS)) for id_ in ids)
        }
        return [text for _, text in self._known.values()]


def _encoded_paths(paths: Mapping[Signal, StepForecast]) -> bytes:
    return msgspec.json.encode({str(signal): path for signal, path in sorted(paths.items())})


class EncodedSizes:
    """Sizes of workloads as they are written, encoded anew only where they may have changed."""

    def __init__(self) -> None:
        self._ids: tuple[WorkloadId, ...] = ()
        self._size_ids = np.zeros(0, np.int64)
        self._texts: list[bytes] = []

    def of(self, fleet: DecidedRows) -> list[bytes]:
        """Return the sizes of each row of a fleet."""
        before = rows_before(self._ids, fleet.ids)
        texts = [self._texts[row] if row >= 0 else b"" for row in before.tolist()]
        for row in np.flatnonzero((fleet.size_ids != taken(self._size_ids, before, 0)) | (before < 0)).tolist():
            texts[row] = encoded_sizes(fleet.workloads[row].resources, fleet.resources(row))
        self._ids, self._size_ids, self._texts = fleet.ids, fleet.size_ids, texts
        return texts


def array_column(code: str, planes: int, values: NDArray[Any]) -> WrittenColumn:
    """Return the column of an array's values, which are not copied if they are contiguous."""
    return WrittenColumn.of(code, planes, np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def column_of(column: NDArray[Any], rows: NDArray[np.intp]) -> WrittenColumn:
    """The planes of a column, with the rows in this order."""
    return array_column(CODE_OF[column.dtype.name], len(column), column[:, rows])


def text_columns(name: str, texts: Sequence[bytes]) -> Iterator[tuple[str, WrittenColumn]]:
    """The three columns of one text for each row."""
    sizes: NDArray[Any] = np.fromiter(map(len, texts), np.uint32, len(texts))
    places = np.zeros(len(texts), np.uint64)
    np.cumsum(sizes[:-1], out=places[1:])
    yield name + PLACES, array_column("Q", 1, places)
    yield name + SIZES, array_column("I", 1, sizes)
    yield name + TEXTS, WrittenColumn.of("B", 0, b"".join(texts))


def name_columns(names: Sequence[bytes]) -> Iterator[tuple[str, WrittenColumn]]:
    """The two columns of the names of a cycle: the place of each and the end of all, and their texts."""
    places = np.zeros(len(names) + 1, np.uint64)
    np.cumsum(np.fromiter(map(len, names), np.uint64, len(names)), out=places[1:])
    yield NAMES + PLACES, array_column("Q", 0, places)
    yield NAMES + TEXTS, WrittenColumn.of("B", 0, b"".join(names))
