"""Fleet page: columns of the published table, made once per table, and only while a page is read.

Only the names are made row by row; sentences are made for the few visible rows. A page counts, sorts and draws in the
browser.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import isfinite

import msgspec

from forecaster.domain.decision import FORECAST_STATES
from forecaster.domain.signal import BUILT_IN
from forecaster.domain.workload import Prices
from forecaster.horizontal.row import REASONS
from forecaster.publish.beside import BenefitView, benefit_of_fleet
from forecaster.publish.reader import PublishedTable
from forecaster.publish.record import MODE_CODES
from forecaster.publish.table import SIZES, TEXTS
from forecaster.publish.views import whole_bytes

UNKNOWN_POSITION = -1
"""Count, row or mode that is not known."""


class FleetView(msgspec.Struct, frozen=True):
    """All rows in the order of the table, column by column. Amounts are in `units`, counts -1 where unknown.

    `kind` is a position in `kinds`, and so are `namespace`, `reason`, `mode` and the `state` of the forecast, -1 where
    it is not known; `shown` is one in `signals`, -1 where none is shown.
    `spark` has `spark_size` bytes a row, in base64.
    """

    published_at: datetime
    namespaces: list[str]
    namespace: list[int]
    name: list[str]
    kinds: list[str]
    kind: list[int]
    current: list[int]
    recommended: list[int]
    hour_ago: list[int]
    reasons: tuple[str, ...]
    reason: list[int]
    modes: tuple[str, ...]
    mode: list[int]
    states: tuple[str, ...]
    state: list[int]
    signals: tuple[str, ...]
    units: tuple[str, ...]
    shown: list[int]
    measured: list[float | None]
    peak: list[float | None]
    pod: list[float | None]
    high: list[float | None]
    """Upper bound of the window's peak at 95 %."""
    request: list[tuple[float | None, float | None]]
    """Cores and bytes that a pod requests now."""
    resized: list[tuple[float | None, float | None]]
    """Requests as recommended; as now where no change is recommended."""
    spark: str
    spark_size: int
    prices: Prices | None
    """Prices; without them no money is shown."""
    benefit: BenefitView
    """Benefit of the decisions over the HPA alone."""


def fleet_view(table: PublishedTable, pictures: PublishedTable | None) -> FleetView:
    """Return the columns of a table, with the pictures of the same workloads."""
    namespaces, namespace = _coded(table.texts("namespace"))
    kinds, kind = _coded(table.texts("kind"))
    signals = pictures.signals if pictures else ()
    rows = _rows_in(table, pictures)
    shown = [int(place) for place in _taken(pictures, "shown", rows, UNKNOWN_POSITION)]
    planes = [table.signals.index(signal) if signal in table.signals else UNKNOWN_POSITION for signal in signals]
    planes_of = [planes[place] if place >= 0 else UNKNOWN_POSITION for place in shown]
    spark, size = _sparks(pictures, rows)
    sizes = [*_sizes(table)]
    return FleetView(
        published_at=table.meta.published_at,
        namespaces=namespaces,
        namespace=namespace,
        name=table.texts("name"),
        kinds=kinds,
        kind=kind,
        current=table.columns["current"][0].tolist(),
        recommended=table.columns["recommended"][0].tolist(),
        hour_ago=[int(count) for count in _taken(pictures, "hour_ago", rows, UNKNOWN_POSITION)],
        reasons=REASONS,
        reason=table.columns["reason"][0].tolist(),
        modes=MODE_CODES,
        mode=table.columns["mode"][0].tolist(),
        states=tuple(FORECAST_STATES),
        state=table.columns["state"][0].tolist(),
        signals=signals,
        units=tuple(_unit(signal) for signal in signals),
        shown=shown,
        measured=_amounts(table, "measured", planes_of),
        peak=_amounts(table, "peak", planes_of),
        high=_amounts(table, "high", planes_of),
        request=[request for request, _ in sizes],
        resized=[resized for _, resized in sizes],
        pod=[number if isfinite(number) else None for number in _taken(pictures, "pod", rows, float("nan"))],
        spark=base64.b64encode(spark).decode(),
        spark_size=size,
        prices=table.meta.prices,
        benefit=benefit_of_fleet(table),
    )


