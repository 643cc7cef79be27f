"""Rows of the published table as values: the offer and the record of one workload, made when asked for. No numpy.

What changes with every cycle is a number in a column; what is said in words is a text that is written anew only when
the count, a reason or a rule has changed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from forecaster.domain.decision import Reason, Scale
from forecaster.publish.values import HOLD, MetricTarget, OfferedNumber, WorkloadOffer
from forecaster.publish.views import ClampView, ForecastView, LeadTimeView, RecommendationView, ReplicasView, SignalItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.domain.decision import Clamp, Recommendation, SignalView
    from forecaster.publish.table import TableMeta
    from forecaster.publish.views import ResourcesView

SOURCES = ("", "measured", "forecast")
"""What a code of the source of a number means."""
ABSTAIN = ("auto", "neutral", "hold", "last", "fail")
"""What a code of abstaining means."""
REASON_WORDS = tuple(str(reason) for reason in Reason)
"""What a code of the reason of a decision means."""


class ForecastText(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is said of the forecast of one target; its window begins and ends so many seconds after the decision."""

    model: str
    begin: float
    until: float
    note: str = ""


class TargetText(msgspec.Struct, frozen=True, array_like=True):
    """What is said of one target, and the counts that it asks for."""

    signal: str
    unit: str
    target: str
    reactive: int | None
    replicas: int | None
    note: str
    forecast: ForecastText | None


class RowText(msgspec.Struct, frozen=True, array_like=True):
    """What is said of one workload."""

    autoscaler: str
    message: str
    targets: tuple[TargetText, ...]
    clamps: tuple[tuple[str, int, int, str], ...]
    lead_seconds: float | None
    lead_origin: str


def row_text(one: Recommendation) -> RowText:
    """The words of a recommendation."""
    lead = one.lead_time
    return RowText(
        autoscaler=one.autoscaler,
        message=one.replicas.message,
        targets=tuple(_target(view, one.at) for view in one.signals),
        clamps=tuple(map(_clamp, one.clamps)),
        lead_seconds=None if lead is None else lead.value.total_seconds(),
        lead_origin="" if lead is None else lead.origin,
    )


def recommended_count(one: Recommendation) -> int:
    """The recommended count; -1 while holding."""
    return one.replicas.replicas if isinstance(one.replicas, Scale) else -1


def _target(view: SignalView, at: datetime) -> TargetText:
    ahead = view.forecast
    forecast = None
    if ahead is not None:
        begin, until = (ahead.begin - at).total_seconds(), (ahead.until - at).total_seconds()
        forecast = ForecastText(ahead.model, begin, until, ahead.note)
    counts = view.reactive_replicas, view.forecast_replicas
    return TargetText(str(view.signal), view.unit, view.target, *counts, view.note, forecast)


def _clamp(clamp: Clamp) -> tuple[str, int, int, str]:
    return (clamp.rule, clamp.before, clamp.after, clamp.why)


class _Table(Protocol):
    meta: TableMeta
    signals: tuple[str, ...]

    @property
    def columns(self) -> Mapping[str, Sequence[Sequence[Any]]]:
        """By name, [plane][row]."""


class _TableRow(Protocol):
    @property
    def row(self) -> int: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def reason(self) -> str: ...


def record_view(table: _Table, entry: _TableRow, text: RowText, sizes: ResourcesView) -> RecommendationView:
    """The public form of one row: its numbers, its words and its sizes."""
    recommended = int(table.columns["recommended"][0][entry.row])
    count = None if recommended < 0 else recommended
    now = int(table.columns["current"][0][entry.row])
    lead = None if text.lead_seconds is None else LeadTimeView(text.lead_seconds, text.lead_origin)
    return RecommendationView(
        entry.namespace,
        entry.kind,
        entry.name,
        at=table.meta.published_at,
        autoscaler=text.autoscaler or None,
        replicas=ReplicasView(now, count, entry.verdict, entry.reason, text.message),
        resources=sizes,
        signals=tuple(_signal(table, entry.row, target) for target in text.targets),
        clamps=tuple(ClampView(*clamp) for clamp in text.clamps),
        lead_time=lead,
    )


def _signal(table: _Table, row: int, text: TargetText) -> SignalItem:
    known = table.signals.index(text.signal) if text.target and text.signal in table.signals else None
    measured = at = forecast = None
    if known is not None:
        measured, at = _cell(table.columns, "measured", known, row), _cell(table.columns, "measured_at", known, row)
        forecast = None if text.forecast is None else _forecast(table, known, row, text.forecast)
    instant = None if at is None else datetime.fromtimestamp(at, UTC)
    counts = text.reactive, forecast, text.replicas
    return SignalItem(text.signal, text.unit, text.target, measured, instant, *counts, text.note)


def _forecast(table: _Table, signal: int, row: int, text: ForecastText) -> ForecastView | None:
    names = ("forecast_quantile", "peak", "low", "median", "high")
    numbers = [_cell(table.columns, name, signal, row) for name in names]
    if numbers[1] is None:
        return None
    begin, until = (table.meta.published_at + timedelta(seconds=after) for after in (text.begin, text.until))
    quantile, peak, low, median, high = (peak_or(one, numbers[1]) for one in numbers)
    return ForecastView(text.model, quantile, peak, low, median, high, begin, until, text.note)


def peak_or(number: float | None, peak: float) -> float:
    """A quantile of a peak; the peak itself where only that is known."""
    return peak if number is None else number


def workload_offer(
    columns: Mapping[str, Sequence[Sequence[Any]]], signals: tuple[str, ...], row: int, readers: bytes
) -> WorkloadOffer | None:
    """What is offered of one row; None where its policy only observes. `readers` are its encoded metric targets."""
    if not columns["published"][0][row]:
        return None
    known = bool(columns["replicas_known"][0][row])
    demands = (_number(columns, "demand", plane, row, signal) for plane, signal in enumerate(signals))
    return WorkloadOffer(
        replicas_now=int(columns["current"][0][row]),
        replicas_held=int(columns["held"][0][row]),
        demands=tuple(number for number in demands if number is not None),
        replicas=_number(columns, "replicas", 0, row),
        floor=_number(columns, "floor", 0, row),
        consumers=_readers.decode(readers) if readers else (),
        abstain=HOLD if columns["frozen"][0][row] else ABSTAIN[columns["abstain"][0][row]],
        last_for_seconds=float(columns["last_for"][0][row]),
        why="" if known else REASON_WORDS[columns["reason"][0][row]],
        signals=tuple(signal for plane, signal in enumerate(signals) if columns["decides"][plane][row]),
        replicas_most=int(columns["most"][0][row]),
    )


_readers = msgspec.json.Decoder(tuple[MetricTarget, ...])


def _number(
    columns: Mapping[str, Sequence[Sequence[Any]]], name: str, plane: int, row: int, signal: str = ""
) -> OfferedNumber | None:
    value = _cell(columns, f"{name}_value", plane, row)
    if value is None:
        return None
    at = datetime.fromtimestamp(columns[f"{name}_at"][plane][row], UTC)
    source, known = SOURCES[columns[f"{name}_source"][plane][row]], bool(columns[f"{name}_known"][plane][row])
    quantile = _cell(columns, f"{name}_quantile", plane, row) if signal else None
    return OfferedNumber(value, at, source, known, signal, quantile)


def _cell(columns: Mapping[str, Sequence[Sequence[Any]]], name: str, plane: int, row: int) -> float | None:
    """A number, None where the column has NaN."""
    value = float(columns[name][plane][row])
    return None if value != value else value  # noqa: PLR0124  NaN
