"""Fitted models by shard of workloads: fit rarely and in rotation, carry on with every new sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.forecasting.panels import key_of, panel_of
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from datetime import datetime

    import models
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId

ROWS = 128
"""Workloads fitted together: enough for array arithmetic, few enough that fitting one shard fits into any cycle."""


@dataclass(slots=True)
class Shard:
    """Some neighbouring rows of a window, the model fitted on them, and what it has said since its newest sample."""

    ids: tuple[WorkloadId, ...]
    keys: tuple[str, ...]
    fitted: models.Fitted | None = None
    fitted_at: datetime | None = None
    said: dict[models.Window, models.Peak] = field(default_factory=dict)

    def learn(self, model: models.Model, panel: models.Panel, now: datetime) -> None:
        """Fit anew."""
        self.fitted, self.fitted_at = model.fit(panel), now
        self.said.clear()

    def update(self, panel: models.Panel) -> None:
        """Give the model the newest samples."""
        if self.fitted is not None:
            self.fitted = self.fitted.update(panel)
            self.said.clear()

    def peak(self, steps: models.Window) -> models.Peak | None:
        """What is said of these steps: asked once for each sample; None while there is no model."""
        if steps not in self.said and self.fitted is not None:
            self.said[steps] = self.fitted.forecast_peak(steps, LEVELS)
        return self.said.get(steps)


@dataclass(slots=True)
class Shards:
    """All shards of one signal. A shard whose workloads changed loses its model."""

    model: models.Model
    shards: list[Shard] = field(default_factory=list)
    seen: int | None = None
    """Revision of the window that the models know."""

    def follow(self, window: Window) -> None:
        """Cut the window into shards and give every model the newest samples, if there are any."""
        if window.revision is not None and window.revision == self.seen:
            return
        cut = [window.keys[i : i + ROWS] for i in range(0, len(window.keys), ROWS)]
        self.shards = [self._kept(i, ids) for i, ids in enumerate(cut)]
        for i, shard in enumerate(self.shards):
            if shard.fitted is not None:
                shard.update(self._panel(window, i))
        self.seen = window.revision

    def learn(self, window: Window, due: list[int], now: datetime) -> None:
        """Fit these shards anew."""
        for i in due:
            self.shards[i].learn(self.model, self._panel(window, i), now)

    def waiting(self) -> list[int]:
        """Shards that have no model yet."""
        return [i for i, shard in enumerate(self.shards) if shard.fitted is None]

    def oldest(self, before: datetime) -> list[int]:
        """The shard whose model is the oldest of those fitted at `before` or earlier; none when all are younger."""
        old = [(shard.fitted_at, i) for i, shard in enumerate(self.shards) if shard.fitted_at]
        return [i for at, i in sorted(old)[:1] if at <= before]

    def _panel(self, window: Window, i: int) -> models.Panel:
        shard = self.shards[i]
        return panel_of(window, slice(i * ROWS, i * ROWS + len(shard.ids)), shard.keys)

    def _kept(self, i: int, ids: tuple[WorkloadId, ...]) -> Shard:
        if i < len(self.shards) and self.shards[i].ids == ids:
            return self.shards[i]
        return Shard(ids, tuple(map(key_of, ids)))
