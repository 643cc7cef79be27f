"""Fitted models by shard of workloads: fit rarely and in rotation, carry on with every new sample."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.forecasting.panels import key_of, panel_of
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import models
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId

ROWS = 128
"""Workloads fitted together: enough for array arithmetic, few enough that fitting one shard fits into any cycle."""


@dataclass(slots=True)
class Shard:
    """Some neighbouring rows of a window, the model fitted on them, and what it has said since its newest sample.

    A model that fails costs its own workloads their forecast, with a reason, and nobody else: it is fitted anew at
    once when it fails on the way, and when its turn comes again when fitting itself fails.
    """

    ids: tuple[WorkloadId, ...]
    keys: tuple[str, ...]
    fitted: models.Fitted | None = None
    fitted_at: datetime | None = None
    """When fitting was tried last; None when it is to be tried at once."""
    failure: str = ""
    said: dict[models.Window, models.Peak] = field(default_factory=dict)

    def learn(self, model: models.Model, panel: models.Panel, now: datetime) -> None:
        """Fit anew."""
        self.fitted, self.fitted_at, self.failure = None, now, ""
        self.said.clear()
        with self._boundary():
            self.fitted = model.fit(panel)

    def update(self, panel: models.Panel) -> None:
        """Give the model the newest samples."""
        if self.fitted is None:
            return
        self.said.clear()
        with self._boundary():
            self.fitted = self.fitted.update(panel)
        if self.failure:
            self.fitted_at = None

    def peak(self, steps: models.Window) -> models.Peak | None:
        """What is said of these steps: asked once for each sample; None while there is no model."""
        if steps not in self.said and self.fitted is not None:
            with self._boundary():
                self.said[steps] = self.fitted.forecast_peak(steps, LEVELS)
        return self.said.get(steps)

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  a model may be anybody's, and nothing it does may stop the others
            self.fitted, self.failure = None, f"the model failed with {type(error).__name__}: {error}"


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
        """Shards whose model is to be fitted at once."""
        return [i for i, shard in enumerate(self.shards) if shard.fitted_at is None]

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
