"""The number that a reader gets from an offer at an instant, and its substitute where none is known. Pure, no numpy.

`forecaster_demand` is the total demand at the lead time in the unit of its signal, to be divided by what one replica
should carry. `forecaster_replicas` and `forecaster_floor` are counts. All three have every clamp in them but those that
the HPA applies itself.

An HPA never looks at the age of a value, so a value that is served is believed. Which one does no harm where nothing
is known depends on its reader: a value keeps a count only as a multiple of the reader's own target
(docs/external-metrics.md). Never 0, never an invented number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from forecaster.domain.decision import Reason
from forecaster.domain.published import DEMAND_METRIC, FLOOR, KEDA_FORMULA, METRICS, REPLICAS, OwnMetric, own_metric
from forecaster.domain.workload import Target

KNOWN = frozenset({"forecast", "measured"})
"""Sources of a number that is known."""
PER_REPLICA = "AverageValue"
CLOCK_SKEW = timedelta(seconds=30)
"""Largest distance of an instant ahead of the reader's clock. Beyond it a clock is wrong, and the value is not used."""

LAST: Final = "last"
"""The last value that was known, while its newest sample is young enough."""
RAISE: Final = "raise"
"""Answer as for `hold`, but only where that asks for at least as many replicas as there are."""
NEUTRAL: Final = "neutral"
"""The value that keeps the current count: the reader's target times that count."""
HOLD: Final = "hold"
"""The value that asks for the count to keep: that of the instant at which knowledge ended, or of a frozen workload."""
ORDER: Final = {"auto": (RAISE, NEUTRAL), LAST: (LAST,), NEUTRAL: (NEUTRAL,), HOLD: (HOLD,), "fail": ()}
"""Values that each policy tries in turn; an error if none is known.

By default an unknown value lowers no count: a person may have raised it, because of a load that is not measured.
"""


