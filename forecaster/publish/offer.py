"""`offered`: what autoscalers may read of every workload, once a cycle, as arrays over rows.

A number that is read is the number that was decided, but for what an HPA does itself to whatever it reads
(stabilization, and bounds of its own): applied twice, they would delay twice. Every other clamp is in all three
numbers, and so is a maximum that the policy states. A count of replicas passes it on as it is; a demand is lifted to
the raised count, or lowered to the restrained one, times the demand of a pod at its target.

    decided                              demand                       replicas   floor
    a forecast that acts                 its peak, or more            count      forecast replicas within the clamps
    a forecast that is only watched      what is measured             count      reactive replicas within the clamps
    no forecast                          what is measured             count      not known, unless a clamp raises
    held, a signal is missing            no less than it takes now    not known  not known
    a signal is measured in part         no less than it takes now    count      as without that
    frozen                               not known, the current count is kept (`hold`)
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing import Any, Self

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]

NO_COUNT = -1
"""Count that is not known."""
NOTHING, MEASURED, FORECAST = range(3)
"""Codes of `Numbers.source`: positions in `record.SOURCES`."""
DECIDED, BLOCKED, FROZEN, HELD = range(4)
"""How a count stands: decided; held for want of a signal; held by a maintenance window; held for another reason."""


@dataclass(frozen=True, eq=False)
class DecidedColumns:
    """What offers are made of. Amounts are totals over all pods in the unit of the signal, NaN where unknown."""

    at: float
    """Epoch seconds."""
    signals: tuple[str, ...]
    standing: Codes
    """[row] `DECIDED`, `BLOCKED`, `FROZEN` or `HELD`."""
    reason: Codes
    """[row] why, a position in `record.REASONS`."""
    current: Counts
    """[row] `spec.replicas`."""
    recommended: Counts
    """[row] with stabilization and bounds; `UNKNOWN` where the count is held."""
    mode: Codes
    """[row] of the policy, a position in `record.MODES`."""
    published: Flags
    """[row] whether the policy offers anything."""
    abstain: Codes
    """[row] what the policy says of not knowing, a position in `record.ABSTAIN`."""
    acting: Flags
    """[row] whether the forecast has its say."""
    lowers: Flags
    """[row] whether the policy lets a forecast lower the count."""
    maximum: Counts
    """[row] that the policy itself states; a bound of the HPA alone is none here."""
    reactive: Counts
    """[row] by measured demand, before any clamp."""
    joined: Counts
    """[row] by both sides, before any clamp."""
    count: Counts
    """[row] after every clamp but those that an HPA applies itself."""
    pod: Floats
    """[signal, row] the demand of a pod at its target; NaN where the count is not decided by the signal."""
    measured: Floats
    """[signal, row]"""
    measured_at: Floats
    """[signal, row] epoch seconds."""
    peak: Floats
    """[signal, row] the coming peak at the policy's quantile."""
    low: Floats
    """[signal, row] its 10 % quantile."""
    median: Floats
    """[signal, row]"""
    high: Floats
    """[signal, row] its 95 % quantile."""
    quantile: Floats
    """[signal, row] which quantile `peak` is."""
    replicas: Counts
    """[signal, row] by the forecast of that signal alone; `UNKNOWN` where there is none."""
    decides: Flags
    """[signal, row] whether the count is decided by the signal."""
    incomplete: Flags
    """[signal, row] whether what is measured is a lower bound: it may raise and never lower."""
    lead: Floats
    """[row] seconds until the window of the forecast begins; 0 where there is none."""
    last_for: Floats
    """[row] seconds for which a last known number may be repeated."""


class Numbers(NamedTuple):
    """One number of each row, or of each signal and row."""

    value: Floats
    """NaN where it was never known, or is too old to be repeated."""
    at: Floats
    """Epoch seconds of the newest sample behind it."""
    source: Codes
    """`NOTHING`, `MEASURED` or `FORECAST`."""
    known: Flags
    """False: the last one that was known."""

    @classmethod
    def of(cls, value: Floats, at: Floats, source: Codes) -> Self:
        """Numbers that are known wherever they are numbers."""
        return cls(value, at, source, ~np.isnan(value))

    def take(self, rows: Counts) -> Numbers:
        """Return these rows; a negative one is new."""
        return Numbers(
            _taken(self.value, rows, np.nan),
            _taken(self.at, rows, 0.0),
            _taken(self.source, rows, NOTHING),
            _taken(self.known, rows, 0),
        )


