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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.decision import Reason
from forecaster.horizontal.columns import (
    CLAMP,
    SIGNAL,
    TARGET,
    Array,
    Codes,
    Counts,
    Flags,
    Floats,
    Names,
    Table,
    column,
    schema,
)
from forecaster.horizontal.row import KNOWN, REASONS, SCALED, UNKNOWN
from forecaster.hpa.numbers import MAX_INT32

Positions: TypeAlias = NDArray[np.int32]

NO_COUNT = -1
"""Count that is not known."""
NOTHING, MEASURED, FORECAST = range(3)
"""Codes of `Numbers.source`: positions in `record.SOURCE_CODES`."""
DECIDED, BLOCKED, FROZEN, HELD = range(4)
"""Kinds of a count: decided; held for want of a signal; held by a maintenance window; held for another reason."""
_HELD_AS = {Reason.NO_DATA: BLOCKED, Reason.STALE: BLOCKED, Reason.FROZEN: FROZEN}
_STATUS = np.array([DECIDED if reason in SCALED else _HELD_AS.get(reason, HELD) for reason in REASONS], np.int8)


@dataclass(frozen=True, eq=False)
class DecidedColumns(Table):
    """Decisions about every row of a fleet: offers, the published table and records are made of them.

    A cycle fills them from its groups; an empty value was not decided. Amounts are totals over all pods in the unit of
    the signal, NaN where unknown.
    """

    reason: Codes = column("b", REASONS.index(Reason.FAILED), published=True)
    """A position in `horizontal.row.REASONS`."""
    current: Counts = column("q", 0, published=True)
    """`spec.replicas`."""
    recommended: Counts = column("q", NO_COUNT, published=True)
    """Count with stabilization and bounds; `NO_COUNT` where the count is held."""
    acting: Flags = column("?", empty=False)
    """Whether the forecast acts."""
    count: Counts = column("q", 0)
    """Replicas after every clamp but those that an HPA applies itself."""
    lead: Floats = column("d", 0.0, published=True)
    """Seconds until the window of the forecast begins; 0 where there is none."""
    by_forecast: Counts = column("i", UNKNOWN, published=True)
    """Replicas by the forecast, before any clamp."""
    outage_until: Floats = column("d", 0.0, published=True)
    """Epoch seconds until when the floor of an outage holds."""
    counts: Counts = column("i", UNKNOWN, CLAMP, published=True)
    """[1 + clamp, row] the reactive count and those after each clamp; the first clamp joins the forecast."""
    pod: Floats = column("d", np.nan, SIGNAL)
    """[signal, row] demand of a pod at its target; NaN where the count is not decided by the signal."""
    measured: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] latest demand."""
    measured_at: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] epoch seconds."""
    peak: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] the coming peak at the policy's quantile."""
    low: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] 10 % quantile of the peak."""
    median: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] median of the peak."""
    high: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] 95 % quantile of the peak."""
    forecast_quantile: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] which quantile `peak` is."""
    replicas: Counts = column("q", NO_COUNT, SIGNAL)
    """[signal, row] replicas by the forecast of that signal alone; `NO_COUNT` without one."""
    decides: Flags = column("?", empty=False, axis=SIGNAL)
    """[signal, row] whether the count is decided by the signal."""
    incomplete: Flags = column("?", empty=False, axis=SIGNAL)
    """[signal, row] whether the measured value is a lower bound: it may raise and never lower."""
    asked: Counts = column("i", UNKNOWN, TARGET, published=True)
    """[target, row] replicas by measured demand, of each usable target in the order of the row."""
    foreseen: Counts = column("i", UNKNOWN, TARGET, published=True)
    """[target, row] replicas by the forecast."""
    unseen: Codes = column("b", KNOWN, TARGET, published=True)
    """[target, row] why there is no measurement (`horizontal.row`)."""
    age: Floats = column("d", np.nan, TARGET, published=True)
    """[target, row] seconds since the latest sample."""
    state: Codes = column("b", -1, published=True)
    """State of the forecast, a position in `domain.decision.FORECAST_STATES`; -1 where nothing was decided."""
    mode: Codes = column("b", 0, published=True)
    """Mode of the policy, a position in `record.MODE_CODES`."""
    abstain: Codes = column("b", 0, published=True)
    """Policy for unknown values, a position in `record.ABSTAIN`."""
    lowers: Flags = column("?", empty=False)
    """Whether the policy lets a forecast lower the count."""
    maximum: Counts = column("q", MAX_INT32)
    """Maximum stated by the policy itself; no bound where only the HPA has one."""
    last_for: Floats = column("d", 0.0, published=True)
    """Seconds for which a last known number may be repeated."""
    nothing_decided: Codes = column("b", -1, published=True)
    """A position in `horizontal.row.REASONS` for which the row is held whatever its numbers are; -1 for none."""
    stated: Positions = column("i", 0, of_name=True, published=True)
    """Encoded values of the policy and HPA of the row."""
    shut: Positions = column("i", 0, of_name=True, published=True)
    """Reason why the gate does not let the forecast act."""
    hold: Positions = column("i", 0, of_name=True, published=True)
    """Reason for holding the row, where no code says it."""
    event: Positions = column("i", 0, of_name=True, published=True)
    """Event that raises the count, and its end."""
    event_most: Positions = column("i", 0, of_name=True, published=True)
    """Event that limits the replicas, the limit, and its end."""
    outage: Positions = column("i", 0, of_name=True, published=True)
    """Signals missing in the outage whose floor holds."""
    lead_time: Positions = column("i", 0, of_name=True, published=True)
    """Lead time in force: encoded seconds and origin."""
    unmeasured: Positions = column("i", 0, TARGET, of_name=True, published=True)
    """[target, row] why there is no measurement or a part of one, where `unseen` does not say it."""
    outlook: Positions = column("i", 0, TARGET, of_name=True, published=True)
    """[target, row] model, window and remark of the forecast, or the reason for none: encoded `ForecastDetails`."""
    readers: Positions = column("i", 0, of_name=True)
    """Targets of the HPA that read our metrics, encoded."""
    names: tuple[bytes, ...] = (b"",)
    """Texts to which the columns of names refer."""
    at: float = 0.0
    """Evaluation time in epoch seconds."""

    @property
    def status(self) -> Codes:
        """[row] `DECIDED`, `BLOCKED`, `FROZEN` or `HELD`."""
        return _STATUS[self.reason]

    @property
    def reactive(self) -> Counts:
        """[row] replicas by measured demand, before any clamp."""
        return np.asarray(self.counts[0])

    @property
    def joined(self) -> Counts:
        """[row] replicas by both sides, before any other clamp."""
        return np.asarray(self.counts[1])

    @classmethod
    def side_by_side(cls, rows: int, parts: Sequence[tuple[Array, DecidedColumns]]) -> DecidedColumns:
        """Return a table of `rows` rows, in which each part has its rows at the given positions."""
        names = Names()
        renamed = [(positions, part.renamed(names)) for positions, part in parts]
        return replace(super().side_by_side(rows, renamed), names=tuple(names))

    def renamed(self, names: Names) -> DecidedColumns:
        """Return the table with columns that refer to other names."""
        codes = names.codes(self.names)
        return replace(self, names=tuple(names), **{name: codes[getattr(self, name)] for name in NAMED})

    def texts_of(self, row: int) -> tuple[bytes, ...]:
        """Return all texts of one row."""
        return tuple(self.names[code] for name in NAMED for code in np.atleast_1d(getattr(self, name)[..., row]))


