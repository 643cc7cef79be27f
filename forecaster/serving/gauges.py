"""Gauges of every workload as text for /metrics, made once a table, with room for requests in between.

`forecaster_demand`, `forecaster_replicas` and `forecaster_floor` are the offer, number by number what an HPA reads of
the external metrics of these names; only of published workloads. All others are to look at: what there
is, what was decided and what is forecast. What is not known has no series: neither 0 nor NaN, which readers would take
for a number.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

from forecaster.domain.published import DEMAND_METRIC, FLOOR, REPLICAS
from forecaster.publish.values import sampled_values

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from forecaster.publish.reader import PublishedTable, TableEntry

FAMILIES = {
    DEMAND_METRIC: "Demand to scale by, in the signal's unit: the external metric of this name.",
    REPLICAS: "Replicas to scale to, before the HPA's own stabilization and bounds: the external metric of this name.",
    FLOOR: "Least replicas that the forecast asks for: the external metric of this name.",
    "forecaster_workload_replicas": "Replicas asked for now.",
    "forecaster_workload_recommended_replicas": "Replicas with stabilization and bounds; absent while holding.",
    "forecaster_workload_measured": "Latest measured demand, in the signal's unit.",
    "forecaster_workload_sampled_timestamp_seconds": "Instant of the latest sample of a signal.",
    "forecaster_workload_verdict": "1 for the present verdict and its reason.",
    "forecaster_forecast_peak": "Forecast peak by quantile, in the signal's unit: to look at, acting or not.",
    "forecaster_forecast_lead_seconds": "Seconds until the window begins in which the peak is forecast.",
    "forecaster_forecast_coverage_ratio": "Share of peaks at or below the forecast quantile; a day old counts half.",
    "forecaster_forecast_coverage_aim_ratio": "What the coverage should be.",
    "forecaster_forecast_error_ratio": "Absolute error of the median by the measured peak.",
}
OUTER_LEVELS = (("0.1", "low"), ("0.5", "median"), ("0.95", "high"))
GAUGE_ROWS = 50
"""Rows between two looks at other requests: some milliseconds."""
GaugeSample = tuple[str, str, float]


class TableGauges:
    """The text of the newest table that was asked for, compressed: it says much the same ten thousand times."""

    def __init__(self) -> None:
        self._table: PublishedTable | None = None
        self._text: dict[str, list[bytes]] = {}
        self._lock = asyncio.Lock()

    async def pieces(self, table: PublishedTable) -> AsyncIterator[bytes]:
        """The text of a table, family by family, a piece at a time."""
        async with self._lock:
            if self._table is not table:
                self._text, self._table = await _compressed(table), table
            text = self._text
        for family, pieces in text.items():
            yield _head(family)
            opened = zlib.decompressobj()
            for piece in pieces:
                yield opened.decompress(piece)


async def _compressed(table: PublishedTable) -> dict[str, list[bytes]]:
    """The lines of each family that has any."""
    if table.meta.gauges == "none":
        return {}
    packers = {family: zlib.compressobj(1) for family in FAMILIES}
    found: dict[str, list[bytes]] = {}
    for begin in range(0, table.rows, GAUGE_ROWS):
        lines: dict[str, list[str]] = {}
        for row in range(begin, min(begin + GAUGE_ROWS, table.rows)):
            for family, labels, value in samples(table, table.entry(row)):
                lines.setdefault(family, []).append(f"{family}{{{labels}}} {value!r}\n")
        for family, some in lines.items():
            found.setdefault(family, []).append(packers[family].compress("".join(some).encode()))
        await asyncio.sleep(0)
    return {family: [*found[family], packers[family].flush()] for family in FAMILIES if family in found}


def _head(family: str) -> bytes:
    return f"# HELP {family} {FAMILIES[family]}\n# TYPE {family} gauge\n".encode()


def samples(table: PublishedTable, entry: TableEntry) -> Iterator[GaugeSample]:
    """All gauges of one workload: family, labels and value."""
    every = table.meta.gauges == "all"
    labels = f'namespace="{_escaped(entry.namespace)}",kind="{_escaped(entry.kind)}",workload="{_escaped(entry.name)}"'
    yield from _offer(table, entry, labels)
    yield "forecaster_workload_replicas", labels, int(table.number("current", entry.row))
    if entry.verdict != "hold":
        yield "forecaster_workload_recommended_replicas", labels, int(table.number("recommended", entry.row))
    for plane, signal in enumerate(table.signals):
        yield from _signal(table, entry.row, plane, f'{labels},signal="{_escaped(signal)}"', every=every)
    if lead := table.number("lead", entry.row):
        yield "forecaster_forecast_lead_seconds", labels, lead
    if every:
        yield "forecaster_workload_verdict", f'{labels},verdict="{entry.verdict}",reason="{entry.reason}"', 1
        yield from _history(table, entry, labels)


def _offer(table: PublishedTable, entry: TableEntry, labels: str) -> Iterator[GaugeSample]:
    offer = table.published(entry)
    for value in sampled_values(offer, table.meta.published_at) if offer else ():
        signal = f',signal="{_escaped(value.signal)}"' if value.signal else ""
        yield value.metric, labels + signal, value.value


def _signal(table: PublishedTable, row: int, plane: int, labels: str, *, every: bool) -> Iterator[GaugeSample]:
    def known(name: str) -> float | None:
        value: float = table.columns[name][plane][row]
        return None if value != value else value  # noqa: PLR0124  NaN

    for family, name in (
        ("forecaster_workload_measured", "measured"),
        ("forecaster_workload_sampled_timestamp_seconds", "measured_at"),
    ):
        if (value := known(name)) is not None:
            yield family, labels, value
    if (peak := known("peak")) is None:
        return
    outer = {quantile: value for quantile, name in OUTER_LEVELS if every and (value := known(name)) is not None}
    for quantile, value in {**outer, f"{known('forecast_quantile') or 0:g}": peak}.items():
        yield "forecaster_forecast_peak", f'{labels},quantile="{quantile}"', value


def _history(table: PublishedTable, entry: TableEntry, labels: str) -> Iterator[GaugeSample]:
    for one in table.past(entry).accuracy:
        signal = f'{labels},signal="{_escaped(one.signal)}"'
        yield "forecaster_forecast_coverage_ratio", signal, one.coverage
        yield "forecaster_forecast_coverage_aim_ratio", signal, one.quantile
        if one.error_ratio is not None:
            yield "forecaster_forecast_error_ratio", signal, one.error_ratio


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