@dataclass(frozen=True, eq=False)
class Offers:
    """What is offered, and what the next cycle goes on from. Axes as in `DecidedColumns`."""

    signals: tuple[str, ...]
    current: Counts
    """[row]"""
    held: Counts
    """[row] the count to keep while nothing is known."""
    frozen: Flags
    """[row] whether that count is kept whatever the policy says of abstaining."""
    demand: Numbers
    """[signal, row]"""
    quantile: Floats
    """[signal, row] of the demand where it is a forecast peak, else NaN."""
    decides: Flags
    """[signal, row] whether the count is decided by the signal, as far as that was ever known."""
    replicas: Numbers
    """[row]"""
    floor: Numbers
    """[row]"""
    most: Counts
    """[row] replicas that are not idle by the upper quantile of the forecast; never below `replicas`."""

    def take(self, rows: Counts) -> Offers:
        """Return these rows in this order; a negative one is new."""
        nothing: dict[str, float] = {"quantile": np.nan, "held": NO_COUNT}
        changed: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            if isinstance(column, Numbers):
                changed[field.name] = column.take(rows)
            elif isinstance(column, np.ndarray):
                changed[field.name] = _taken(column, rows, nothing.get(field.name, 0))
        return replace(self, **changed)

    def covering(self, signals: tuple[str, ...]) -> Offers:
        """Return the offers with these signals on the axis; the present ones are its beginning."""
        more = len(signals) - len(self.signals)
        if more <= 0:
            return self
        rows = len(self.current)
        return replace(
            self,
            signals=signals,
            demand=Numbers(
                np.vstack([self.demand.value, np.full((more, rows), np.nan)]),
                np.vstack([self.demand.at, np.zeros((more, rows))]),
                np.vstack([self.demand.source, np.full((more, rows), NOTHING, np.int8)]),
                np.vstack([self.demand.known, np.zeros((more, rows), np.bool_)]),
            ),
            quantile=np.vstack([self.quantile, np.full((more, rows), np.nan)]),
            decides=np.vstack([self.decides, np.zeros((more, rows), np.bool_)]),
        )


def offered(decided: DecidedColumns, before: Offers | None = None) -> Offers:
    """What is offered of each row. `before` has the same rows: where knowledge ends, its numbers stay, marked."""
    known = decided.standing == DECIDED
    sampled = _sampled(decided)
    demand, quantile = _demand(decided)
    replicas = Numbers.of(np.where(known, decided.count, np.nan), sampled, _side(decided))
    floor = Numbers.of(_floor(decided, known), sampled, _side(decided))
    fresh = Offers(
        signals=decided.signals,
        current=decided.current,
        held=decided.current,
        frozen=decided.standing == FROZEN,
        demand=demand,
        quantile=quantile,
        decides=decided.decides,
        replicas=replicas,
        floor=floor,
        most=_most(decided, known),
    )
    return fresh if before is None else _following(fresh, before, decided)


def _demand(decided: DecidedColumns) -> tuple[Numbers, Floats]:
    """The demand [signal, row] that makes its reader ask for what was decided, and its quantile."""
    peak = np.where(decided.acting, decided.peak, np.nan)
    leads = ~np.isnan(peak) & (decided.lowers | ~(peak < decided.measured))
    natural = np.where(leads, peak, decided.measured)
    value = _restrained(_lifted(natural, decided), decided)
    value = np.where(decided.decides & (decided.standing != FROZEN), value, np.nan)
    at = np.where(np.isnan(decided.measured_at), decided.at, decided.measured_at)
    source = np.where(np.isnan(value), NOTHING, np.where(leads, FORECAST, MEASURED)).astype(np.int8)
    return Numbers.of(value, at, source), np.where(leads, decided.quantile, np.nan)


def _lifted(demand: Floats, decided: DecidedColumns) -> Floats:
    """The demand, no less than it takes for the count that a clamp, or the forecast of the signal itself, raised."""
    clamped = np.where((decided.standing == DECIDED) & (decided.count > decided.joined), decided.count, 0)
    forecast = np.where(decided.acting & (decided.replicas > decided.reactive), decided.replicas, 0)
    least = np.maximum(clamped, np.where(decided.standing == DECIDED, forecast, 0))
    least = np.maximum(least, np.where((decided.standing == BLOCKED) | decided.incomplete, decided.current, 0))
    return np.where(demand <= (least - 1 + _SLIVER) * decided.pod, least * decided.pod, demand)


_SLIVER = 1e-6
"""Share of a pod: demand that is lost where it is written in milli-units."""