NAMED = tuple(name for name, declared in schema(DecidedColumns).items() if declared.of_name)
"""Columns of `DecidedColumns` that refer to names."""


class Numbers(NamedTuple):
    """One number of each row, or of each signal and row."""

    value: Floats
    """NaN where it was never known, or is too old to be repeated."""
    at: Floats
    """Epoch seconds of the latest sample behind it."""
    source: Codes
    """`NOTHING`, `MEASURED` or `FORECAST`."""
    known: Flags
    """False: the last one that was known."""

    @classmethod
    def of(cls, value: Floats, at: Floats, source: Codes) -> Self:
        """Numbers that are known wherever they are numbers."""
        return cls(value, at, source, ~np.isnan(value))

    def columns(self, name: str) -> dict[str, Any]:
        """Return the columns of a number of that name in `Offers`."""
        return {f"{name}_{part}": values for part, values in self._asdict().items()}


@dataclass(frozen=True, eq=False)
class Offers(Table):
    """Offers, and the state for the next cycle: `Numbers` of demand, replicas and floor, and more."""

    held: Counts = column("q", NO_COUNT, published=True)
    """Count to keep while nothing is known."""
    frozen: Flags = column("?", empty=False, published=True)
    """Whether that count stays whatever the policy for unknown values."""
    most: Counts = column("q", 0, published=True)
    """Replicas that are not idle by the upper quantile of the forecast; never below the replicas."""
    decides: Flags = column("?", empty=False, axis=SIGNAL, published=True)
    """[signal, row] whether the count is decided by the signal, as far as that was ever known."""
    demand_value: Floats = column("d", np.nan, SIGNAL, published=True)
    demand_at: Floats = column("d", 0.0, SIGNAL, published=True)
    demand_source: Codes = column("b", NOTHING, SIGNAL, published=True)
    demand_known: Flags = column("?", empty=False, axis=SIGNAL, published=True)
    demand_quantile: Floats = column("d", np.nan, SIGNAL, published=True)
    """[signal, row] quantile of the demand where it is a forecast peak, else NaN."""
    replicas_value: Floats = column("d", np.nan, published=True)
    replicas_at: Floats = column("d", 0.0, published=True)
    replicas_source: Codes = column("b", NOTHING, published=True)
    replicas_known: Flags = column("?", empty=False, published=True)
    floor_value: Floats = column("d", np.nan, published=True)
    floor_at: Floats = column("d", 0.0, published=True)
    floor_source: Codes = column("b", NOTHING, published=True)
    floor_known: Flags = column("?", empty=False, published=True)

    def numbers(self, name: str) -> Numbers:
        """Return the demand [signal, row] that leads its reader to the decided count, or replicas or floor [row]."""
        return Numbers(*(getattr(self, f"{name}_{part}") for part in Numbers._fields))


