"""Rows of the published table as values: the offer and the record of one workload, made on request. No numpy.

Numbers, which change with every cycle, are columns; texts are written again only when they have changed. The sentences
of a row are made of both by `horizontal.sentences`, as in the computing process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Protocol, cast

import msgspec

from forecaster.domain.decision import Hold, LeadTime, Resize
from forecaster.domain.signal import PeakForecast
from forecaster.domain.workload import Resources
from forecaster.horizontal.row import NO_RULES, REASONS, DecidedRow, DecidedTarget, ForecastDetails, RuleNumbers
from forecaster.publish.values import HOLD, MetricTarget, OfferedNumber, WorkloadOffer

SOURCE_CODES = ("", "measured", "forecast")
"""Sources of a number, by code."""
ABSTAIN = ("auto", "neutral", "hold", "last", "fail")
"""Policies for unknown values, by code."""
MODE_CODES = ("observe", "publish", "floor", "scale")
"""Modes of a policy, by code."""
OBSERVE = MODE_CODES.index("observe")
"""Mode of a policy that offers nothing."""


_encoder, _sizes_encoder = msgspec.msgpack.Encoder(), msgspec.json.Encoder()
_stated = msgspec.msgpack.Decoder(tuple[RuleNumbers, tuple[DecidedTarget, ...], str])
_outlook = msgspec.msgpack.Decoder(ForecastDetails)
_lead_time = msgspec.msgpack.Decoder(tuple[float, str])


def encoded_stated(row: DecidedRow) -> bytes:
    """Encode what policy and HPA state of a row."""
    targets = [(target.signal, target.target, target.note, target.unit, target.pod) for target in row.targets]
    return _encoder.encode((row.rules, targets, row.autoscaler))


def encoded_lead_time(lead: LeadTime) -> bytes:
    """Encode a lead time: seconds and origin."""
    return _encoder.encode((lead.value.total_seconds(), lead.origin))


ROW_TEXTS = ("shut", "hold", "event", "event_most", "outage")
"""Columns of names with the texts of a row, which `DecidedRow` has under the same names."""


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


def decided_row(table: RowColumns, row: int, at: datetime) -> DecidedRow:
    """Return one row of the decisions at `at`."""

    def number(name: str) -> Any:
        return table.columns[name][0][row]

    def text(name: str) -> str:
        return table.name(number(name)).decode()

    rules, targets, autoscaler = _stated.decode(table.name(number("stated")))
    current, withheld = int(number("current")), number("nothing_decided")
    if withheld >= 0:
        held = DecidedRow(NO_RULES, autoscaler=autoscaler, at=at, current=current)
        return held._replace(reason=REASONS[withheld], withheld=True, hold=text("hold"))
    seconds, origin = _lead_time.decode(table.name(number("lead_time")))
    texts: dict[str, Any] = {name: text(name) for name in ROW_TEXTS}
    places = count()
    return DecidedRow(
        rules,
        tuple(_target(table, row, next(places), target, at) if target.usable else target for target in targets),
        autoscaler,
        at=at,
        current=current,
        replicas=int(number("recommended")),
        reason=REASONS[number("reason")],
        reactive=int(number("counts")),
        forecast=int(number("by_forecast")),
        counts=tuple(int(plane[row]) for plane in table.columns["counts"][1:]),
        outage_until=float(number("outage_until")),
        lead_time=LeadTime(timedelta(seconds=seconds), origin),
        **texts,
    )


def loss_to_survive(table: RowColumns, row: int) -> str:
    """Return which loss the policy of a row wants to survive, or `none`."""
    return _stated.decode(table.name(table.columns["stated"][0][row]))[0].survive


def _target(table: RowColumns, row: int, place: int, stated: DecidedTarget, at: datetime) -> DecidedTarget:
    """Return one target, at this place among the usable ones; its measurement is that of its signal."""

    def number(name: str, plane: int = place) -> Any:
        return table.columns[name][plane][row]

    signal, outlook = table.signals.index(stated.signal), _outlook.decode(table.name(number("outlook")))
    return stated._replace(
        unseen=int(number("unseen")),
        unmeasured=table.name(number("unmeasured")).decode(),
        measured=float(number("measured", signal)),
        age=float(number("age")),
        reactive=int(number("asked")),
        forecast=int(number("foreseen")),
        ahead=_peak_forecast(table, signal, row, outlook, at) if outlook.model else None,
        unforeseen=outlook.unforeseen,
    )


def _peak_forecast(
    table: RowColumns, signal: int, row: int, outlook: ForecastDetails, at: datetime
) -> PeakForecast | None:
    """Return the forecast; quantiles of its peak are the peak itself where only that is known."""
    peak = _cell(table.columns, "peak", signal, row)
    if peak is None:
        return None
    quantiles = (_cell(table.columns, name, signal, row) for name in ("forecast_quantile", "low", "median", "high"))
    quantile, low, median, high = (peak if number is None else number for number in quantiles)
    begin, until = (at + timedelta(seconds=after) for after in (outlook.begin, outlook.until))
    return PeakForecast(outlook.model, quantile, peak, low, median, high, begin, until, outlook.remark)


def verdict_of(current: int, recommended: int | None) -> str:
    """Compare a recommended count with the present one, in a word."""
    if recommended is None:
        return "hold"
    return "keep" if recommended == current else "up" if recommended > current else "down"


class StoredSizes(msgspec.Struct, frozen=True):
    """Present requests and limits of a pod, and the decision about them: resize or hold."""

    now: Resources
    resize: Resize | None
    hold: Hold | None

    @property
    def decided(self) -> Resize | Hold:
        """Return the decision about the size."""
        return cast("Resize | Hold", self.resize or self.hold)


def encoded_sizes(now: Resources, decided: Resize | Hold) -> bytes:
    """Encode the decision about the size of a pod."""
    resize, hold = (decided, None) if isinstance(decided, Resize) else (None, decided)
    return _sizes_encoder.encode(StoredSizes(now, resize, hold))


def workload_offer(
    columns: Mapping[str, Sequence[Sequence[Any]]], signals: tuple[str, ...], row: int, readers: bytes
) -> WorkloadOffer | None:
    """Return the offer of one row; None where its policy only observes. `readers` are its encoded metric targets."""
    if columns["mode"][0][row] == OBSERVE:
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
