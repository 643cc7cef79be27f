"""TableFile: the offers and records of a cycle as a table in the file that the serving process watches.

Numbers are columns and written as they are. What is said in words is written for the rows in which a count, a reason or
a rule has changed, and for a few others in turn, so that no word is older than `RENEWED_IN` cycles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import numpy as np

from forecaster.domain.signal import BUILT_IN
from forecaster.publish.decided import DecidedFleet, fingerprints
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.forecast_paths import EncodedPaths
from forecaster.publish.record import row_text
from forecaster.publish.rows import encoded_readers
from forecaster.publish.table import PLACES, SIZES, TEXTS, Column, CycleSummary, TableMeta, write_table
from forecaster.publish.views import resources_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.outlook import StepForecast
    from forecaster.domain.report import CycleReport
    from forecaster.domain.signal import Signal, Signals
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.rows import OfferedCycle

Gauges = Literal["none", "counts", "all"]
FAILURES_SHOWN = 20
"""Failures of a cycle that go into the table; all of them are in its log."""
RENEWED_IN = 30
"""Cycles after which a text is made anew though nothing that is counted has changed: reasons of a gate, ages."""
CODE_OF = {"float64": "d", "int64": "q", "int8": "b", "bool": "?"}
"""How the table names the types of arrays."""
_words = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()


class RowTexts(NamedTuple):
    """What is said of one workload: its record, its sizes and the readers of its metrics."""

    record: bytes
    sizes: bytes
    readers: bytes

    @classmethod
    def of(cls, one: Recommendation) -> RowTexts:
        """Those of a recommendation."""
        return cls(_words.encode(row_text(one)), _json.encode(resources_view(one)), encoded_readers(one))


class TableFile:
    """`OfferReceiver` into one file.

    `history` is what was known before this process. `paths`, `metrics` and `last_report` are asked at every
    publication. The report of a cycle exists only when the cycle has ended, so a table carries the one before.
    """

    def __init__(
        self,
        path: Path,
        *,
        interval: timedelta,
        version: str,
        gauges: Gauges = "none",
        history: DecisionHistory | None = None,
        paths: Callable[[], Mapping[WorkloadId, Mapping[Signal, StepForecast]]] = dict,
        metrics: Callable[[], str] = str,
        last_report: Callable[[], CycleReport | None] = lambda: None,
        signals: Signals = BUILT_IN,
    ) -> None:
        self.path = path
        self._interval = interval
        self._version = version
        self._gauges = gauges
        self._history = history or DecisionHistory()
        self._ask_paths = paths
        self._paths = EncodedPaths()
        self._metrics = metrics
        self._last_report = last_report
        self._survives_zero = tuple(str(signal) for signal in signals.demand if signal.survives_zero)
        self._texts = TextBook()
        self._order = TableOrder(())

    def receive(self, cycle: OfferedCycle) -> None:
        """Replace the published table as a whole.

        Raises:
            StoreError: the file cannot be written.
        """
        report = self._last_report()
        said = self._texts.renew(cycle)
        self._history.follow(cycle.at, cycle.ids, said, report)
        self._paths.renew(self._ask_paths())
        if cycle.ids != self._order.ids:
            self._order = TableOrder(cycle.ids)
        columns = dict(self._columns(cycle))
        write_table(self.path, self._meta(cycle.at, report), len(cycle.ids), cycle.decided.signals, columns)

    def _columns(self, cycle: OfferedCycle) -> Iterator[tuple[str, Column]]:
        rows, ids = self._order.rows, cycle.ids
        yield from self._order.identity.items()
        for name, column in cycle.columns.items():
            data = np.ascontiguousarray(column[:, rows])
            yield name, Column.of(CODE_OF[data.dtype.name], len(column), data.tobytes())
        places, texts = rows.tolist(), self._texts.texts
        yield from text_columns("record", [texts[row].record for row in places])
        yield from text_columns("sizes", [texts[row].sizes for row in places])
        yield from text_columns("consumers", [texts[row].readers for row in places])
        yield from text_columns("history", [self._history.told(ids[row]).record for row in places])
        yield from text_columns("steps", [self._paths.of(ids[row]) for row in places])

    def _meta(self, at: datetime, report: CycleReport | None) -> TableMeta:
        return TableMeta(
            published_at=at,
            interval_seconds=self._interval.total_seconds(),
            version=self._version,
            metrics=self._metrics(),
            gauges=self._gauges,
            cycle=_summary(report),
            survives_zero=self._survives_zero,
        )


class TableOrder:
    """The order of the rows of a table, and the columns of their names: both stand while the workloads are the same."""

    def __init__(self, ids: tuple[WorkloadId, ...]) -> None:
        self.ids = ids
        order = sorted(range(len(ids)), key=lambda row: (ids[row].namespace, ids[row].name, ids[row].kind))
        self.rows = np.array(order, np.intp)
        self.identity: dict[str, Column] = {}
        for name in ("namespace", "name", "kind"):
            self.identity |= text_columns(name, [getattr(ids[row], name).encode() for row in order])


class TextBook:
    """What is said of every workload of a cycle, made anew only where it may have changed."""

    def __init__(self) -> None:
        self.texts: list[RowTexts] = []
        """In the order of the cycle."""
        self._ids: tuple[WorkloadId, ...] = ()
        self._fingerprints = np.zeros(0, np.uint64)
        self._cycle = 0

    def renew(self, cycle: OfferedCycle) -> list[Recommendation]:
        """Take a cycle over; the recommendations whose texts were made anew."""
        self._cycle += 1
        rows = self._changed(cycle)
        said = [cycle.recommendations[row] for row in rows]
        for row, one in zip(rows, said, strict=True):
            self.texts[row] = RowTexts.of(one)
        return said

    def _changed(self, cycle: OfferedCycle) -> Sequence[int]:
        """The rows to be said anew."""
        rows = len(cycle.ids)
        if not isinstance(cycle.recommendations, DecidedFleet):
            self._ids, self._fingerprints = (), np.zeros(0, np.uint64)
            self.texts = [NOTHING_SAID] * rows
            return range(rows)
        found = fingerprints(cycle.recommendations)
        before = self._placed(cycle.ids)
        in_turn = (np.arange(rows) + self._cycle) % RENEWED_IN == 0
        changed: list[int] = np.flatnonzero(in_turn | (found != before)).tolist()
        self._fingerprints = found
        return changed

    def _placed(self, ids: tuple[WorkloadId, ...]) -> NDArray[np.uint64]:
        """The fingerprints before [row], in the order of these workloads; 0 for a new one."""
        if ids == self._ids:
            return self._fingerprints
        at = {id_: row for row, id_ in enumerate(self._ids)}
        places = [at.get(id_, -1) for id_ in ids]
        self.texts = [NOTHING_SAID if place < 0 else self.texts[place] for place in places]
        self._ids = ids
        known = np.append(self._fingerprints, np.uint64(0))
        return known[np.array(places, np.intp)]


NOTHING_SAID = RowTexts(b"", b"", b"")


def text_columns(name: str, texts: Sequence[bytes]) -> Iterator[tuple[str, Column]]:
    """The three columns of one text for each row."""
    sizes: NDArray[Any] = np.fromiter(map(len, texts), np.uint32, len(texts))
    places = np.zeros(len(texts), np.uint64)
    np.cumsum(sizes[:-1], out=places[1:])
    yield name + PLACES, Column.of("Q", 1, places.tobytes())
    yield name + SIZES, Column.of("I", 1, sizes.tobytes())
    yield name + TEXTS, Column.of("B", 0, b"".join(texts))


def _summary(report: CycleReport | None) -> CycleSummary | None:
    if report is None:
        return None
    return CycleSummary(at=report.at, seconds=report.seconds, failures=report.failures[:FAILURES_SHOWN])
