"""Forecasts of the coming peak of one signal, as columns over workloads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.domain.signal import StepForecast
from forecaster.horizontal.columns import TextCodes
from models.panel import trusted

if TYPE_CHECKING:
    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.shards import Shard
    from models import Forecast, Panel, Peak

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int32]
    Positions = NDArray[np.intp]

LOW, MEDIAN, HIGH = 0.1, 0.5, 0.95
LEVELS = (LOW, 0.25, MEDIAN, 0.65, 0.8, 0.85, 0.9, HIGH, 0.99)
"""Levels of every model's forecast; a policy's quantile between two of them is interpolated."""
NO_HISTORY_YET = "no history yet"


@dataclass(frozen=True, eq=False)
class PeakForecasts:
    """Quantiles of the largest demand between `begin` and `until`, one row a workload.

    `place` and `ids` are the same objects from cycle to cycle while the same workloads are forecast.
    """

    begin: datetime
    until: datetime
    ids: tuple[WorkloadId, ...]
    place: Mapping[WorkloadId, int]
    """The row of each workload."""
    values: Floats
    """[row, level] in the signal's unit; NaN where there is no forecast."""
    model: Codes
    """[row] which of `models` made it."""
    note: Codes
    """[row] position in `notes` of the remark about the forecast, or of the reason why there is none."""
    models: tuple[str, ...]
    notes: tuple[str, ...]

    @cached_property
    def row(self) -> Mapping[WorkloadId, int]:
        """The rows of the workloads that have a forecast."""
        silent = np.flatnonzero(np.isnan(self.values[:, 0])).tolist()
        if not silent:
            return self.place
        known = dict(self.place)
        for row in silent:
            del known[self.ids[row]]
        return known

    def sample(self, first: int, every: int) -> PeakForecasts:
        """Return the forecasts of one in `every` workloads with a forecast, in memory of their own."""
        ids = tuple(islice(self.row, first, None, every))
        rows, place = rows_among(ids, self.place), {id_: row for row, id_ in enumerate(ids)}
        values, model, note = self.values[rows], self.model[rows], self.note[rows]
        return replace(self, ids=ids, place=place, values=values, model=model, note=note)

    def remarked(self, remarks: Mapping[WorkloadId, str]) -> PeakForecasts:
        """Return the forecasts with a remark on some workloads after their notes."""
        remarked_ids = self.row.keys() & remarks.keys()
        if not remarked_ids:
            return self
        note, table = self.note.copy(), TextCodes(self.notes)
        for id_ in remarked_ids:
            row, remark = self.row[id_], remarks[id_]
            own = self.notes[note[row]]
            note[row] = table[f"{own}; {remark}" if own else remark]
        return replace(self, note=note, notes=tuple(table))


def at_quantile(quantiles: Floats, level: Floats) -> Floats:
    """[row] the value at each row's level: linear between the two levels around it, flat beyond the outer ones."""
    values = np.empty(quantiles.shape[1])
    for quantile in np.unique(level).tolist():
        rows = np.flatnonzero(level == quantile) if len(level) and not (level == quantile).all() else slice(None)
        values[rows] = _at(quantiles[:, rows], quantile)
    return values


def _at(quantiles: Floats, level: float) -> Floats:
    right = int(np.searchsorted(LEVELS, level))
    if right < len(LEVELS) and LEVELS[right] == level:
        return np.asarray(quantiles[right])
    if right in {0, len(LEVELS)}:
        return np.asarray(quantiles[min(right, len(LEVELS) - 1)])
    left = right - 1
    slope = (quantiles[right] - quantiles[left]) / (LEVELS[right] - LEVELS[left])
    return np.asarray(slope * (level - LEVELS[left]) + quantiles[left])


class SpanRows(NamedTuple):
    """Workloads that want a span, and their rows among all workloads of a signal."""

    ids: tuple[WorkloadId, ...]
    place: Mapping[WorkloadId, int]
    rows: Positions

    @classmethod
    def of(cls, ids: Collection[WorkloadId], row: Mapping[WorkloadId, int]) -> SpanRows:
        """Return the workloads that ask for the span and have a row, in the order of their rows."""
        members = tuple(sorted(row.keys() & ids, key=row.__getitem__))
        return cls(members, {id_: place for place, id_ in enumerate(members)}, rows_among(members, row))

    def within(self, rows: slice) -> Positions:
        """Return the positions of these rows that want the window, counted from the first of them."""
        first, last = np.searchsorted(self.rows, (rows.start, rows.stop))
        positions: Positions = self.rows[first:last] - rows.start
        return positions