Pair = tuple[float | None, float | None]


class PodRequests(msgspec.Struct, frozen=True, gc=False):
    """Requests of a pod; the other sizes are not read."""

    cpu_request: float | None
    memory_request: float | None

    def pair(self) -> Pair:
        """Cores and whole bytes."""
        return self.cpu_request, whole_bytes(self.memory_request)


class ResizedPod(msgspec.Struct, frozen=True, gc=False):
    """The part of a decision to resize that is read."""

    resources: PodRequests


class FleetSizes(msgspec.Struct, frozen=True, gc=False):
    """Requests of a row's pods now and as recommended."""

    now: PodRequests
    resize: ResizedPod | None


_sizes_of = msgspec.json.Decoder(FleetSizes)


def _sizes(table: PublishedTable) -> Iterator[tuple[Pair, Pair]]:
    """Requests of a pod now and as recommended."""
    for text in table.texts("sizes"):
        sizes = _sizes_of.decode(text)
        now = sizes.now.pair()
        cores, memory = sizes.resize.resources.pair() if sizes.resize else now
        yield now, (now[0] if cores is None else cores, now[1] if memory is None else memory)


def _coded(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different texts in their order, and the position of each."""
    places: dict[str, int] = {}
    codes = [places.setdefault(text, len(places)) for text in texts]
    return list(places), codes


def _rows_in(table: PublishedTable, pictures: PublishedTable | None) -> Sequence[int]:
    """Return the position of each row of the table in the pictures: the same, while the workloads are."""
    if pictures is None:
        return [UNKNOWN_POSITION] * table.rows
    if all(_same_texts(table, pictures, name) for name in ("namespace", "name", "kind")):
        return range(table.rows)
    at = {key: row for row, key in enumerate(_keys(pictures))}
    return [at.get(key, UNKNOWN_POSITION) for key in _keys(table)]


def _same_texts(table: PublishedTable, pictures: PublishedTable, name: str) -> bool:
    """Whether each row has the same text: `ab`, `c` and `a`, `bc` are the same bytes."""
    same_sizes = table.columns[name + SIZES][0] == pictures.columns[name + SIZES][0]
    return same_sizes and table.whole(name + TEXTS) == pictures.whole(name + TEXTS)


def _unit(signal: str) -> str:
    """Return the unit of a built-in signal; another one is shown by its name."""
    known = BUILT_IN.by_name.get(signal)
    return known.unit if known else ""


def _keys(table: PublishedTable) -> Sequence[tuple[str, str, str]]:
    return list(zip(table.texts("namespace"), table.texts("name"), table.texts("kind"), strict=True))


def _taken(pictures: PublishedTable | None, name: str, rows: Sequence[int], nothing: float) -> list[float]:
    column: list[float] = list(pictures.columns[name][0]) if pictures else []
    return column if isinstance(rows, range) else [column[row] if row >= 0 else nothing for row in rows]


def _sparks(pictures: PublishedTable | None, rows: Sequence[int]) -> tuple[bytes, int]:
    """The sparklines of all rows, one after the other, and the size of one."""
    if pictures is None or not pictures.rows:
        return b"", 0
    size, whole = int(pictures.number("spark.size", 0)), pictures.whole("spark" + TEXTS)
    if isinstance(rows, range):
        return whole, size
    return b"".join(whole[row * size : (row + 1) * size] if row >= 0 else bytes(size) for row in rows), size


def _amounts(table: PublishedTable, name: str, planes: Sequence[int]) -> list[float | None]:
    """A column of the signal that is shown of each row, to four digits."""
    columns = [column.tolist() for column in table.columns[name]]
    numbers = (columns[plane][row] if plane >= 0 else float("nan") for row, plane in enumerate(planes))
    return [float(f"{number:.4g}") if isfinite(number) else None for number in numbers]
