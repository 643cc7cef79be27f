"""Fitted models by shard of workloads: fit rarely and in rotation, asked every cycle with the newest samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import models
from forecaster.demand.alignment import rows_among
from forecaster.forecasting.cleaning import Bins, Cleaning, ShardHistory, cleaned_weeks, masked_now, with_now
from forecaster.forecasting.peaks import ModelAnswers, SpanRows, panel_of
from forecaster.forecasting.stacks import Stack, latest_panel, stacked, without_history
from forecaster.forecasting.wall_clock import by_wall_clock

if TYPE_CHECKING:
    from forecaster.demand.fresh import FreshHistory
    from forecaster.demand.masks import Masked
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.forecaster import PeakSpan

ROWS = 128
"""Workloads fitted together: enough for array arithmetic, few enough that fitting one shard fits into any cycle."""


@dataclass(slots=True)
class Shard:
    """Some workloads and the model fitted on them; `rows` says where in the history they are.

    Until the first fit, `fitted` is what stands in for the model, or nothing.
    A model that fails costs its own workloads their forecast, with a reason, and no others. Its shard is divided until
    the workload that it fails on is alone. Alone, one that fails on the way is fitted anew in the next round; one that
    fails in the round of its fit waits until its turn comes again.
    """

    ids: tuple[WorkloadId, ...]
    keys: tuple[str, ...]
    rows: Bins = field(default_factory=lambda: np.zeros(0, np.intp))
    fitted: models.Fitted | None = None
    fitted_at: datetime | None = None
    """Instant of the last fit; None when it is to be fitted at once."""
    failure: str = ""
    """Why it has no model; after a fit, why it had none, until the new one has answered."""
    cleaning: Cleaning | None = None

    def learn(self, model: models.Model, history: FreshHistory, now: datetime) -> None:
        """Fit anew."""
        self.fitted, self.fitted_at = None, now
        panel = self._weeks(history)
        with self.boundary():
            self.fitted = without_history(model.fit(panel))

    def path(self, history: FreshHistory, steps: int, levels: Sequence[float]) -> models.Forecast | None:
        """Every step after the newest samples; nothing while there is no model, or when it cannot say.

        No decision looks at it, so a model that fails here keeps its word on everything else.
        """
        if self.fitted is None:
            return None
        settled = self.cleaning.settled if self.cleaning else None
        panel = latest_panel(history, self.ids, self.keys, self.rows, settled).panel
        with suppress(Exception):  # it may be anybody's
            return self.fitted.update(panel).forecast(steps, levels)
        return None

    @property
    def divisible(self) -> models.Stacks | None:
        """Return its model if the model can be divided by workload."""
        fitted = self.fitted
        if fitted is None or not isinstance(fitted, models.Stacks):
            return None
        return fitted if fitted.stacked(()) is not None else None

    def with_only(self, ids: tuple[WorkloadId, ...]) -> Shard:
        """Return a shard of some of its workloads with their learned state; unfitted if others are among them."""
        if ids == self.ids:
            return self
        whole, rows = self.divisible, rows_within(self.ids, ids)
        if whole is None or rows is None:
            return Shard.of(ids)
        cleaning = self.cleaning.part(rows, ids) if self.cleaning else None
        return replace(Shard.of(ids), fitted=whole.part(rows), fitted_at=self.fitted_at, cleaning=cleaning)

    def with_next(self, other: Shard) -> Shard:
        """Join two shards into one that is to be fitted; what pods use to start stays known."""
        cleaning = self.cleaning.joined(other.cleaning) if self.cleaning and other.cleaning else None
        rows = np.concatenate([self.rows, other.rows])
        return Shard(self.ids + other.ids, self.keys + other.keys, rows, cleaning=cleaning)

    @classmethod
    def of(cls, ids: tuple[WorkloadId, ...], failure: str = "") -> Shard:
        """Return a shard without a model."""
        return cls(ids, tuple(id_.path for id_ in ids), failure=failure)

    @property
    def divides(self) -> bool:
        """Whether its model failed, on some of several workloads."""
        return bool(self.failure) and self.fitted is None and len(self.ids) > 1

    def halves(self) -> tuple[Shard, ...]:
        """Return two shards that are to be fitted at once in place of one that divides."""
        middle = len(self.ids) // 2
        return tuple(Shard.of(ids, self.failure) for ids in (self.ids[:middle], self.ids[middle:]))

    @contextmanager
    def boundary(self) -> Iterator[None]:
        """An error within is the failure of this shard, which has no model any more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  a model may be anybody's, and nothing it does may stop the others
            self.fitted, self.failure = None, f"the model failed with {type(error).__name__}: {error}"

    def _weeks(self, history: FreshHistory) -> models.Panel:
        """Return training data: demand where the context of the usage is known, else usage."""
        if history.context is None:
            usage = by_wall_clock(history.rows(self.rows), self.ids, history)
            return panel_of(history, usage, self.keys, models.Panel)
        group = ShardHistory(self.ids, self.rows, history, history.context)
        values, self.cleaning = cleaned_weeks(group, self.cleaning)
        return panel_of(history, by_wall_clock(values, self.ids, history), self.keys, models.Panel)