class ModelAnswers:
    """Forecasts of one window by the models of a signal, or reasons for none: one row for each workload."""

    def __init__(self, rows: Positions) -> None:
        self.rows = rows
        """[position] row of each workload among all of the signal, in their order."""
        self.values = np.full((len(rows), len(LEVELS)), np.nan)
        self.model, self.note = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
        self.models, self.notes = TextCodes(("",)), TextCodes(("",))

    def take(self, rows: Positions, keys: tuple[str, ...], peak: Peak) -> None:
        """Store the peaks of the series `keys`, which are in these rows."""
        provenance = peak.provenance
        _, positions, order = np.intersect1d(self.rows, rows, assume_unique=True, return_indices=True)
        place = order if provenance.keys == keys else provenance.rows(keys)[order]
        silent = place < 0
        if silent.any():
            why = [provenance.unknown[keys[row]] for row in order[silent].tolist()]
            self.note[positions[silent]] = _codes(self.notes, why)
            positions, place = positions[~silent], place[~silent]
        self.values[positions] = peak.values[place]
        models, notes = _codes(self.models, provenance.models), _codes(self.notes, provenance.reasons)
        self.model[positions] = models if isinstance(models, int) else models[place]
        self.note[positions] = notes if isinstance(notes, int) else notes[place]

    def set_unknown(self, positions: NDArray[np.bool_], reason: str) -> None:
        """Store why these positions have no forecast."""
        self.values[positions], self.note[positions] = np.nan, self.notes[reason]

    def forecasts(self, begin: datetime, until: datetime, members: SpanRows) -> PeakForecasts:
        """Return the forecasts of some workloads."""
        same = len(members.rows) == len(self.rows)
        at: slice | Positions = slice(None) if same else np.searchsorted(self.rows, members.rows)
        values, model, note = self.values[at], self.model[at], self.note[at]
        tables = tuple(self.models), tuple(self.notes)
        return PeakForecasts(begin, until, members.ids, members.place, values, model, note, *tables)


def _codes(texts: TextCodes[str], words: Sequence[str]) -> Codes | int:
    """The code of each word, or of all where they are the same."""
    return texts[words[0]] if words and words.count(words[0]) == len(words) else texts.codes(words)


def panel_of(
    history: FreshHistory,
    values: NDArray[np.floating],
    keys: tuple[str, ...],
    made: Callable[..., Panel] = trusted,
) -> Panel:
    """Make a panel of some rows of a history, or of values made from them.

    The window names instants at which a bin ends, the panel those where it begins. Its bins are labelled by the clock's
    cut also when they end up to four minutes later: models compute with time differences, and a panel that changed its
    phase every minute would look like another one.
    """
    weeks = history.weeks
    return made(values, weeks.start - weeks.step, weeks.step, keys)


STEPS = 12
"""Steps of five minutes."""
PATH_LEVELS = (0.1, 0.5, 0.9, 0.95)
PATH_ROUNDS = 10
"""Largest number of cycles between two paths of a workload."""
PATH_DIGITS = 4
"""Significant digits stored: the table has some fifty of these numbers per workload."""


@dataclass(slots=True)
class Paths:
    """The newest path of every workload and signal."""

    by_workload: dict[WorkloadId, dict[Signal, StepForecast]] = field(default_factory=dict)
    """The inner ones are replaced as a whole when a path is."""
    _turns: dict[Signal, int] = field(default_factory=dict)

    def due(self, signal: Signal, shards: Sequence[Shard]) -> list[Shard]:
        """The shards that are due in this cycle."""
        turn = self._turns[signal] = self._turns.get(signal, -1) + 1
        rounds = max(1, min(PATH_ROUNDS, len(shards)))
        return [shard for i, shard in enumerate(shards) if (i + turn) % rounds == 0]

    def take(
        self, signal: Signal, forecasts: Iterable[tuple[Shard, Forecast]], *, begin: datetime, now: datetime
    ) -> None:
        """Store the forecasts of the steps from `begin` on."""
        for shard, forecast in forecasts:
            for id_, path in _paths(shard, forecast, begin, now):
                self.by_workload[id_] = {**self.by_workload.get(id_, {}), signal: path}

    def forget(self, signal: Signal, shards: Sequence[Shard]) -> None:
        """Drop the paths of workloads that are forecast no more."""
        forecast_ids = {id_ for shard in shards for id_ in shard.ids}
        for id_ in [id_ for id_, paths in self.by_workload.items() if signal in paths and id_ not in forecast_ids]:
            rest = {other: path for other, path in self.by_workload.pop(id_).items() if other != signal}
            if rest:
                self.by_workload[id_] = rest


def _paths(
    shard: Shard, forecast: Forecast, begin: datetime, now: datetime
) -> Iterator[tuple[WorkloadId, StepForecast]]:
    models, step = forecast.provenance.models, forecast.step
    values = _rounded(forecast.values.transpose(0, 2, 1)).tolist()
    for id_, row in zip(shard.ids, forecast.provenance.rows(shard.keys).tolist(), strict=True):
        if row >= 0:
            yield id_, StepForecast(now, begin, step, forecast.levels, tuple(map(tuple, values[row])), models[row])


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to `PATH_DIGITS` significant digits."""
    whole = np.floor(np.log10(np.maximum(values, 1e-12)))
    scale = 10.0 ** (PATH_DIGITS - 1 - whole)
    rounded: NDArray[np.float64] = np.round(values * scale) / scale
    return rounded
