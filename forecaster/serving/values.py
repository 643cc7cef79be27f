"""The numbers that autoscalers read, one workload at a time: pure, from what was published and the present time.

`forecaster_demand` is the total demand at the lead time in the unit of its signal (cores, bytes, requests per second),
to be divided by what one replica should carry. `forecaster_replicas` and `forecaster_floor` are counts.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from forecaster.domain.published import DEMAND, FLOOR, REPLICAS
from forecaster.domain.signal import DEMAND as SIGNALS_OF_DEMAND
from forecaster.serving.abstain import LAST, Reader, Situation, instead

METRICS = (DEMAND, FLOOR, REPLICAS)
SIGNALS = tuple(str(signal) for signal in SIGNALS_OF_DEMAND)
KNOWN = frozenset({"forecast", "measured"})
"""Sources of a number that is known."""
PER_REPLICA = "AverageValue"
ONE_REPLICA = Reader(1.0)
"""What a count metric is divided by when nobody is known to read it."""


class Sample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One number of one workload."""

    value: float
    at: datetime
    """Of the newest sample behind it."""
    source: str
    """`forecast` or `measured`: what it follows from."""
    known: bool = True
    """False: it is the last one that was known, from an earlier cycle."""
    signal: str = ""
    """Empty for counts."""
    quantile: float | None = None


class Consumer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A target of the workload's HPA that reads one of our metrics."""

    metric: str
    type: str
    target: float


class Published(msgspec.Struct, frozen=True, array_like=True):
    """What is published of one workload: its numbers, its readers, and what to do without numbers."""

    replicas_now: int
    replicas_held: int
    """The count when knowledge ended; while it lasts, the present one."""
    demands: tuple[Sample, ...]
    replicas: Sample | None
    floor: Sample | None
    consumers: tuple[Consumer, ...]
    abstain: str
    last_for_seconds: float
    why: str = ""
    """The reason of the decision to hold, a word fit for every tenant's eyes; empty when all is known."""


class Moment(NamedTuple):
    """When a value is asked for, and what that means for the table it is taken from."""

    now: datetime
    published_at: datetime
    fresh: bool
    """False: the table is older than it may be, so nothing in it is known to be true now."""


class Value(NamedTuple):
    """A number to serve."""

    metric: str
    value: float
    at: datetime
    """Its sample's instant, or of a count that is kept, the table's."""
    source: str
    """forecast, measured, or the word of abstaining: last, neutral, hold."""
    signal: str
    quantile: float | None

    def age(self, now: datetime) -> timedelta:
        """How old it is; never negative, whatever the clocks say."""
        return max(now - self.at, timedelta(0))


class NotNamed(NamedTuple):
    """The request does not say which number it wants, or names one that does not exist."""

    message: str


class NotKnown(NamedTuple):
    """Nothing can be said now, and the policy forbids to say anything else."""

    message: str


Answer = Value | NotNamed | NotKnown


def value_of(published: Published, metric: str, moment: Moment, *, signal: str = "", target: float = 0.0) -> Answer:
    """The number of one metric of a workload.

    `signal` may be left out where only one is forecast; `target` is what one replica should carry, for readers that
    are no HPA of this workload and so not in the table.
    """
    if metric not in METRICS:
        return NotNamed(f"no metric {metric}; there are {', '.join(METRICS)}")
    sample = _sample(published, metric, signal)
    if isinstance(sample, NotNamed):
        return sample
    if sample is not None and sample.known and moment.fresh:
        return Value(metric, sample.value, sample.at, sample.source, sample.signal, sample.quantile)
    return _abstained(published, metric, sample or _nothing(signal), moment, _reader(published, metric, target))


def signals_of(published: Published) -> tuple[str, ...]:
    """The signals whose demand is published."""
    return tuple(sample.signal for sample in published.demands)


def _sample(published: Published, metric: str, signal: str) -> Sample | NotNamed | None:
    if metric == DEMAND:
        return _demand(published.demands, signal)
    if signal:
        return NotNamed(f"{metric} is one number for all signals; leave the signal out")
    return published.replicas if metric == REPLICAS else published.floor


def _demand(demands: tuple[Sample, ...], signal: str) -> Sample | NotNamed | None:
    if signal and signal not in SIGNALS:
        return NotNamed(f"no signal {signal[:64]!r}; there are {', '.join(SIGNALS)}")
    found = [one for one in demands if signal in {"", one.signal}]
    if len(found) > 1:
        return NotNamed(f"several signals: name one of {', '.join(one.signal for one in found)}")
    return found[0] if found else None


def _reader(published: Published, metric: str, target: float) -> Reader | None:
    if target > 0:
        return Reader(target)
    for one in published.consumers:
        if one.metric == metric:
            return Reader(one.target, one.type == PER_REPLICA)
    return None if metric == DEMAND else ONE_REPLICA


def _nothing(signal: str) -> Sample:
    """Of this nothing was ever known."""
    return Sample(math.nan, datetime.min.replace(tzinfo=UTC), "", known=False, signal=signal)


def _abstained(
    published: Published, metric: str, sample: Sample, moment: Moment, reader: Reader | None
) -> Value | NotKnown:
    situation = Situation(
        last=sample.value,
        age=moment.now - sample.at,
        last_for=timedelta(seconds=published.last_for_seconds),
        reader=reader,
        replicas_now=published.replicas_now if moment.fresh else None,
        replicas_held=published.replicas_held,
    )
    chosen = instead(published.abstain, situation)
    if chosen is None:
        return NotKnown(_why(published, moment))
    if chosen.word == LAST:
        return Value(metric, chosen.value, sample.at, chosen.word, sample.signal, sample.quantile)
    return Value(metric, chosen.value, moment.published_at, chosen.word, sample.signal, None)


def _why(published: Published, moment: Moment) -> str:
    if not moment.fresh:
        return f"the newest values are of {moment.published_at:%Y-%m-%d %H:%M:%S} UTC; nothing has been computed since"
    return published.why or "nothing is forecast or measured"
