"""Fitted models by shard of workloads: fit rarely and in rotation, carry on every cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.forecasting.panels import panel_of

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    import models
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId

ROWS = 512
"""Workloads fitted together: large enough for array arithmetic, small enough to fit one between two cycles."""


@dataclass(slots=True)
class Shard:
    """Some neighbouring rows of a window, and the model fitted on them."""

    ids: tuple[WorkloadId, ...]
    fitted: models.Fitted | None = None
    fitted_at: datetime | None = None


@dataclass(slots=True)
class Shards:
    """All shards of one signal.

    A shard whose workloads changed loses its model. Each round fits the shards without one, `fits` at most, and when
    all have one the oldest, once it is older than `refit_after`.
    """

    model: models.Model
    refit_after: timedelta
    fits: int
    shards: list[Shard] = field(default_factory=list)

    def follow(self, window: Window, now: datetime) -> None:
        """Cut the window into shards, fit what is due and give every model the newest samples."""
        cut = [window.keys[i : i + ROWS] for i in range(0, len(window.keys), ROWS)]
        self.shards = [self._kept(i, ids) for i, ids in enumerate(cut)]
        due = self._due(now)
        for i, shard in enumerate(self.shards):
            panel = panel_of(window, slice(i * ROWS, i * ROWS + len(shard.ids)))
            if i in due:
                shard.fitted, shard.fitted_at = self.model.fit(panel), now
            elif shard.fitted is not None:
                shard.fitted = shard.fitted.update(panel)

    @property
    def waiting(self) -> int:
        """Shards that have no model yet."""
        return sum(shard.fitted is None for shard in self.shards)

    def _kept(self, i: int, ids: tuple[WorkloadId, ...]) -> Shard:
        return self.shards[i] if i < len(self.shards) and self.shards[i].ids == ids else Shard(ids)

    def _due(self, now: datetime) -> set[int]:
        unfitted = [i for i, shard in enumerate(self.shards) if shard.fitted_at is None]
        if unfitted:
            return set(unfitted[: self.fits])
        old = [(shard.fitted_at, i) for i, shard in enumerate(self.shards) if shard.fitted_at]
        return {i for at, i in sorted(old)[:1] if now - at >= self.refit_after}
