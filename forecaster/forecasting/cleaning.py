"""Demand instead of usage, for the models of a shard: weeks are cleaned when it is fitted, newer columns later.

Corrections of older columns are stored, sparse, and laid over the history; the latest hours are cleaned anew each time,
because later columns decide about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.demand.fresh import DemandContext, FreshHistory, values_of
from forecaster.demand.masks import COLUMNS_A_DAY, CleanedPart, Masked, Traits, cleaned, other_days, traits_of
from forecaster.demand.warm_up import AFTER, DURING, of_each, starts_of, unusual, with_starts
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.domain.workload import WorkloadId

Floats = NDArray[np.floating]
Bins = NDArray[np.intp]

OPEN = 48
"""Columns that are cleaned anew: load that moves for three hours is an outage, and the latest three hours are cut every
minute."""
SETTLE = 2 * OPEN
"""Columns after which the older half is settled: at the same column for all workloads, so that these are cleaned in
one piece."""
STARTS_HELD = 12
"""Number of starts of each workload from which the usage of starting pods is learned."""
COLUMNS_A_WEEK = 7 * COLUMNS_A_DAY
BIN_SECONDS = int(FIVE_MINUTES.total_seconds())


class ShardHistory(NamedTuple):
    """The workloads of a shard, where they are in the history of a signal, and their context."""

    ids: Sequence[WorkloadId]
    rows: Bins
    history: FreshHistory
    context: DemandContext

    @property
    def end(self) -> int:
        """The column since the epoch after the newest one."""
        return int(self.history.weeks.end.timestamp()) // BIN_SECONDS + 1


class Corrections(NamedTuple):
    """Corrected values: of which workload of the shard, in which column since the epoch."""

    row: Bins
    column: Bins
    values: Floats


class Settled(NamedTuple):
    """State by which newer columns are cleaned: traits [workload], older corrections, and where these end."""

    traits: Traits
    corrections: Corrections
    open: int
    """The first column since the epoch that is cleaned anew."""

    @classmethod
    def stacked(cls, parts: Sequence[Settled]) -> Settled | None:
        """Join the settled states of all workloads; None where they end at different columns."""
        return None if any(part.open != parts[0].open for part in parts) else cls.of(parts)

    @classmethod
    def of(cls, parts: Sequence[Settled]) -> Settled:
        """Join the settled states of all workloads, which end at the same column."""
        first = np.cumsum([0, *(len(part.traits.level) for part in parts)])
        traits = Traits(*map(np.concatenate, zip(*(part.traits for part in parts), strict=True)))
        row = np.concatenate([part.corrections.row + begin for part, begin in zip(parts, first[:-1], strict=True)])
        column, values = (np.concatenate([part.corrections[i] for part in parts]) for i in (1, 2))
        return cls(traits, Corrections(row, column, values), parts[0].open)

    def part(self, rows: slice | Bins) -> Settled:
        """Return the settled state of some workloads."""
        place = np.full(len(self.traits.level), -1)
        place[rows] = np.arange(len(place[rows]))
        row = place[self.corrections.row]
        corrections = Corrections(row[row >= 0], self.corrections.column[row >= 0], self.corrections.values[row >= 0])
        return Settled(Traits(*(trait[rows] for trait in self.traits)), corrections, self.open)


@dataclass(frozen=True, slots=True, eq=False)
class Cleaning:
    """Learned traits of a shard's workloads at its last fit, and corrections since then."""

    settled: Settled
    starts: Floats
    """[workload, start] usage of a starting pod, latest last; NaN without one."""
    searched_until: datetime
    """Until when starts were looked for."""
    masked: Mapping[WorkloadId, Mapping[Masked, float]]
    """Part of the last week's known columns, by reason; only of workloads of which there is some."""
    remarks: Mapping[WorkloadId, str]
    """Remarks about the workloads that have a demand other than their usage."""

    def part(self, rows: Bins, ids: Sequence[WorkloadId]) -> Cleaning:
        """Return the cleaning of some workloads, with their positions among all."""
        members = frozenset(ids)
        return replace(
            self,
            settled=self.settled.part(rows),
            starts=self.starts[rows],
            masked={id_: shares for id_, shares in self.masked.items() if id_ in members},
            remarks={id_: remark for id_, remark in self.remarks.items() if id_ in members},
        )

    def joined(self, other: Cleaning) -> Cleaning:
        """Join two cleanings. Older columns end where they end for both, and no start is counted twice."""
        first = min(self.settled.open, other.settled.open)
        both = [cleaning.settled._replace(open=first) for cleaning in (self, other)]
        return Cleaning(
            Settled.of(both),
            np.concatenate([self.starts, other.starts]),
            max(self.searched_until, other.searched_until),
            {**self.masked, **other.masked},
            {**self.remarks, **other.remarks},
        )