def offered(decided: DecidedColumns, before: Offers | None = None) -> Offers:
    """Return the offer of each row. `before` has the same rows: where knowledge ends, its numbers stay, marked."""
    known = decided.status == DECIDED
    sampled = _sampled(decided)
    demand, quantile = _demand(decided)
    replicas = Numbers.of(np.where(known, decided.count, np.nan), sampled, _side(decided))
    floor = Numbers.of(_floor(decided, known), sampled, _side(decided))
    fresh = Offers(
        signals=decided.signals,
        held=decided.current,
        frozen=decided.status == FROZEN,
        most=_upper_replicas(decided, known),
        decides=decided.decides,
        demand_quantile=quantile,
        **demand.columns("demand"),
        **replicas.columns("replicas"),
        **floor.columns("floor"),
    )
    return fresh if before is None else _following(fresh, before, decided)


def _demand(decided: DecidedColumns) -> tuple[Numbers, Floats]:
    """Return the demand [signal, row] that leads its reader to the decided count, and its quantile."""
    peak = np.where(decided.acting, decided.peak, np.nan)
    leads = ~np.isnan(peak) & (decided.lowers | ~(peak < decided.measured))
    natural = np.where(leads, peak, decided.measured)
    value = _restrained(_lifted(natural, decided), decided)
    value = np.where(decided.decides & (decided.status != FROZEN), value, np.nan)
    at = np.where(np.isnan(decided.measured_at), decided.at, decided.measured_at)
    source = np.where(np.isnan(value), NOTHING, np.where(leads, FORECAST, MEASURED)).astype(np.int8)
    return Numbers.of(value, at, source), np.where(leads, decided.forecast_quantile, np.nan)


