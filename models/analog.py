"""Analogs: what followed on the moments of a series' own past that were most like the present one, beside the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .clean import bins_seen, filled
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .prior import answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Bins = npt.NDArray[np.intp]

# Series with less history have too few moments to compare with.
ANALOG_DAYS = 3
# Lengths of the latest past that are compared, as shares of a day: five minutes to half a day.
LOOKS = (1 / 288, 1 / 96, 1 / 24, 1 / 8, 1 / 2)
# Series looked at together; five looks back on four weeks of 64 of them take 20 MB.
SERIES_AT_ONCE = 64


@dataclass(frozen=True)
class Analog:
    """Quantiles of what followed on the most similar moments, pooled with those of the prior.

    Similar moments are alike in their latest value and in the means of the last quarter of an hour to half a day, in
    units of the series' largest value (analogue forecasting, Lorenz 1969). Made for load that switches on and off: what
    followed lies on both of its levels, where a mean of shapes lies between them. Series of less than three days have
    the prior alone.

    Attributes:
        nearest: moments whose future is taken.
        prior: share of the pool that the prior speaks for.
    """

    nearest: int = 80
    prior: float = 0.3
    name: str = "analog"

    def fit(self, panel: Panel) -> FittedRule[tuple[()]]:
        """Learn nothing: the past is looked through when a forecast is asked for."""
        return FittedRule(self, panel, ())

    def reach(self, history: Panel) -> int:
        """Steps of a day, as far as the prior looks."""
        return history.bins(DAY)

    def paths(self, history: Panel, learned: tuple[()], steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step], NaN for series with fewer than three bins and for steps beyond a day."""
        return self._pooled(history, [StepWindow(step, step) for step in range(1, steps + 1)], levels)

    def peaks(self, history: Panel, learned: tuple[()], window: StepWindow, levels: Sequence[float]) -> Floats:  # noqa: ARG002  as above
        """[series, quantile] of the largest value of the window."""
        return self._pooled(history, [window], levels)[:, :, 0]

    def _pooled(self, history: Panel, windows: Sequence[StepWindow], levels: Sequence[float]) -> Floats:
        """[series, quantile, window] of the pool; of the prior where there is no past to look through."""
        out = answers(history, windows, levels)
        count = max(1, round(self.nearest * self.prior / (1 - self.prior)))
        ranks = tuple(((np.arange(count) + 0.5) / count).tolist())
        told = np.isfinite(out).all(axis=(1, 2))
        last = max(window.last for window in windows)
        grown = told & (bins_seen(history.values) - last >= ANALOG_DAYS * history.bins(DAY))
        for rows in _blocks(np.flatnonzero(grown)):
            some = history.take(rows)
            pool = [self._followed(some, windows, last), answers(some, windows, ranks)]
            out[rows] = np.quantile(np.concatenate(pool, axis=1), levels, axis=1).swapaxes(0, 1)
        return out

    def _followed(self, history: Panel, windows: Sequence[StepWindow], last: int) -> Floats:
        """[series, moment, window] the largest value of each window after the most similar moments."""
        known = filled(history.values).astype(np.float32, copy=False)
        moments = self._similar(known, np.isnan(history.values), history.bins(DAY), known.shape[1] - last)
        rows = np.arange(len(known))[:, None, None]
        ahead = [known[rows, moments[:, :, None] + np.arange(one.first, one.last + 1)].max(axis=2) for one in windows]
        return np.stack(ahead, axis=2)

    def _similar(self, known: Floats, unknown: npt.NDArray[np.bool_], day: int, count: int) -> Bins:
        """[series, moment] bins among the first `count` that are most like the latest one."""
        most = known.max(axis=1, keepdims=True)
        scaled = known / np.where(most > 0, most, 1)
        apart = np.zeros((len(known), count), np.float32)
        total = np.concatenate([np.zeros((len(known), 1)), np.cumsum(scaled, axis=1, dtype=np.float64)], axis=1)
        for width in sorted({max(1, round(look * day)) for look in LOOKS}):
            mean = np.full(known.shape, np.inf)
            mean[:, width - 1 :] = (total[:, width:] - total[:, :-width]) / width
            apart += np.square(mean[:, :count] - mean[:, -1:])
        apart[unknown[:, :count]] = np.inf
        return np.argpartition(apart, self.nearest, axis=1)[:, : self.nearest]


def _blocks(rows: Bins) -> Iterator[Bins]:
    for first in range(0, len(rows), SERIES_AT_ONCE):
        yield rows[first : first + SERIES_AT_ONCE]