class LatestDemand(NamedTuple):
    """[workload, column] demand, the `Masked` code of its latest column or 0, settled corrections."""

    values: Floats
    masked: NDArray[np.uint8]
    settled: Settled


def cleaned_weeks(group: ShardHistory, before: Cleaning | None) -> tuple[Floats, Cleaning]:
    """[workload, column] demand of all weeks, and the state for coming columns."""
    usage = group.history.rows(group.rows)
    starts = _starts(group, usage, before)
    workloads = [group.context.workloads.get(id_) for id_ in group.ids]
    traits = traits_of(group.context.signal, workloads, usage, of_each(starts))
    whole = cleaned(_part(group, usage, 0), traits, usage)
    begin = group.end - usage.shape[1]
    first = max(begin, open_from(group.end))
    corrections = _corrections(usage[:, : first - begin], whole.values[:, : first - begin], begin)
    masked = shares_of(group.ids, whole.why[:, -COLUMNS_A_WEEK:], usage[:, -COLUMNS_A_WEEK:])
    remarks = remarks_of(group.ids, masked, traits.warm_up, group.context.signal.unit)
    return whole.values, Cleaning(Settled(traits, corrections, first), starts, group.history.end, masked, remarks)


def masks_of(group: ShardHistory) -> NDArray[np.uint8]:
    """[workload, column] `Masked` code of every column of the weeks, 0 where it is learned from as measured."""
    usage = group.history.rows(group.rows)
    _, cleaning = cleaned_weeks(group, None)
    return np.asarray(cleaned(_part(group, usage, 0), cleaning.settled.traits, usage).why)


def cleaned_since(group: ShardHistory, before: Settled) -> LatestDemand:
    """Clean only the latest columns, and add their corrections to the settled part."""
    values = group.history.rows(group.rows)
    count = values.shape[1]
    width = min(count, max(0, group.end - before.open))
    lead = min(OPEN, count - width)
    usage = values[:, count - width - lead :].copy()
    _lay_over(values, before.corrections, group.end - count)
    demand, why = cleaned(_part(group, usage, lead), before.traits, values)
    values[:, count - width :] = demand
    after = _settled(before, usage[:, lead:], demand, group.end) if width >= SETTLE else before
    masked = why[:, -1] if why.shape[1] else np.zeros(len(why), np.uint8)
    return LatestDemand(values, masked, after)


def open_from(end: int) -> int:
    """The first column since the epoch that is cleaned anew, of columns that end before `end`."""
    return (end - OPEN) // OPEN * OPEN


def _starts(group: ShardHistory, weeks: Floats, before: Cleaning | None) -> Floats:
    """Return the usage of starting pods, updated by the latest hours; no start is counted twice."""
    known_starts = before.starts if before else np.full((len(group.ids), STARTS_HELD), np.nan)
    minutes, pods = group.history.minutes, group.context.pods.minutes
    if not group.context.signal.warm_up or minutes is None or pods is None or minutes.end != pods.end:
        return known_starts
    count = min(minutes.values.shape[1], pods.values.shape[1])
    usage, ready = (values_of(window, group.ids, count) for window in (minutes, pods))
    starts = starts_of(usage, ready)
    if before:
        again = count - (minutes.end - before.searched_until) // minutes.step - (DURING + AFTER - 1)
        starts = starts.take(starts.column >= again)
    if not len(starts.row):
        return known_starts
    return with_starts(known_starts, unusual(starts, other_days(weeks, 0, COLUMNS_A_DAY).usual, count))