def _lifted(demand: Floats, decided: DecidedColumns) -> Floats:
    """The demand, no less than it takes for the count that a clamp, or the forecast of the signal itself, raised."""
    clamped = np.where((decided.status == DECIDED) & (decided.count > decided.joined), decided.count, 0)
    forecast = np.where(decided.acting & (decided.replicas > decided.reactive), decided.replicas, 0)
    least = np.maximum(clamped, np.where(decided.status == DECIDED, forecast, 0))
    least = np.maximum(least, np.where((decided.status == BLOCKED) | decided.incomplete, decided.current, 0))
    return np.where(demand <= (least - 1 + _SLIVER) * decided.pod, least * decided.pod, demand)


_SLIVER = 1e-6
"""Share of a pod: demand that is lost where it is written in milli-units."""


def _restrained(demand: Floats, decided: DecidedColumns) -> Floats:
    """The demand, no more than it takes for a count that a clamp lowered, or that the policy allows at most.

    More pods than those are kept while nothing is decided: that is no time to go down.
    """
    known = decided.status == DECIDED
    most = np.where(known, decided.maximum, np.maximum(decided.maximum, decided.current))
    most = np.where(known & (decided.count < decided.joined), decided.count, most)
    return np.where(demand > most * decided.pod, most * decided.pod, demand)


def _floor(decided: DecidedColumns, known: Flags) -> Floats:
    """Replicas by the forecast alone [row] within the clamps; by measured demand where the forecast is a shadow."""
    forecast = decided.replicas.max(axis=0, initial=NO_COUNT)
    desired = np.where(decided.acting, forecast, np.where(forecast == NO_COUNT, NO_COUNT, decided.reactive))
    raised = np.where(decided.count > decided.joined, np.maximum(desired, decided.count), desired)
    floor = np.where((raised != NO_COUNT) & (decided.count < decided.joined), np.minimum(raised, decided.count), raised)
    return np.where(known & (floor != NO_COUNT), floor, np.nan)


def _upper_replicas(decided: DecidedColumns, known: Flags) -> Counts:
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
    """[row] whether a count follows from a forecast or from measured demand."""
    forecast = decided.acting & (decided.replicas != NO_COUNT).any(axis=0)
    return np.where(forecast, FORECAST, MEASURED).astype(np.int8)


def _sampled(decided: DecidedColumns) -> Floats:
    """The oldest of the latest samples [row] that a decision is made of, epoch seconds."""
    at = np.where(decided.decides & ~np.isnan(decided.measured_at), decided.measured_at, np.inf)
    oldest = at.min(axis=0, initial=np.inf)
    return np.where(np.isinf(oldest), decided.at, oldest)


def _following(fresh: Offers, before: Offers, decided: DecidedColumns) -> Offers:
    """Return the offers with the last known numbers in place of unknown ones, as long as they may be repeated."""
    least = decided.at - decided.last_for
    blind = (decided.status == BLOCKED) | (decided.status == HELD)
    unread = ~fresh.decides.any(axis=0)
    names = ("demand", "replicas", "floor")
    numbers = {name: _repeated(fresh.numbers(name), before.numbers(name), least) for name in names}
    repeats = ~numbers["demand"].known & ~np.isnan(numbers["demand"].value)
    return replace(
        fresh,
        held=np.where(blind & (decided.current > 0) & (before.held != NO_COUNT), before.held, fresh.held),
        demand_quantile=np.where(repeats, before.demand_quantile, fresh.demand_quantile),
        decides=np.where(unread, before.decides, fresh.decides),
        **{column: values for name, number in numbers.items() for column, values in number.columns(name).items()},
    )


def _repeated(fresh: Numbers, before: Numbers, least: Floats) -> Numbers:
    """Return the fresh numbers where they are known, else the earlier ones; not those of an instant before `least`."""
    usable = ~fresh.known & ~np.isnan(before.value) & (before.at >= least)
    return Numbers(
        np.where(usable, before.value, fresh.value),
        np.where(usable, before.at, fresh.at),
        np.where(usable, before.source, fresh.source),
        fresh.known,
    )
