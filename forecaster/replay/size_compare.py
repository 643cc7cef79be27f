"""Several recommenders of sizes over the same loads, each a point of slack against mishaps."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import models
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.forecasting.peaks import HIGH, LOW, MEDIAN
from forecaster.replay.size_replay import STEP_SECONDS, STEPS_A_DAY, SizeAccount, Sizer, SizeSummary, replay_sizes
from forecaster.replay.sizers import Krr, Ours, Vpa
from forecaster.vertical.sizing.load_forecast import PeakQuantiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.replay.size_replay import Load


MODEL = "adaptive"
LEARNED_FROM = 14 * STEPS_A_DAY
REFITTED_AFTER = 7 * STEPS_A_DAY
_BEGIN = datetime(2023, 11, 15, tzinfo=UTC)
_STEP = timedelta(seconds=STEP_SECONDS)
_LEVELS = (LOW, MEDIAN, HIGH)


@dataclass(slots=True, eq=False)
class LoadForecasts:
    """Forecasts of one load, each made once and kept: every strategy has the same."""

    load: Load
    model: str = MODEL
    fitted: dict[int, models.Fitted] = field(default_factory=dict)
    said: dict[tuple[int, int], PeakQuantiles] = field(default_factory=dict)

    def at(self, column: int, ahead: int) -> PeakQuantiles:
        """[row] quantiles of the highest value of so many points from `column` on, from what was before it."""
        if (column, ahead) not in self.said:
            self.said[column, ahead] = self._forecast(column, ahead)
        return self.said[column, ahead]

    def _forecast(self, column: int, ahead: int) -> PeakQuantiles:
        peak = self._fitted_by(column).update(self._panel(column)).forecast_peak(models.StepWindow(1, ahead), _LEVELS)
        values = np.full((len(self.load.names), len(_LEVELS)), np.nan)
        at = peak.provenance.rows(self._keys)
        values[at >= 0] = peak.values[at[at >= 0]]
        return PeakQuantiles(*values.T)

    def _fitted_by(self, column: int) -> models.Fitted:
        week = column - (column - self.load.warm) % REFITTED_AFTER
        if week not in self.fitted:
            self.fitted[week] = models.create(self.model).fit(self._panel(week))
        return self.fitted[week]

    def _panel(self, column: int) -> models.Panel:
        first = max(column - LEARNED_FROM, 0)
        return models.Panel(
            self.load.wanted[:, first:column].astype(np.float32), _BEGIN + first * _STEP, _STEP, self._keys
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(str(row) for row in range(len(self.load.names)))


VPA_MARGINS = (0.0, 0.15, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class SizeStrategy:
    """A recommender with its settings. `family` groups the points of one curve."""

    family: str
    setting: str
    build: Callable[[Load, LoadForecasts], Sizer]
    """Builds the sizer from a load and its forecast."""


@dataclass(frozen=True, slots=True)
class SizeOutcome:
    """What came of one strategy."""

    family: str
    setting: str
    summary: SizeSummary


def size_outcomes(loads: Sequence[Load], strategies: Sequence[SizeStrategy]) -> list[SizeOutcome]:
    """Every strategy over every load, the containers of all of them together."""
    foreseen = [LoadForecasts(load) for load in loads]
    return [SizeOutcome(one.family, one.setting, _over_all(foreseen, one).summary()) for one in strategies]


def backtested_sizes(load: Load, policy: VerticalPolicy) -> list[SizeOutcome]:
    """One policy beside the VPA's margins and KRR."""
    return size_outcomes([load], [SizeStrategy("forecaster", "policy", partial(_ours, policy=policy)), *references()])


def references() -> list[SizeStrategy]:
    """The VPA at several margins, and KRR."""
    vpa = [SizeStrategy("VPA", f"margin {margin:g}", partial(_vpa, margin=margin)) for margin in VPA_MARGINS]
    return [*vpa, SizeStrategy("KRR", "simple", _krr)]


def ours(family: str, setting: str, **policy: object) -> SizeStrategy:
    """Ours under a policy."""
    chosen = VerticalPolicy.model_validate(policy)
    return SizeStrategy(family, setting, partial(_ours, policy=chosen))


def _ours(load: Load, foreseen: LoadForecasts, policy: VerticalPolicy) -> Sizer:
    return Ours(load.resource, len(load.names), policy, foreseen=foreseen)


def _vpa(load: Load, foreseen: LoadForecasts, margin: float) -> Sizer:  # noqa: ARG001  it looks back only
    return Vpa(load.resource, len(load.names), margin)


def _krr(load: Load, foreseen: LoadForecasts) -> Sizer:  # noqa: ARG001  it looks back only
    return Krr(load.resource, len(load.names))


def _over_all(foreseen: Sequence[LoadForecasts], strategy: SizeStrategy) -> SizeAccount:
    accounts = [replay_sizes(one.load, strategy.build(one.load, one)) for one in foreseen]
    return SizeAccount(
        *(np.concatenate([getattr(one, column.name) for one in accounts]) for column in fields(SizeAccount))
    )