@dataclass(slots=True)
class Shards:
    """All shards of one signal. What was learned of a workload stays when others of its shard go or come.

    Newcomers have a shard of their own until the one before it is fitted anew. Of a model that knows no parts nothing
    stays when a workload goes. The rows of the answers are the workloads of all shards, one after the other.
    """

    model: models.Model
    shards: list[Shard] = field(default_factory=list)
    ids: tuple[WorkloadId, ...] = ()
    spans: Mapping[PeakSpan, SpanRows] = field(default_factory=dict)
    masked: Mapping[WorkloadId, Masked] = field(default_factory=dict)
    """Workloads with a masked latest column."""
    stacks: list[Stack] = field(default_factory=list)
    _known: tuple[WorkloadId, ...] = ()
    _requested: Mapping[PeakSpan, tuple[WorkloadId, ...]] = field(default_factory=dict)

    def follow(self, keys: tuple[WorkloadId, ...], ids_by_span: Mapping[PeakSpan, Collection[WorkloadId]]) -> None:
        """Have shards of the requested rows; shards with the same workloads as before keep their models.

        A workload that is not requested for a while, because its target cannot be read, keeps its place: without it the
        others of its shard would have no model until the next fit.
        """
        requested = {span: tuple(ids) for span, ids in ids_by_span.items()}
        divided = any(shard.divides for shard in self.shards)
        if keys == self._known and requested == self._requested and not divided:
            return
        if divided:
            self.shards = [part for shard in self.shards for part in (shard.halves() if shard.divides else (shard,))]
        row = {id_: i for i, id_ in enumerate(keys)}
        requested_ids = dict.fromkeys(chain.from_iterable(requested.values()))
        stay = chain.from_iterable(shard.ids for shard in self.shards if mostly(shard.ids, requested_ids))
        members = [id_ for id_ in dict.fromkeys((*requested_ids, *stay)) if id_ in row]
        self.shards = regrouped(self.shards, members)
        for shard in self.shards:
            shard.rows = rows_among(shard.ids, row)
        self.ids = tuple(chain.from_iterable(shard.ids for shard in self.shards))
        places = {id_: place for place, id_ in enumerate(self.ids)}
        self.spans = {span: SpanRows.of(ids, places) for span, ids in requested.items()}
        self._known, self._requested = keys, requested

    def learn(self, history: FreshHistory, due: Shard, now: datetime) -> None:
        """Fit a shard anew, with those after it that fit into one; nothing where it has become part of another.

        One that was never cleaned would take from the other what its pods use to start: it is joined the next time.
        One that failed is not joined before its model has answered.
        """
        place = next((i for i, shard in enumerate(self.shards) if shard is due), None)
        if place is None:
            return
        for after in self.shards[place + 1 :]:
            too_large = len(due.ids) + len(after.ids) > ROWS
            if too_large or due.failure or after.failure or (due.cleaning is None) != (after.cleaning is None):
                break
            due = due.with_next(after)
            self.shards[place : place + 2] = [due]
        due.learn(self.model, history, now)

    def stand_in(self, history: FreshHistory) -> None:
        """Use stand-ins for the shards that wait for their first fit, where the model has them."""
        if not isinstance(self.model, models.HasStandIn):
            return
        for shard in self.waiting():
            if shard.fitted is None and not shard.failure:
                panel = panel_of(history, history.rows(shard.rows[:1]), shard.keys[:1])
                nothing = models.Panel(np.empty((len(shard.ids), 0)), panel.end, panel.step, shard.keys)
                shard.fitted = self.model.stand_in(nothing)

    def peaks(
        self, history: FreshHistory, windows: Mapping[PeakSpan, models.StepWindow], now: datetime
    ) -> Mapping[models.StepWindow, ModelAnswers]:
        """Return the forecasts for these windows, in each stack for the windows that its workloads want."""
        members: dict[models.StepWindow, list[NDArray[np.intp]]] = defaultdict(list)
        for span, window in windows.items():
            members[window].append(self.spans[span].rows)
        answers = {window: ModelAnswers(np.unique(np.concatenate(rows))) for window, rows in members.items()}
        self.stacks = stacked(self.shards, self.stacks)
        masked: dict[WorkloadId, Masked] = {}
        for stack in self.stacks:
            rows_by_window = self._rows_by_window(windows, stack.place)
            if rows_by_window:
                masked |= masked_now(stack.ids, stack.ask(history, rows_by_window, now, answers))
        self.masked = masked
        self._say_why_not(answers)
        return answers

    def _rows_by_window(
        self, windows: Mapping[PeakSpan, models.StepWindow], place: slice
    ) -> dict[models.StepWindow, NDArray[np.intp]]:
        """Return the windows that some rows of a stack want, and these rows."""
        rows_by_window: dict[models.StepWindow, list[NDArray[np.intp]]] = {}
        for span, window in windows.items():
            rows = self.spans[span].within(place)
            if len(rows):
                rows_by_window.setdefault(window, []).append(rows)
        return {window: np.concatenate(parts) for window, parts in rows_by_window.items()}

    def further(
        self, history: FreshHistory, window: models.StepWindow, ids: Collection[WorkloadId]
    ) -> tuple[tuple[WorkloadId, ...], NDArray[np.float64]]:
        """Return quantiles [workload, level] of one more window, for those workloads that have a model.

        Nothing is fitted or learned for it.
        """
        selected = frozenset(ids)
        rows = np.array([row for row, id_ in enumerate(self.ids) if id_ in selected], np.intp)
        self.stacks = stacked(self.shards, self.stacks)
        answers = ModelAnswers(rows)
        for stack in self.stacks:
            first, last = np.searchsorted(rows, (stack.place.start, stack.place.stop))
            if first < last:
                stack.ask_rows(rows[first:last] - stack.first, history, window, answers)
        known = ~np.isnan(answers.values[:, 0])
        return tuple(self.ids[row] for row in rows[known].tolist()), answers.values[known]

    def remarks(self) -> Mapping[WorkloadId, str]:
        """Return remarks about workloads with a demand that differs from their usage."""
        cleanings = (shard.cleaning for shard in self.shards if shard.cleaning)
        remarks = {id_: remark for cleaning in cleanings for id_, remark in cleaning.remarks.items()}
        return with_now(remarks, self.masked) if self.masked else remarks

    def warming(self) -> Iterator[WorkloadId]:
        """Yield the workloads with pods that use some of the signal to start."""
        for shard in self.shards:
            if shard.cleaning:
                yield from (
                    shard.ids[row] for row in np.flatnonzero(shard.cleaning.settled.traits.warm_up > 0).tolist()
                )

    def paths(
        self, history: FreshHistory, due: Iterable[Shard], steps: int, levels: Sequence[float]
    ) -> Iterator[tuple[Shard, models.Forecast]]:
        """Yield the forecasts of these shards step by step."""
        for shard in due:
            forecast = shard.path(history, steps, levels)
            if forecast is not None:
                yield shard, forecast

    def waiting(self) -> list[Shard]:
        """Shards that have a model to be fitted at once."""
        return [shard for shard in self.shards if shard.fitted_at is None]

    def oldest(self, now: datetime, age: timedelta, most: int = 1) -> list[Shard]:
        """Return the shards with the oldest models, at most `most`: of this `age`, or of a clock that was ahead."""
        fitted = ((shard.fitted_at, i) for i, shard in enumerate(self.shards) if shard.fitted_at)
        old = sorted((at, i) for at, i in fitted if not now - age < at <= now)
        return [self.shards[i] for _, i in old[: max(0, most)]]

    def _say_why_not(self, answers: Mapping[models.StepWindow, ModelAnswers]) -> None:
        """Write down why the shards without a model said nothing."""
        waiting = len(self.waiting())
        soon = f"its model is being fitted; parts that wait: {waiting} of {len(self.shards)}"
        shard_of = np.repeat(np.arange(len(self.shards)), [len(shard.ids) for shard in self.shards])
        for answer in answers.values():
            mine = shard_of[answer.rows]
            for place in np.unique(mine).tolist():
                if self.shards[place].fitted is None:
                    answer.set_unknown(mine == place, self.shards[place].failure or soon)


