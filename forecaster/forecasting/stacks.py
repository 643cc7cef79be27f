"""Stacks: shards with models that are called together, because a call on a large array costs less per workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, groupby, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

import models
from forecaster.forecasting.cleaning import Bins, Settled, ShardHistory, cleaned_since
from forecaster.forecasting.peaks import LEVELS, ModelAnswers, panel_of
from forecaster.forecasting.wall_clock import by_wall_clock

if TYPE_CHECKING:
    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.shards import Shard

NO_WINDOWS: Mapping[models.StepWindow, Bins] = MappingProxyType({})
STACKED_SHARDS = 16
"""Shards of a stack: two thousand workloads, of which two weeks are 32 MB."""
MAX_WINDOWS_AT_ONCE = 16
"""Number of windows of few workloads that are computed together: each is computed for the workloads of all, and 1,000
workloads with lead times of their own would cost as much as a million."""


class LatestPanel(NamedTuple):
    """Input of a fitted model: demand up to now, and the `Masked` code of its latest column or 0."""

    panel: models.Panel
    masked: NDArray[np.uint8]
    settled: Settled | None


def latest_panel(
    history: FreshHistory, ids: Sequence[WorkloadId], keys: tuple[str, ...], rows: Bins, settled: Settled | None
) -> LatestPanel:
    """Return the latest demand of workloads; usage where no context is known."""
    if history.context is None or settled is None:
        usage = by_wall_clock(history.rows(rows), ids, history)
        return LatestPanel(panel_of(history, usage, keys), np.zeros(len(keys), np.uint8), settled)
    latest = cleaned_since(ShardHistory(ids, rows, history, history.context), settled)
    demand = by_wall_clock(latest.values, ids, history)
    return LatestPanel(panel_of(history, demand, keys), latest.masked, latest.settled)


@dataclass(slots=True)
class Stack:
    """Some shards with models, joined into one; its learned state returns to them after each call."""

    shards: tuple[Shard, ...]
    first: int
    """Row of its first workload among all of the signal."""
    ids: tuple[WorkloadId, ...]
    keys: tuple[str, ...]
    fitted: models.Fitted
    settled: Settled | None
    parts: tuple[models.Fitted | None, ...]
    """The models of the shards, of which `fitted` is made."""

    @property
    def place(self) -> slice:
        """Return its rows among all rows of the signal."""
        return slice(self.first, self.first + len(self.ids))

    def stands(self, shards: tuple[Shard, ...], first: int) -> bool:
        """Whether it is still made of these shards."""
        same = len(shards) == len(self.shards) and first == self.first
        return same and all(
            present is shard and present.fitted is part
            for present, shard, part in zip(shards, self.shards, self.parts, strict=True)
        )

    def ask(
        self,
        history: FreshHistory,
        rows_by_window: Mapping[models.StepWindow, Bins],
        now: datetime,
        answers: Mapping[models.StepWindow, ModelAnswers],
    ) -> NDArray[np.uint8]:
        """Store the forecasts of these windows; return the `Masked` code of the latest column [row].

        Windows come with the rows that want them; windows of few rows are computed for these alone. The model gets the
        samples for this call only: its memory does not grow with the history, but its learned state is updated. Where
        one model of several fails, each shard is called alone.
        """
        latest = latest_panel(history, self.ids, self.keys, self._rows, self.settled)
        if len(self.shards) == 1:
            self._ask_alone(latest.panel, tuple(rows_by_window), now, answers)
        else:
            try:
                few = few_want(rows_by_window, len(self.ids))
                self._take(latest.panel, tuple(window for window in rows_by_window if window not in few), answers, few)
            except Exception:  # noqa: BLE001  asked alone, one of the shards says which error it is
                for shard, place in self._places():
                    alone = Stack.of((shard,), self.first + place.start)
                    windows = tuple(window for window, rows in rows_by_window.items() if _any_within(rows, place))
                    alone._ask_alone(latest.panel.take(place), windows, now, answers)  # noqa: SLF001  of its own class
        self._settle(latest.settled)
        return latest.masked

    def ask_rows(self, rows: Bins, history: FreshHistory, window: models.StepWindow, answers: ModelAnswers) -> None:
        """Store the forecasts of one window for these rows; one shard is computed as a whole.

        Nothing is learned from it, and a model that fails has no forecast.
        """
        if len(self.shards) == 1:
            rows = np.arange(len(self.ids))
        ids, keys = ([every[row] for row in rows.tolist()] for every in (self.ids, self.keys))
        settled = self.settled.part(rows) if self.settled else None
        latest = latest_panel(history, ids, tuple(keys), self._rows[rows], settled)
        with suppress(Exception):  # it may be anybody's
            model = self._part(rows).update(latest.panel)
            answers.take(self.first + rows, tuple(keys), model.forecast_peak(window, LEVELS))

    @property
    def _rows(self) -> Bins:
        """Return the positions of its workloads in the history."""
        return np.concatenate([shard.rows for shard in self.shards])

    def _part(self, rows: slice | Bins) -> models.Fitted:
        """The model of some of its workloads; that of one shard stays whole."""
        fitted = self.fitted
        return fitted.part(rows) if len(self.shards) > 1 and isinstance(fitted, models.Stacks) else fitted

    def _places(self) -> Iterator[tuple[Shard, slice]]:
        """Yield each shard and its rows in the stack."""
        first = 0
        for shard in self.shards:
            yield shard, slice(first, first := first + len(shard.ids))

    def _ask_alone(
        self,
        panel: models.Panel,
        windows: Sequence[models.StepWindow],
        now: datetime,
        answers: Mapping[models.StepWindow, ModelAnswers],
    ) -> None:
        """Ask the only shard; a failure is its own."""
        (shard,) = self.shards
        with shard.boundary():
            self._take(panel, windows, answers)
        if shard.failure and shard.fitted_at != now:
            shard.fitted_at = None

    def _take(
        self,
        panel: models.Panel,
        windows: Sequence[models.StepWindow],
        answers: Mapping[models.StepWindow, ModelAnswers],
        few: Mapping[models.StepWindow, Bins] = NO_WINDOWS,
    ) -> None:
        model = self.fitted.update(panel)
        for window, peak in all_peaks(model, windows).items() if windows else ():
            answers[window].take(self.first + np.arange(len(self.ids)), self.keys, peak)
        for begin in range(0, len(few), MAX_WINDOWS_AT_ONCE):
            group = tuple(islice(few, begin, begin + MAX_WINDOWS_AT_ONCE))
            rows = np.unique(np.concatenate([few[window] for window in group]))
            keys = tuple(self.keys[row] for row in rows.tolist())
            for window, peak in all_peaks(self._part(rows).update(panel.take(rows)), group).items():
                answers[window].take(self.first + rows, keys, peak)
        if isinstance(self.fitted, models.Forgets):
            self._learned(without_history(model))
        for shard in self.shards:
            shard.failure = ""

    def _learned(self, fitted: models.Fitted) -> None:
        """Return the learned state to the shards."""
        self.fitted = fitted
        for shard, place in self._places():
            shard.fitted = self._part(place)
        self.parts = tuple(shard.fitted for shard in self.shards)

    def _settle(self, settled: Settled | None) -> None:
        if settled is None or settled is self.settled:
            return
        self.settled = settled
        for shard, place in self._places():
            if shard.cleaning:
                shard.cleaning = replace(shard.cleaning, settled=settled.part(place))

    @classmethod
    def of(cls, shards: tuple[Shard, ...], first: int) -> Stack:
        """One of shards that can be asked together.

        Raises:
            Apart: they cannot.
        """
        fitted, settled = _joined([shard.fitted for shard in shards if shard.fitted]), _settled(shards)
        ids = tuple(chain.from_iterable(shard.ids for shard in shards))
        keys = tuple(chain.from_iterable(shard.keys for shard in shards))
        return cls(shards, first, ids, keys, fitted, settled, tuple(shard.fitted for shard in shards))


class Apart(Exception):
    """Shards that cannot be asked together."""


def _joined(fitted: Sequence[models.Fitted]) -> models.Fitted:
    first, *others = fitted
    if not others:
        return first
    together = first.stacked(others) if isinstance(first, models.Stacks) else None
    if together is None:
        raise Apart
    return together


def _settled(shards: Sequence[Shard]) -> Settled | None:
    known = [shard.cleaning.settled for shard in shards if shard.cleaning]
    settled = Settled.stacked(known) if len(known) > 1 else next(iter(known), None)
    if known and (len(known) < len(shards) or settled is None):
        raise Apart
    return settled


def stacked(shards: Sequence[Shard], before: Sequence[Stack]) -> list[Stack]:
    """The shards that have a model, in stacks as large as can be; those that stand as before are kept."""
    known = {stack.first: stack for stack in before}
    return list(chain.from_iterable(_stacked(run, first, known) for run, first in _runs(shards)))


def _stacked(run: tuple[Shard, ...], first: int, known: Mapping[int, Stack]) -> Iterator[Stack]:
    before = known.get(first)
    if before and before.stands(run, first):
        yield before
        return
    try:
        yield Stack.of(run, first)
    except Apart:
        for shard in run:
            yield from _stacked((shard,), first, known)
            first += len(shard.ids)


def _runs(shards: Sequence[Shard]) -> Iterator[tuple[tuple[Shard, ...], int]]:
    """Neighbours that have a model, at most `STACKED_SHARDS`, and the row of their first workload."""
    firsts = np.cumsum([0, *(len(shard.ids) for shard in shards)]).tolist()
    for begin in range(0, len(shards), STACKED_SHARDS):
        part = range(begin, min(begin + STACKED_SHARDS, len(shards)))
        for fitted, places in groupby(part, lambda i: shards[i].fitted is not None):
            if fitted:
                run = list(places)
                yield tuple(shards[i] for i in run), firsts[run[0]]


def few_want(rows_by_window: Mapping[models.StepWindow, Bins], count: int) -> Mapping[models.StepWindow, Bins]:
    """Return windows of less than an eighth of `count` rows; none where few windows have over a quarter."""
    few = {window: rows for window, rows in rows_by_window.items() if 8 * len(rows) < count}
    together = len({row for rows in few.values() for row in rows.tolist()})
    return few if 4 * together <= count or len(few) > MAX_WINDOWS_AT_ONCE else NO_WINDOWS


def _any_within(rows: Bins, place: slice) -> bool:
    return bool(((rows >= place.start) & (rows < place.stop)).any())


def all_peaks(model: models.Fitted, windows: Sequence[models.StepWindow]) -> Mapping[models.StepWindow, models.Peak]:
    """Return the forecasts of several windows: in one call if the model can."""
    if isinstance(model, models.SeesAll):
        return model.forecast_peaks(windows, LEVELS)
    return {window: model.forecast_peak(window, LEVELS) for window in windows}


def without_history(fitted: models.Fitted) -> models.Fitted:
    """A fitted model without the samples it was fitted on, if it can be had: a copy of the rings, all in all."""
    return fitted.without_history() if isinstance(fitted, models.Forgets) else fitted
