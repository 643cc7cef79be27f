"""Rows of the published table as values: the offer and the record of one workload, made when asked for. No numpy.

What changes with every cycle is a number in a column; small texts are written anew only when they have changed. The
sentences of a row are made of both by `horizontal.sentences`, as in the computing process.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from forecaster.domain.decision import LeadTime, Reason
from forecaster.domain.outlook import PeakForecast
from forecaster.horizontal.row import NO_RULES, Outlook, RowNumbers, RowWords, TargetNumbers, TargetWords
from forecaster.horizontal.sentences import replica_record
from forecaster.publish.values import HOLD, MetricTarget, OfferedNumber, WorkloadOffer
from forecaster.publish.views import (
    LeadTimeView,
    RecommendationView,
    clamp_view,
    forecast_state_view,
    replicas_view,
    signal_item,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.publish.reader import TableEntry
    from forecaster.publish.table import TableMeta
    from forecaster.publish.views import ResourcesView

SOURCE_CODES = ("", "measured", "forecast")
"""What a code of the source of a number means."""
ABSTAIN = ("auto", "neutral", "hold", "last", "fail")
"""What a code of abstaining means."""
MODE_CODES = ("observe", "publish", "floor", "scale")
"""What a code of the mode of a policy means."""
REASON_WORDS = tuple(str(reason) for reason in Reason)
"""What a code of the reason of a decision means."""


_encoder = msgspec.msgpack.Encoder()
_stated = msgspec.msgpack.Decoder(RowWords)
_outlook = msgspec.msgpack.Decoder(Outlook)
_lead_time = msgspec.msgpack.Decoder(tuple[float, str])


def encoded_words(words: RowWords) -> bytes:
    """Encode the words of a row."""
    return _encoder.encode(words)


def encoded_lead_time(lead: LeadTime) -> bytes:
    """Encode a lead time: seconds and origin."""
    return _encoder.encode((lead.value.total_seconds(), lead.origin))


class WordTexts(NamedTuple):
    """The texts of one row from which its words are made, and why nothing was decided."""

    nothing_decided: int
    """A position in `REASON_WORDS`; -1 where the row was decided."""
    stated: bytes
    shut: bytes
    hold: bytes
    event: bytes
    event_most: bytes
    outage: bytes
    lead_time: bytes
    unmeasured: tuple[bytes, ...]
    """[target]"""
    outlook: tuple[bytes, ...]
    """[target]"""


def words_of(texts: WordTexts) -> RowWords:
    """Return the words of a row."""
    words = _stated.decode(texts.stated)
    if texts.nothing_decided >= 0:
        reason = REASON_WORDS[texts.nothing_decided]
        return RowWords(NO_RULES, autoscaler=words.autoscaler, hold=texts.hold.decode(), nothing_decided=reason)
    seconds, origin = _lead_time.decode(texts.lead_time)
    said = zip(texts.unmeasured, texts.outlook, strict=True)
    return words._replace(
        targets=tuple(_said_of(target, *next(said)) if target.usable else target for target in words.targets),
        shut=texts.shut.decode(),
        hold=texts.hold.decode(),
        event=texts.event.decode(),
        event_most=texts.event_most.decode(),
        outage=texts.outage.decode(),
        lead_seconds=seconds,
        lead_origin=origin,
    )


def _said_of(target: TargetWords, unmeasured: bytes, outlook: bytes) -> TargetWords:
    """Return a target with what is said of its measurement and forecast."""
    return target._replace(unmeasured=unmeasured.decode(), **_outlook.decode(outlook)._asdict())


class RowColumns(Protocol):
    """Columns of rows."""

    @property
    def signals(self) -> tuple[str, ...]:
        """The planes of columns by signal."""

    @property
    def columns(self) -> Mapping[str, Sequence[Sequence[Any]]]:
        """Return the columns by name, [plane][row]."""


class _Table(RowColumns, Protocol):
    meta: TableMeta


def record_view(table: _Table, entry: TableEntry, words: RowWords, sizes: ResourcesView) -> RecommendationView:
    """The public form of one row, made of its numbers, its words and its sizes."""
    numbers = row_numbers(table, entry.row, words, table.meta.published_at)
    decided = replica_record(numbers, words)
    lead = None if words.lead_seconds is None else LeadTimeView(words.lead_seconds, words.lead_origin)
    return RecommendationView(
        entry.namespace,
        entry.kind,
        entry.name,
        at=table.meta.published_at,
        autoscaler=words.autoscaler or None,
        replicas=replicas_view(numbers.current, decided.verdict),
        resources=sizes,
        signals=tuple(map(signal_item, decided.signals)),
        clamps=tuple(map(clamp_view, decided.clamps)),
        lead_time=lead,
        mode=MODE_CODES[table.columns["mode"][0][entry.row]],
        forecast=forecast_state_view(words.shut, decided.signals, decided.verdict),
    )


def row_numbers(table: RowColumns, row: int, words: RowWords, at: datetime) -> RowNumbers:
    """The numbers of one row, as far as its public form has them: a forecast that is only watched is not told."""

    def number(name: str) -> Any:
        return table.columns[name][0][row]

    usable = [one for one in words.targets if one.usable]
    return RowNumbers(
        at=at,
        current=int(number("current")),
        replicas=int(number("recommended")),
        offered=int(number("recommended")),
        reason=Reason(REASON_WORDS[number("reason")]),
        watched=False,
        reactive=int(number("counts")),
        forecast=int(number("by_forecast")),
        counts=tuple(int(plane[row]) for plane in table.columns["counts"][1:]),
        outage_until=float(number("outage_until")),
        targets=tuple(_target_numbers(table, row, target, one, at) for target, one in enumerate(usable)),
    )


def _target_numbers(table: RowColumns, row: int, target: int, words: TargetWords, at: datetime) -> TargetNumbers:
    """The numbers of one target; what is measured and forecast is that of its signal."""
    signal = table.signals.index(words.signal)
    return TargetNumbers(
        unseen=int(table.columns["unseen"][target][row]),
        measured=float(table.columns["measured"][signal][row]),
        age=float(table.columns["age"][target][row]),
        reactive=int(table.columns["asked"][target][row]),
        forecast=int(table.columns["foreseen"][target][row]),
        ahead=_ahead(table, signal, row, words, at) if words.model else None,
    )


def _ahead(table: RowColumns, signal: int, row: int, words: TargetWords, at: datetime) -> PeakForecast | None:
    peak = _cell(table.columns, "peak", signal, row)
    if peak is None:
        return None
    names = ("forecast_quantile", "low", "median", "high")
    quantile, low, median, high = (peak_or(_cell(table.columns, name, signal, row), peak) for name in names)
    begin, until = (at + timedelta(seconds=after) for after in (words.begin, words.until))
    return PeakForecast(words.model, quantile, peak, low, median, high, begin, until, words.remark)


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
    source, known = SOURCE_CODES[columns[f"{name}_source"][plane][row]], bool(columns[f"{name}_known"][plane][row])
    quantile = _cell(columns, f"{name}_quantile", plane, row) if signal else None
    return OfferedNumber(value, at, source, known, signal, quantile)


def _cell(columns: Mapping[str, Sequence[Sequence[Any]]], name: str, plane: int, row: int) -> float | None:
    """A number, None where the column has NaN."""
    value = float(columns[name][plane][row])
    return None if value != value else value  # noqa: PLR0124  NaN
