"""How old a table is, and whether that is too old. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from forecaster.domain.published import DEMAND, FLOOR, REPLICAS
from forecaster.domain.signal import DEMAND as SIGNALS_OF_DEMAND

if TYPE_CHECKING:
    from forecaster.publish.table import TableEntry, TableMeta
    from forecaster.serving.reader import PublishedTable


STALE_INTERVALS = 3
"""Intervals without a new table before its values are called stale: one may be late, two may be skipped."""


class TableAge(msgspec.Struct, frozen=True):
    """How old the decisions are, and whether that is too old."""

    published_at: datetime
    age_seconds: float
    stale: bool


def age_of(meta: TableMeta, now: datetime, stale_after: timedelta | None) -> TableAge:
    """The age of a table at `now`; never negative, whatever the clocks say."""
    limit = timedelta(seconds=STALE_INTERVALS * meta.interval_seconds) if stale_after is None else stale_after
    age = max(now - meta.published_at, timedelta(0))
    return TableAge(meta.published_at, age.total_seconds(), age > limit)


# What a metric says when nothing is known: neutral, hold, last or nothing at all. Never 0, never an invented number.
#
# An HPA never looks at the age of a value, so a value that is served is believed. Which one does no harm depends on who
# reads it: a value keeps a count only as a multiple of the reader's own target (docs/external-metrics.md).


LAST: Final = "last"
"""The last value that was known, while its newest sample is young enough."""
NEUTRAL: Final = "neutral"
"""The value that keeps the count there is: the reader's target times the present count."""
HOLD: Final = "hold"
"""The value that asks for the count there was when knowledge ended."""

ORDER: Final = {"auto": (LAST, NEUTRAL), LAST: (LAST,), NEUTRAL: (NEUTRAL,), HOLD: (HOLD,), "fail": ()}
"""What each policy tries in turn. What none of them can answer is an error."""


class MetricReader(NamedTuple):
    """Who reads the metric: its target, and whether that is for one replica or for all of them together."""

    target: float
    per_replica: bool = True


class AbstainInputs(NamedTuple):
    """All that is left to answer from."""

    last: float
    age: timedelta
    """Of the newest sample behind `last`; where there never was one, longer than any policy allows."""
    last_for: timedelta
    reader: MetricReader | None
    replicas_now: int | None
    """None when even the count is out of date."""
    replicas_held: int


class AbstainedValue(NamedTuple):
    """A value in place of knowledge, under the word for it."""

    word: str
    value: float


def abstained(policy: str, situation: AbstainInputs) -> AbstainedValue | None:
    """The first thing in the order of the policy that can be said; None when it has to be an error."""
    for word in ORDER[policy]:
        value = _VALUES[word](situation)
        if value is not None:
            return AbstainedValue(word, value)
    return None


def _last(situation: AbstainInputs) -> float | None:
    return situation.last if situation.age <= situation.last_for else None


def _neutral(situation: AbstainInputs) -> float | None:
    """A count that is out of date may be below the one that others have reached since: repeating it would lower it."""
    return _keeping(situation.replicas_now, situation.reader)


def _hold(situation: AbstainInputs) -> float | None:
    return _keeping(situation.replicas_held, situation.reader)


def _keeping(replicas: int | None, reader: MetricReader | None) -> float | None:
    """HPA rules §8: a ratio of 1 to the target is inside every tolerance. At 0 replicas only 0 would keep it."""
    if not replicas or reader is None:
        return None
    return reader.target * replicas if reader.per_replica else reader.target


_VALUES = {LAST: _last, NEUTRAL: _neutral, HOLD: _hold}


# The numbers that autoscalers read, one workload at a time: pure, from what was published and the present time.
#
# `forecaster_demand` is the total demand at the lead time in the unit of its signal (cores, bytes, requests per second),
# to be divided by what one replica should carry. `forecaster_replicas` and `forecaster_floor` are counts.


METRICS = (DEMAND, FLOOR, REPLICAS)
SIGNALS = tuple(str(signal) for signal in SIGNALS_OF_DEMAND)
KNOWN = frozenset({"forecast", "measured"})
"""Sources of a number that is known."""
PER_REPLICA = "AverageValue"
ONE_REPLICA = MetricReader(1.0)
"""What a count metric is divided by when nobody is known to read it."""


class OfferedNumber(msgspec.Struct, frozen=True, array_like=True, gc=False):
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


