"""Rows of the published table as values: the offer and the record of one workload, made when asked for. No numpy.

What changes with every cycle is a number in a column; small texts are written anew only when they have changed. The
sentences of a row are made of both by `horizontal.sentences`, as in the computing process.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from forecaster.domain.decision import Hold, LeadTime, Resize
from forecaster.domain.outlook import PeakForecast
from forecaster.domain.workload import Resources  # noqa: TC001  msgspec resolves the annotation
from forecaster.horizontal.codes import REASONS
from forecaster.horizontal.row import NO_RULES, Outlook, RowNumbers, RowWords, TargetNumbers, TargetWords
from forecaster.publish.values import HOLD, MetricTarget, OfferedNumber, WorkloadOffer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SOURCE_CODES = ("", "measured", "forecast")
"""What a code of the source of a number means."""
ABSTAIN = ("auto", "neutral", "hold", "last", "fail")
"""What a code of abstaining means."""
MODE_CODES = ("observe", "publish", "floor", "scale")
"""What a code of the mode of a policy means."""


_encoder, _sizes_encoder = msgspec.msgpack.Encoder(), msgspec.json.Encoder()
_stated = msgspec.msgpack.Decoder(RowWords)
_outlook = msgspec.msgpack.Decoder(Outlook)
_lead_time = msgspec.msgpack.Decoder(tuple[float, str])


def encoded_words(words: RowWords) -> bytes:
    """Encode the words of a row."""
    return _encoder.encode(words)


def encoded_lead_time(lead: LeadTime) -> bytes:
    """Encode a lead time: seconds and origin."""
    return _encoder.encode((lead.value.total_seconds(), lead.origin))


ROW_TEXTS = ("shut", "hold", "event", "event_most", "outage")
"""Columns of names with the texts of a row, which its words have under the same names."""


class RowColumns(Protocol):
    """Columns of rows."""

    @property
    def signals(self) -> tuple[str, ...]:
        """The planes of columns by signal."""

    @property
    def columns(self) -> Mapping[str, Sequence[Sequence[Any]]]:
        """Return the columns by name, [plane][row]."""

    def name(self, code: int) -> bytes:
        """Return the text to which columns of names refer by this position."""


def words_of(table: RowColumns, row: int) -> RowWords:
    """Return what is said of one row beside its numbers."""

    def text(name: str, plane: int = 0) -> bytes:
        return table.name(table.columns[name][plane][row])

    stated, reason = _stated.decode(text("stated")), table.columns["nothing_decided"][0][row]
    if reason >= 0:
        hold, word = text("hold").decode(), REASONS[reason]
        return RowWords(NO_RULES, autoscaler=stated.autoscaler, hold=hold, nothing_decided=word)
    seconds, origin = _lead_time.decode(text("lead_time"))
    places = count()
    targets = tuple(_said_of(target, text, next(places)) if target.usable else target for target in stated.targets)
    texts: dict[str, Any] = {name: text(name).decode() for name in ROW_TEXTS}
    return stated._replace(targets=targets, lead_seconds=seconds, lead_origin=origin, **texts)


def _said_of(target: TargetWords, text: Callable[[str, int], bytes], place: int) -> TargetWords:
    """Return a target with what is said of its measurement and forecast; `place` is its place among usable targets."""
    outlook = _outlook.decode(text("outlook", place))
    return target._replace(unmeasured=text("unmeasured", place).decode(), **outlook._asdict())


class StoredSizes(msgspec.Struct, frozen=True):
    """Requests and limits of a pod as they are, and what was decided about them: to resize or to hold."""

    now: Resources
    resize: Resize | None
    hold: Hold | None

    @property
    def decided(self) -> Resize | Hold:
        """What was decided."""
        return cast("Resize | Hold", self.resize or self.hold)


def encoded_sizes(now: Resources, decided: Resize | Hold) -> bytes:
    """Encode what was decided about the size of a pod."""
    resize, hold = (decided, None) if isinstance(decided, Resize) else (None, decided)
    return _sizes_encoder.encode(StoredSizes(now, resize, hold))


def row_numbers(table: RowColumns, row: int, words: RowWords, at: datetime) -> RowNumbers:
    """Return the numbers of one row."""

    def number(name: str) -> Any:
        return table.columns[name][0][row]

    usable = [one for one in words.targets if one.usable]
    return RowNumbers(
        at=at,
        current=int(number("current")),
        replicas=int(number("recommended")),
        reason=REASONS[number("reason")],
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
        why="" if known else REASONS[columns["reason"][0][row]],
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