class OfferedNumber(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One number of one workload."""

    value: float
    at: datetime
    """Instant of the latest sample behind it."""
    source: str
    """Origin of the number: `forecast` or `measured`."""
    known: bool = True
    """False: it is the last one that was known, from an earlier cycle."""
    signal: str = ""
    """Empty for counts."""
    quantile: float | None = None


class MetricTarget(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A target of the workload's HPA that reads one of our metrics."""

    metric: str
    type: str
    target: float
    signal: str = ""
    """Signal of our demand, where the metric's name states it."""


def metric_readers(targets: Iterable[Target]) -> tuple[MetricTarget, ...]:
    """Return the targets of an HPA that read one of our metrics, and that of a formula of KEDA, which may do so."""
    formula = OwnMetric(KEDA_FORMULA)
    named = ((formula if target.metric == KEDA_FORMULA else own_metric(target.metric), target) for target in targets)
    return tuple(
        MetricTarget(own.metric, target.type.value, target.value, own.signal or target.signal)
        for own, target in named
        if own
    )


def encoded_readers(targets: Iterable[Target]) -> bytes:
    """Encode the targets of an HPA that read one of our metrics, as in the table; empty where there are none."""
    return msgspec.json.encode(readers) if (readers := metric_readers(targets)) else b""


class WorkloadOffer(msgspec.Struct, frozen=True, array_like=True):
    """The offer of one workload: its numbers, its readers, and what to answer without numbers."""

    replicas_now: int
    replicas_held: int
    """The count to keep: the current one while all is known or frozen, else that of when knowledge ended."""
    demands: tuple[OfferedNumber, ...]
    replicas: OfferedNumber | None
    floor: OfferedNumber | None
    consumers: tuple[MetricTarget, ...]
    abstain: str
    """The policy's; `hold` while the workload is frozen."""
    last_for_seconds: float
    why: str = ""
    """The reason of the decision to hold, a word fit for every tenant's eyes; empty when all is known."""
    signals: tuple[str, ...] = ()
    """Signals that decide the count; no other has a demand."""
    replicas_most: int = 0
    """The most replicas that are not idle by the upper quantile of the forecast; never below `replicas`."""
    live: bool = False
    """Whether count and readers come from the API server: then they are current only while `confirmed`."""
    confirmed: datetime | None = None
    """Instant up to which the API server confirmed them; None where that is not known, or too long ago."""


class Moment(NamedTuple):
    """Instant at which a value is read, and whether the table of the value is fresh then."""

    now: datetime
    published_at: datetime
    fresh: bool
    """False: the table is too old, or from the future, so nothing in it is known to be true now."""


class OfferedValue(NamedTuple):
    """A number to serve."""

    metric: str
    value: float
    at: datetime
    """Instant of its sample, or of the table for a count that is kept."""
    source: str
    """forecast, measured, or the word of abstaining: last, neutral, hold."""
    signal: str
    quantile: float | None

    def age(self, now: datetime) -> timedelta:
        """Return its age; never negative, whatever the clocks say."""
        return max(now - self.at, timedelta(0))


class NotNamed(NamedTuple):
    """The request does not name its number, or names one that does not exist."""

    message: str


class NotKnown(NamedTuple):
    """No value now, and the policy forbids a substitute."""

    message: str


Answer = OfferedValue | NotNamed | NotKnown


class MetricReader(NamedTuple):
    """The target of a metric's reader, and whether that is for one replica or for all of them together."""

    target: float
    per_replica: bool = True


ONE_REPLICA = MetricReader(1.0)
"""Divisor of a count without a known reader."""


def value_of(offer: WorkloadOffer, metric: str, moment: Moment, *, signal: str = "", target: float = 0.0) -> Answer:
    """Return the number of one metric of a workload.

    `signal` may be left out where the count is decided by one; `target` is the load of one replica, for readers that
    are no HPA of this workload and so not in the table.
    """
    if metric not in METRICS:
        return NotNamed(f"no metric {metric}; there are {', '.join(METRICS)}")
    signal = signal or (offer.signals[0] if metric == DEMAND_METRIC and len(offer.signals) == 1 else "")
    number = _number(offer, metric, signal)
    if isinstance(number, NotNamed):
        return number
    if number is not None and number.known and moment.fresh:
        return OfferedValue(metric, number.value, number.at, number.source, number.signal, number.quantile)
    reader = _reader(offer, metric, signal, target)
    if isinstance(reader, NotNamed):
        return reader
    never = OfferedNumber(math.nan, datetime.min.replace(tzinfo=UTC), "", known=False, signal=signal)
    return _abstained_answer(offer, metric, number or never, moment, reader)


def values_for(
    offer: WorkloadOffer | None, targets: Iterable[Target], at: datetime, demand_signal: str = ""
) -> dict[str, float]:
    """Return what the HPA with these targets reads of our metrics just now, by its own names; refusals are absent.

    `demand_signal` is the one that a selector names, which is not known.
    """
    moment, values = Moment(at, at, fresh=True), {}
    for target in targets:
        own = own_metric(target.metric)
        if offer is None or own is None:
            continue
        signal = own.signal or target.signal or (demand_signal if own.metric == DEMAND_METRIC else "")
        value = value_of(offer, own.metric, moment, signal=signal)
        if isinstance(value, OfferedValue):
            values[target.metric] = value.value
    return values


def sampled_values(offer: WorkloadOffer, at: datetime) -> Iterator[OfferedValue]:
    """Every number that a store of samples takes: it repeats a value for minutes, and its readers are not known.

    So it gets none that is itself repeated, nor one that keeps a count by the target of another reader.
    """
    moment = Moment(at, at, fresh=True)
    demands = ((DEMAND_METRIC, signal) for signal in offer.signals)
    for metric, signal in ((REPLICAS, ""), (FLOOR, ""), *demands):
        value = value_of(offer, metric, moment, signal=signal, target=0.0 if metric == DEMAND_METRIC else 1.0)
        if isinstance(value, OfferedValue) and (
            value.source in KNOWN or (value.source == HOLD and metric != DEMAND_METRIC)
        ):
            yield value


def _number(offer: WorkloadOffer, metric: str, signal: str) -> OfferedNumber | NotNamed | None:
    if metric == DEMAND_METRIC:
        return _demand(offer, signal)
    if signal:
        return NotNamed(f"{metric} is one number for all signals; leave the signal out")
    return offer.replicas if metric == REPLICAS else offer.floor


def _demand(offer: WorkloadOffer, signal: str) -> OfferedNumber | NotNamed | None:
    if offer.signals and signal not in offer.signals:
        there = ", ".join(offer.signals)
        if signal:
            return NotNamed(f"the count is not decided by signal {signal[:64]!r}; there are {there}")
        return NotNamed(f"several signals: name one of {there}")
    return next((demand for demand in offer.demands if demand.signal == signal), None)


def _reader(offer: WorkloadOffer, metric: str, signal: str, target: float) -> MetricReader | NotNamed | None:
    """Return the reader that keeps its count; two different targets of a metric leave open which one asks."""
    if target > 0:  # in a formula like `ours + other` a kept count would grow at each sync, up to the maximum
        return None if any(consumer.metric == KEDA_FORMULA for consumer in offer.consumers) else MetricReader(target)
    readers = {
        MetricReader(consumer.target, consumer.type == PER_REPLICA)
        for consumer in offer.consumers
        if consumer.metric == metric and consumer.signal in {"", signal}
    }
    if len(readers) > 1:
        return NotNamed(f"the HPA has {len(readers)} targets of {metric} that differ: it is not known which one asks")
    return next(iter(readers), None if metric == DEMAND_METRIC else ONE_REPLICA)


def _abstained_answer(
    offer: WorkloadOffer, metric: str, number: OfferedNumber, moment: Moment, reader: MetricReader | None
) -> OfferedValue | NotKnown:
    inputs = AbstainInputs(
        last=number.value,
        age=moment.now - number.at,
        last_for=timedelta(seconds=offer.last_for_seconds),
        reader=reader,
        replicas_now=current_count(offer, moment),
        replicas_held=offer.replicas_held,
    )
    chosen = abstained(offer.abstain, inputs)
    if chosen is None:
        return NotKnown(_why(offer, moment))
    word, value = chosen
    if word == LAST:
        return OfferedValue(metric, value, number.at, word, number.signal, number.quantile)
    return OfferedValue(metric, value, offer.confirmed or moment.published_at, word, number.signal, None)


def current_count(offer: WorkloadOffer, moment: Moment) -> int | None:
    """Return the count that the workload has now.

    None where the table is old, or has the last listing only, or the API server has not answered lately: a person may
    have scaled the workload since, and its owner may have changed the target.
    """
    if offer.live:
        return offer.replicas_now if offer.confirmed else None
    return offer.replicas_now if moment.fresh and offer.why != Reason.SOURCE_DOWN else None


def _why(offer: WorkloadOffer, moment: Moment) -> str:
    if moment.published_at > moment.now + CLOCK_SKEW:
        return f"the newest values are of {moment.published_at:%Y-%m-%d %H:%M:%S} UTC, which is in the future"
    if not moment.fresh:
        return f"the newest values are of {moment.published_at:%Y-%m-%d %H:%M:%S} UTC; nothing has been computed since"
    silent = "; the API server has not answered lately, so the present count is not known, either"
    return (offer.why or "no demand is measured or forecast") + (silent if offer.live and not offer.confirmed else "")


class AbstainInputs(NamedTuple):
    """Facts from which an answer without a known number is made."""

    last: float
    age: timedelta
    """Age of the latest sample behind `last`; longer than any policy allows if there never was one."""
    last_for: timedelta
    reader: MetricReader | None
    replicas_now: int | None
    """None where the count is out of date, too."""
    replicas_held: int

    def value(self, word: str) -> float | None:
        """Return the value of a word for unknown values; None where there is none."""
        young = -CLOCK_SKEW <= self.age <= self.last_for  # a sample from the future would be young for ever
        last, neutral = self.last if young else None, _keeping(self.replicas_now, self.reader)
        match word:
            case "last":
                return last
            case "raise":  # at 0 replicas nothing can be lowered
                unchanged = 0.0 if self.replicas_now == 0 else neutral
                return None if last is None or unchanged is None or last < unchanged else last
            case "neutral":
                return neutral
            case _:
                return _keeping(self.replicas_held, self.reader)


def abstained(policy: str, inputs: AbstainInputs) -> tuple[str, float] | None:
    """Return the first value in the order of the policy, under the word for it; None when it has to be an error."""
    candidates = ((word, inputs.value(word)) for word in ORDER[policy])
    return next(((LAST if word == RAISE else word, value) for word, value in candidates if value is not None), None)


def _keeping(replicas: int | None, reader: MetricReader | None) -> float | None:
    """HPA rules §8: a ratio of 1 to the target is inside every tolerance. At 0 replicas only 0 would keep it."""
    if not replicas or reader is None:
        return None
    return reader.target * replicas if reader.per_replica else reader.target