class MetricTarget(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A target of the workload's HPA that reads one of our metrics."""

    metric: str
    type: str
    target: float


class WorkloadOffer(msgspec.Struct, frozen=True, array_like=True):
    """What is published of one workload: its numbers, its readers, and what to do without numbers."""

    replicas_now: int
    replicas_held: int
    """The count when knowledge ended; while it lasts, the present one."""
    demands: tuple[OfferedNumber, ...]
    replicas: OfferedNumber | None
    floor: OfferedNumber | None
    consumers: tuple[MetricTarget, ...]
    abstain: str
    last_for_seconds: float
    why: str = ""
    """The reason of the decision to hold, a word fit for every tenant's eyes; empty when all is known."""


class AskedAt(NamedTuple):
    """When a value is asked for, and what that means for the table it is taken from."""

    now: datetime
    published_at: datetime
    fresh: bool
    """False: the table is older than it may be, so nothing in it is known to be true now."""


class OfferedValue(NamedTuple):
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


Answer = OfferedValue | NotNamed | NotKnown


def value_of(
    published: WorkloadOffer, metric: str, moment: AskedAt, *, signal: str = "", target: float = 0.0
) -> Answer:
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
        return OfferedValue(metric, sample.value, sample.at, sample.source, sample.signal, sample.quantile)
    return _abstained_answer(published, metric, sample or _nothing(signal), moment, _reader(published, metric, target))


def signals_of(published: WorkloadOffer) -> tuple[str, ...]:
    """The signals whose demand is published."""
    return tuple(sample.signal for sample in published.demands)


def _sample(published: WorkloadOffer, metric: str, signal: str) -> OfferedNumber | NotNamed | None:
    if metric == DEMAND:
        return _demand(published.demands, signal)
    if signal:
        return NotNamed(f"{metric} is one number for all signals; leave the signal out")
    return published.replicas if metric == REPLICAS else published.floor


def _demand(demands: tuple[OfferedNumber, ...], signal: str) -> OfferedNumber | NotNamed | None:
    if signal and signal not in SIGNALS:
        return NotNamed(f"no signal {signal[:64]!r}; there are {', '.join(SIGNALS)}")
    found = [one for one in demands if signal in {"", one.signal}]
    if len(found) > 1:
        return NotNamed(f"several signals: name one of {', '.join(one.signal for one in found)}")
    return found[0] if found else None


def _reader(published: WorkloadOffer, metric: str, target: float) -> MetricReader | None:
    if target > 0:
        return MetricReader(target)
    for one in published.consumers:
        if one.metric == metric:
            return MetricReader(one.target, one.type == PER_REPLICA)
    return None if metric == DEMAND else ONE_REPLICA


def _nothing(signal: str) -> OfferedNumber:
    """Of this nothing was ever known."""
    return OfferedNumber(math.nan, datetime.min.replace(tzinfo=UTC), "", known=False, signal=signal)


def _abstained_answer(
    published: WorkloadOffer, metric: str, sample: OfferedNumber, moment: AskedAt, reader: MetricReader | None
) -> OfferedValue | NotKnown:
    situation = AbstainInputs(
        last=sample.value,
        age=moment.now - sample.at,
        last_for=timedelta(seconds=published.last_for_seconds),
        reader=reader,
        replicas_now=published.replicas_now if moment.fresh else None,
        replicas_held=published.replicas_held,
    )
    chosen = abstained(published.abstain, situation)
    if chosen is None:
        return NotKnown(_why(published, moment))
    if chosen.word == LAST:
        return OfferedValue(metric, chosen.value, sample.at, chosen.word, sample.signal, sample.quantile)
    return OfferedValue(metric, chosen.value, moment.published_at, chosen.word, sample.signal, None)


def _why(published: WorkloadOffer, moment: AskedAt) -> str:
    if not moment.fresh:
        return f"the newest values are of {moment.published_at:%Y-%m-%d %H:%M:%S} UTC; nothing has been computed since"
    return published.why or "nothing is forecast or measured"


# One number of one workload, for readers that name the workload instead of selecting it by labels. Pure.


class MetricRequest(NamedTuple):
    """Which number. Without a kind the name has to be that of one workload; `target` is what one replica carries."""

    namespace: str
    name: str
    kind: str = ""
    metric: str = DEMAND
    signal: str = ""
    target: float = 0.0


class NotThere(NamedTuple):
    """There is no such workload, or its policy publishes nothing."""

    message: str


def moment_at(table: PublishedTable, now: datetime, stale_after: timedelta | None) -> AskedAt:
    """What asking at `now` means for a table."""
    return AskedAt(now, table.meta.published_at, fresh=not age_of(table.meta, now, stale_after).stale)


def answer(table: PublishedTable, asked: MetricRequest, moment: AskedAt) -> Answer | NotThere:
    """The number, or why there is none."""
    entry = entry_of(table, asked.namespace, asked.name, asked.kind)
    if isinstance(entry, (NotNamed, NotThere)):
        return entry
    published = table.published(entry)
    if published is None:
        return NotThere(f"the policy of {_spelled(asked)} publishes nothing: its mode is observe")
    return value_of(published, asked.metric, moment, signal=asked.signal, target=asked.target)


def entry_of(table: PublishedTable, namespace: str, name: str, kind: str) -> TableEntry | NotNamed | NotThere:
    """The one workload of that name, and of that kind where one is given."""
    found = [entry for entry in table.named(namespace, name) if kind in {"", entry.kind}]
    if not found:
        return NotThere(f"no {kind or 'workload'} {namespace}/{name} in the table")
    if len(found) > 1:
        return NotNamed(f"{namespace}/{name} is one of {', '.join(entry.kind for entry in found)}: name the kind")
    return found[0]


def _spelled(asked: MetricRequest) -> str:
    return f"{asked.kind or 'workload'} {asked.namespace}/{asked.name}"