def _restrained(demand: Floats, decided: DecidedColumns) -> Floats:
    """The demand, no more than it takes for a count that a clamp lowered, or that the policy allows at most.

    More pods than those are kept while nothing is decided: that is no time to go down.
    """
    known = decided.standing == DECIDED
    most = np.where(known, decided.maximum, np.maximum(decided.maximum, decided.current))
    most = np.where(known & (decided.count < decided.joined), decided.count, most)
    return np.where(demand > most * decided.pod, most * decided.pod, demand)


def _floor(decided: DecidedColumns, known: Flags) -> Floats:
    """What the forecast alone asks for [row] within the clamps; of one that is only watched, what is measured."""
    forecast = decided.replicas.max(axis=0, initial=NO_COUNT)
    asked = np.where(decided.acting, forecast, np.where(forecast == NO_COUNT, NO_COUNT, decided.reactive))
    raised = np.where(decided.count > decided.joined, np.maximum(asked, decided.count), asked)
    floor = np.where((raised != NO_COUNT) & (decided.count < decided.joined), np.minimum(raised, decided.count), raised)
    return np.where(known & (floor != NO_COUNT), floor, np.nan)


def _most(decided: DecidedColumns, known: Flags) -> Counts:
    """Replicas for the upper quantile of the forecast that asks for the most; no fewer than were decided."""
    deciding = decided.acting & (decided.replicas == decided.replicas.max(axis=0, initial=NO_COUNT))
    wide = deciding & (decided.replicas > 0) & (decided.peak > 0.0) & (decided.high > decided.peak)
    ratio = np.where(wide, decided.high, 1.0) / np.where(wide, decided.peak, 1.0)
    most = np.ceil(np.where(wide, decided.replicas * np.minimum(ratio, _WIDEST), 0.0)).max(axis=0, initial=0.0)
    most = np.minimum(most, decided.maximum)
    return np.where(known, np.maximum(decided.count, most.astype(np.int64)), decided.current)


_WIDEST = 1e6
"""An upper quantile further above the peak than this says nothing."""


def _side(decided: DecidedColumns) -> Codes:
    """[row] whether a count follows from a forecast or from what is measured."""
    forecast = decided.acting & (decided.replicas != NO_COUNT).any(axis=0)
    return np.where(forecast, FORECAST, MEASURED).astype(np.int8)


def _sampled(decided: DecidedColumns) -> Floats:
    """The oldest of the newest samples [row] that a decision is made of, epoch seconds."""
    at = np.where(decided.decides & ~np.isnan(decided.measured_at), decided.measured_at, np.inf)
    oldest = at.min(axis=0, initial=np.inf)
    return np.where(np.isinf(oldest), decided.at, oldest)


def _following(fresh: Offers, before: Offers, decided: DecidedColumns) -> Offers:
    """Return the offers with the last known numbers in place of unknown ones, as long as they may be repeated."""
    least = decided.at - decided.last_for
    blind = (decided.standing == BLOCKED) | (decided.standing == HELD)
    unread = ~fresh.decides.any(axis=0)
    demand = _repeated(fresh.demand, before.demand, least)
    repeats = ~fresh.demand.known & ~np.isnan(demand.value)
    return replace(
        fresh,
        held=np.where(blind & (fresh.current > 0) & (before.held != NO_COUNT), before.held, fresh.held),
        demand=demand,
        quantile=np.where(repeats, before.quantile, fresh.quantile),
        decides=np.where(unread, before.decides, fresh.decides),
        replicas=_repeated(fresh.replicas, before.replicas, least),
        floor=_repeated(fresh.floor, before.floor, least),
    )


def _repeated(fresh: Numbers, before: Numbers, least: Floats) -> Numbers:
    """The fresh numbers where they are known, else those before; not those of an instant before `least`."""
    usable = ~fresh.known & ~np.isnan(before.value) & (before.at >= least)
    return Numbers(
        np.where(usable, before.value, fresh.value),
        np.where(usable, before.at, fresh.at),
        np.where(usable, before.source, fresh.source),
        fresh.known,
    )


def _taken(column: NDArray[Any], rows: Counts, nothing: float) -> NDArray[Any]:
    """`rows` of the last axis, `nothing` where one is negative."""
    if not column.shape[-1]:
        return np.full((*column.shape[:-1], len(rows)), nothing, column.dtype)
    return np.where(rows < 0, np.asarray(nothing, column.dtype), column[..., np.maximum(rows, 0)])
