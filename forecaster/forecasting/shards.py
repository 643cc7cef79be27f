"""Fitted models by shard of workloads: fit rarely and in rotation, asked every cycle with the newest samples."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

import models
from forecaster.forecasting.cleaning import ShardHistory, cleaned_since, cleaned_weeks
from forecaster.forecasting.peaks import LEVELS, key_of, panel_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.cleaning import Bins, Cleaning

ROWS = 128
"""Workloads fitted together: enough for array arithmetic, few enough that fitting one shard fits into any cycle."""


@dataclass(slots=True)
class Shard:
    """Some workloads and the model fitted on them; `rows` says where in the history they are.

    A model that fails costs its own workloads their forecast, with a reason, and no others. One that fails on the
    way is fitted anew in the next round; one that fails in the round of its fit waits until its turn comes again.
    """

    ids: tuple[WorkloadId, ...]
    keys: tuple[str, ...]
    rows: Bins = field(default_factory=lambda: np.zeros(0, np.intp))
    fitted: models.Fitted | None = None
    fitted_at: datetime | None = None
    """When fitting was tried last; None when it is to be tried at once."""
    failure: str = ""
    cleaning: Cleaning | None = None

    def learn(self, model: models.Model, panel: models.Panel, now: datetime) -> None:
        """Fit anew."""
        self.fitted, self.fitted_at, self.failure = None, now, ""
        with self._boundary():
            self.fitted = without_history(model.fit(panel))

    def peaks(
        self, panel: models.Panel, windows: Iterable[models.StepWindow], now: datetime
    ) -> Mapping[models.StepWindow, models.Peak]:
        """What the model says of these windows after the newest samples; nothing while there is no model.

        The samples are lent to it for this question only: what the models keep does not grow with the history. What it
        learned from them stays.
        """
        if self.fitted is None:
            return {}
        said: Mapping[models.StepWindow, models.Peak] = {}
        with self._boundary():
            model = self.fitted.update(panel)
            said = all_peaks(model, tuple(windows))
            if isinstance(self.fitted, models.Forgets):
                self.fitted = without_history(model)
        if self.failure and self.fitted_at != now:
            self.fitted_at = None
        return said

    def path(self, panel: models.Panel, steps: int, levels: Sequence[float]) -> models.Forecast | None:
        """Every step after the newest samples; nothing while there is no model, or when it cannot say.

        No decision looks at it, so a model that fails here keeps its word on everything else.
        """
        with suppress(Exception):  # it may be anybody's
            return self.fitted.update(panel).forecast(steps, levels) if self.fitted else None
        return None

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  a model may be anybody's, and nothing it does may stop the others
            self.fitted, self.failure = None, f"the model failed with {type(error).__name__}: {error}"


@dataclass(slots=True)
class Shards:
    """All shards of one signal. A shard loses its model when its workloads change."""

    model: models.Model
    shards: list[Shard] = field(default_factory=list)

    def follow(self, keys: tuple[WorkloadId, ...], wanted: Collection[WorkloadId]) -> None:
        """Have shards of the wanted ones of these rows; those with the same workloads as before keep their models."""
        row = {id_: i for i, id_ in enumerate(keys)}
        here = [id_ for id_ in wanted if id_ in row]
        before = {shard.ids: shard for shard in self.shards}
        groups = regrouped([shard.ids for shard in self.shards], here)
        self.shards = [before.get(ids) or Shard(ids, tuple(map(key_of, ids))) for ids in groups]
        for shard in self.shards:
            shard.rows = np.fromiter((row[id_] for id_ in shard.ids), np.intp, len(shard.ids))

    def learn(self, history: FreshHistory, due: list[int], now: datetime) -> None:
        """Fit these shards anew."""
        for i in due:
            self.shards[i].learn(self.model, _weeks(self.shards[i], history), now)

    def peaks(
        self, history: FreshHistory, windows: Mapping[models.StepWindow, Collection[WorkloadId]], now: datetime
    ) -> list[Mapping[models.StepWindow, models.Peak]]:
        """What each shard says of those of these windows that some of its workloads want."""
        asked = [(shard, wanted_by(shard.ids, windows)) for shard in self.shards]
        return [shard.peaks(_newest(shard, history), wanted, now) if wanted else {} for shard, wanted in asked]

    def remarks(self) -> dict[WorkloadId, str]:
        """Remarks about workloads that have a demand other than their usage."""
        return {id_: remark for shard in self.shards if shard.cleaning for id_, remark in shard.cleaning.said().items()}

    def paths(
        self, history: FreshHistory, due: Iterable[Shard], steps: int, levels: Sequence[float]
    ) -> Iterator[tuple[Shard, models.Forecast]]:
        """What these shards say step by step."""
        for shard in due:
            forecast = shard.path(_newest(shard, history), steps, levels)
            if forecast is not None:
                yield shard, forecast

    def waiting(self) -> list[int]:
        """Shards with a model that is to be fitted at once."""
        return [i for i, shard in enumerate(self.shards) if shard.fitted_at is None]

    def oldest(self, before: datetime) -> list[int]:
        """The shard with the oldest model of those fitted at `before` or earlier; none when all are younger."""
        old = [(shard.fitted_at, i) for i, shard in enumerate(self.shards) if shard.fitted_at]
        return [i for at, i in sorted(old)[:1] if at <= before]


def _weeks(shard: Shard, history: FreshHistory) -> models.Panel:
    """What a model is to learn from: demand where it is known what is around it, else usage."""
    if history.around is None:
        return panel_of(history, history.rows(shard.rows), shard.keys)
    group = ShardHistory(shard.ids, shard.rows, history, history.around)
    values, shard.cleaning = cleaned_weeks(group, shard.cleaning)
    return panel_of(history, values, shard.keys)


def _newest(shard: Shard, history: FreshHistory) -> models.Panel:
    """The same up to now, for a model that has learned."""
    if history.around is None or shard.cleaning is None:
        return panel_of(history, history.rows(shard.rows), shard.keys)
    group = ShardHistory(shard.ids, shard.rows, history, history.around)
    values, shard.cleaning = cleaned_since(group, shard.cleaning)
    return panel_of(history, values, shard.keys)


def wanted_by(
    ids: Iterable[WorkloadId], windows: Mapping[models.StepWindow, Collection[WorkloadId]]
) -> list[models.StepWindow]:
    """The windows that some of these workloads want."""
    return [window for window, wanted in windows.items() if any(id_ in wanted for id_ in ids)]


def all_peaks(model: models.Fitted, windows: Sequence[models.StepWindow]) -> Mapping[models.StepWindow, models.Peak]:
    """What a model says of several windows: at once if it can."""
    if isinstance(model, models.SeesAll):
        return model.forecast_peaks(windows, LEVELS)
    return {window: model.forecast_peak(window, LEVELS) for window in windows}


def without_history(fitted: models.Fitted) -> models.Fitted:
    """A fitted model without the samples it was fitted on, if it can be had: a copy of the rings, all in all."""
    return fitted.without_history() if isinstance(fitted, models.Forgets) else fitted


def regrouped(groups: Sequence[Sequence[WorkloadId]], ids: Iterable[WorkloadId]) -> list[tuple[WorkloadId, ...]]:
    """These workloads in groups of `ROWS` at most, few of them changed: a new one fills the place of one that left."""
    wanted = dict.fromkeys(ids)
    stay = [[id_ for id_ in group if id_ in wanted] for group in groups]
    placed = set(chain.from_iterable(stay))
    coming = (id_ for id_ in wanted if id_ not in placed)
    for group in stay:
        group.extend(islice(coming, ROWS - len(group)))
    while group := list(islice(coming, ROWS)):
        stay.append(group)
    return [tuple(group) for group in stay if group]