def _part(group: ShardHistory, usage: Floats, lead: int) -> CleanedPart:
    """Return the part with ready pods and throttled hours of the same columns, where pods matter to the signal."""
    throttled = np.zeros(usage.shape, np.bool_)
    if not group.context.of_pods:
        return CleanedPart(usage, np.broadcast_to(np.float32(np.nan), usage.shape), throttled, lead)
    first, hours = group.end - usage.shape[1], group.context.throttled
    for row in (row for row, id_ in enumerate(group.ids) if id_ in hours) if hours else ():
        for hour in hours[group.ids[row]]:
            begin, end = (int(at.timestamp()) // BIN_SECONDS - first + 1 for at in (hour.begin, hour.end))
            throttled[row, max(0, begin) : max(0, end)] = True
    return CleanedPart(usage, _ready(group, usage.shape[1]), throttled, lead)


def _ready(group: ShardHistory, count: int) -> Floats:
    """[workload, column] ready pods in the newest columns; NaN where nothing is known of them."""
    pods = group.context.pods
    known = min(count, pods.weeks.values.shape[1])
    if pods.end != group.history.end or not pods.weeks.keys:
        return np.full((len(group.ids), count), np.nan, np.float32)
    at = _rows_of(pods.weeks, group)
    ready = np.where(at[:, None] >= 0, pods.rows(at, known), np.float32(np.nan))
    if pods.minutes is not None and pods.minutes.keys and known:
        # Pods that came in the last minute are a fifth of themselves in the mean.
        place = _rows_of(pods.minutes, group)
        latest = np.where(place >= 0, pods.minutes.values[place, -1], np.float32(np.nan))
        ready[:, -1] = np.fmax(ready[:, -1], latest)
    return np.pad(ready, ((0, 0), (count - known, 0)), constant_values=np.nan)


def _rows_of(window: Window, group: ShardHistory) -> Bins:
    """[workload] their rows in a window, -1 for none; those in the history where that has the same workloads."""
    if window.keys == group.history.weeks.keys:
        return group.rows
    return rows_among(group.ids, window.row)


def _corrections(usage: Floats, demand: Floats, first: int) -> Corrections:
    row, column = np.nonzero((usage != demand) & ~(np.isnan(usage) & np.isnan(demand)))
    return Corrections(row, column + first, demand[row, column])


def _lay_over(values: Floats, corrections: Corrections, first: int) -> None:
    there = corrections.column >= first
    values[corrections.row[there], corrections.column[there] - first] = corrections.values[there]


def _settled(before: Settled, usage: Floats, demand: Floats, end: int) -> Settled:
    """Extend the stored corrections, which do not change before the latest hours."""
    first = open_from(end)
    closed = usage.shape[1] - (end - first)
    more = _corrections(usage[:, :closed], demand[:, :closed], end - usage.shape[1])
    corrections = Corrections(*(np.concatenate(parts) for parts in zip(before.corrections, more, strict=True)))
    return Settled(before.traits, corrections, first)


def shares_of(
    ids: Sequence[WorkloadId], why: NDArray[np.uint8], usage: Floats
) -> dict[WorkloadId, dict[Masked, float]]:
    """Part of the known columns of `why` and `usage` [workload, column], by reason; only where there is some."""
    known = np.maximum(np.count_nonzero(~np.isnan(usage), axis=1), 1).tolist()
    rows = np.flatnonzero(why.any(axis=1)).tolist()
    counts_by_row = {row: np.bincount(why[row], minlength=max(Masked) + 1).tolist() for row in rows}
    return {
        ids[row]: {reason: counts[reason] / known[row] for reason in Masked if counts[reason]}
        for row, counts in counts_by_row.items()
    }


def remarks_of(
    ids: Sequence[WorkloadId], masked: Mapping[WorkloadId, Mapping[Masked, float]], warm_up: Floats, unit: str
) -> dict[WorkloadId, str]:
    """A sentence on each workload with masked columns, or with pods that take `warm_up` [workload] to start."""
    sentences = {
        id_: [f"{sum(parts.values()):.1%} of the last week is masked ({_listed(parts)})"]
        for id_, parts in masked.items()
    }
    for row in np.flatnonzero(warm_up > 0).tolist():
        left_out = (
            f"{5 * warm_up[row]:.2g} {unit.removesuffix('s')}-minutes that each new pod takes to start are left out"
        )
        sentences.setdefault(ids[row], []).append(left_out)
    return {id_: "; ".join(parts) for id_, parts in sentences.items()}


def masked_now(ids: Sequence[WorkloadId], why: NDArray[np.uint8]) -> dict[WorkloadId, Masked]:
    """The workloads that have a masked latest column, by its reason `why` [workload]."""
    return {ids[row]: Masked(why[row]) for row in np.flatnonzero(why).tolist()}


def with_now(remarks: Mapping[WorkloadId, str], now: Mapping[WorkloadId, Masked]) -> Mapping[WorkloadId, str]:
    """Put the present mask before each sentence."""
    begun = {id_: f"now {why.words}: the usual demand is used instead" for id_, why in now.items()}
    return {**remarks, **{id_: "; ".join(filter(None, (text, remarks.get(id_)))) for id_, text in begun.items()}}


def _listed(parts: Mapping[Masked, float]) -> str:
    return ", ".join(f"{why.words} {part:.1%}" for why, part in parts.items())