def mostly(ids: Sequence[WorkloadId], requested: Collection[WorkloadId]) -> bool:
    """Whether at least half of these are requested: a shard that is mostly idle is not worth its time."""
    return 2 * sum(id_ in requested for id_ in ids) >= len(ids)


def regrouped(shards: Sequence[Shard], ids: Iterable[WorkloadId]) -> list[Shard]:
    """Return shards of these workloads, at most `ROWS` in each; new ones join a shard without a model."""
    ordered = dict.fromkeys(ids)
    stay = [[id_ for id_ in shard.ids if id_ in ordered] for shard in shards]
    placed = set(chain.from_iterable(stay))
    coming = (id_ for id_ in ordered if id_ not in placed)
    for shard, group in zip(shards, stay, strict=True):
        if (shard.fitted_at is None or shard.fitted is None) and not shard.failure:
            group.extend(islice(coming, ROWS - len(group)))
    renewed = [shard.with_only(tuple(group)) for shard, group in zip(shards, stay, strict=True) if group]
    while new := tuple(islice(coming, ROWS)):
        renewed.append(Shard.of(new))
    return renewed


def rows_within(ids: Sequence[WorkloadId], part: Sequence[WorkloadId]) -> Bins | None:
    """Return the positions of workloads among others; None if one is absent."""
    row = {id_: i for i, id_ in enumerate(ids)}
    rows = rows_among(part, row)
    return None if (rows < 0).any() else rows
