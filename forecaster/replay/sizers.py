"""Sizes that forecaster, the VPA and KRR would have given to recorded containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
from numpy.typing import NDArray

import models
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import DAY
from forecaster.forecasting.peaks import HIGH, LOW, MEDIAN
from forecaster.replay.size_replay import (
    BEGIN_SECONDS,
    POINTS_AN_HOUR,
    STEP_SECONDS,
    STEPS_A_DAY,
    HeldSizes,
    Load,
    Resource,
    SizeAccount,
    Sizer,
    SizeSummary,
    replay_sizes,
)
from forecaster.vertical.recommenders.vpa import VpaPanel, VpaSettings
from forecaster.vertical.sizing.cpu import cpu_sizes
from forecaster.vertical.sizing.load_forecast import LoadForecast, PeakQuantiles, PodCounts, load_forecast
from forecaster.vertical.sizing.memory import OOM_RAISE, OOM_WINDOW, memory_sizes
from forecaster.vertical.sizing.panel import ContainerPanel

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sized = tuple[Doubles, Doubles, Flags]

LIMIT_RATIO = 2.0
"""CPU limit over request where a recommender keeps the ratio that the owner stated; memory has them equal."""
HELD_SECONDS = OOM_WINDOW.total_seconds()


@dataclass(slots=True)
class History:
    """The latest points of all containers, oldest dropped."""

    columns: int
    points: list[Doubles] = field(default_factory=list)

    def add(self, used: Doubles) -> None:
        """Add the usage [row] of one point in time."""
        self.points.append(used)
        if len(self.points) >= 2 * self.columns:
            self.points = self.points[-self.columns :]

    def latest(self, at_least: int = 0) -> Doubles:
        """Return usage [row, time], with gaps before the oldest up to `at_least` points."""
        known = np.stack(self.points[-self.columns :], axis=1)
        return np.pad(known, ((0, 0), (max(at_least - known.shape[1], 0), 0)), constant_values=np.nan)


@dataclass(slots=True)
class Stated:
    """Requests and limits [row] as their owners stated them; infinite where there is no limit."""

    requests: Doubles
    limits: Doubles
    every: int = STEPS_A_DAY

    def observe(self, used: Doubles, at: int) -> None:
        """Learn nothing."""

    def killed(self, rows: NDArray[np.intp], limit: Doubles, at: int) -> None:
        """Learn nothing."""

    def size(self, held: HeldSizes, at: int) -> Sized:  # noqa: ARG002  as `Sizer` has it
        """Return the stated size, always."""
        return self.requests, self.limits, np.zeros(len(self.requests), bool)


@dataclass(slots=True)
class Ours:
    """Sizes by `forecaster.vertical.sizing`, made anew at the end of each horizon."""

    resource: Resource
    rows: int
    policy: VerticalPolicy
    every: int = field(init=False)
    foreseen: LoadForecasts | None = None
    """Forecasts of the load, which for these containers is their CPU."""
    history: History = field(default_factory=lambda: History(14 * STEPS_A_DAY))
    floor: Doubles = field(init=False)
    floor_until: Doubles = field(init=False)

    def __post_init__(self) -> None:
        self.every = max(round(STEPS_A_DAY * (self.policy.horizon / DAY)), 1)
        self.floor, self.floor_until = np.zeros(self.rows), np.zeros(self.rows)

    def observe(self, used: Doubles, at: int) -> None:  # noqa: ARG002  the protocol's
        """Add usage to the history."""
        self.history.add(used)

    def killed(self, rows: NDArray[np.intp], limit: Doubles, at: int) -> None:
        """Raise the floor of containers that were killed at their limit."""
        self.floor[rows] = np.maximum(limit[rows] * OOM_RAISE, self.floor[rows] * (at < self.floor_until[rows]))
        self.floor_until[rows] = at + HELD_SECONDS

    def size(self, held: HeldSizes, at: int) -> Sized:
        """Change every size that differs: the choice itself weighs the cost of the change."""
        panel = self._panel(held, self.floor * (at < self.floor_until), at)
        sizes = (cpu_sizes if self.resource == "cpu" else memory_sizes)(panel, self.policy)
        limit = np.where(np.isnan(sizes.limit), np.inf, sizes.limit)
        return sizes.request, limit, sizes.request != held.request

    def _panel(self, held: HeldSizes, floor: Doubles, at: int) -> ContainerPanel:
        used, unknown = self.history.latest(STEPS_A_DAY), np.full(self.rows, np.nan)
        silent = np.full_like(used, np.nan)
        request, limit = held.request, np.where(np.isinf(held.limit), np.nan, held.limit)
        ratio = np.where(np.isnan(request), LIMIT_RATIO, limit / request)
        if self.resource == "cpu":
            cpu_request = np.where(np.isnan(request), np.nan, request)
            ahead = self._load_forecast(used, at)
            return ContainerPanel(
                *(used, silent, STEPS_A_DAY, cpu_request, cpu_request * ratio, unknown, unknown, floor * 0),
                growth=np.ones(self.rows) if ahead is None else ahead.growth,
                likeness=None if ahead is None else ahead.likeness,
            )
        return ContainerPanel(silent, used, STEPS_A_DAY, unknown, unknown, request, limit, floor, np.ones(self.rows))

    def _load_forecast(self, used: Doubles, at: int) -> LoadForecast | None:
        """Forecast the load of the one pod that carries it; None where it is not forecast."""
        if self.foreseen is None or self.policy.load_forecast == "ignore":
            return None
        forecast = self.foreseen.at((at - BEGIN_SECONDS) // STEP_SECONDS + 1, min(self.every, STEPS_A_DAY))
        alone = np.ones(self.rows)
        counts = PodCounts(alone, np.full(self.rows, np.nan), alone, alone)
        ahead = load_forecast(forecast, used, np.ones_like(used), counts, STEPS_A_DAY, min(self.every, STEPS_A_DAY))
        return ahead.only_raising() if self.policy.load_forecast == "raise" else ahead


@dataclass(slots=True)
class Vpa:
    """The VPA 1.8 with mode Recreate: hourly, and at once after an OOM kill; no floors of a pod."""

    resource: Resource
    rows: int
    margin: float = 0.15
    every: int = POINTS_AN_HOUR
    panel: VpaPanel = field(init=False)

    def __post_init__(self) -> None:
        self.panel = VpaPanel(self.rows)

    def observe(self, used: Doubles, at: int) -> None:
        """Confidence counts samples of CPU, so memory brings some along."""
        cores = used if self.resource == "cpu" else np.where(np.isnan(used), np.nan, 0.1)
        self.panel.add_cpu(cores[:, None], np.array([at]))
        if self.resource == "memory":
            self.panel.add_memory(used, at)

    def killed(self, rows: NDArray[np.intp], limit: Doubles, at: int) -> None:
        """Raise memory by the VPA's rule for OOM kills."""
        self.panel.record_oom(rows, limit[rows], at)

    def size(self, held: HeldSizes, at: int) -> Sized:  # noqa: ARG002  the protocol's
        """The target; pods outside the bounds, or twelve hours old and a tenth away, are changed."""
        settings = VpaSettings(margin=self.margin, pod_min_cpu_millicores=0, pod_min_memory_mb=0)
        recommendation = self.panel.recommend(settings)[self.resource]
        unit = 1000.0 if self.resource == "cpu" else 1.0
        target = recommendation.target / unit
        outside = (held.request < recommendation.lower / unit) | (held.request > recommendation.upper / unit)
        old = held.age >= 12 * 3600
        moves = outside | (old & (np.abs(held.request - target) >= 0.1 * held.request))
        return target, target * (LIMIT_RATIO if self.resource == "cpu" else 1.0), moves


@dataclass(slots=True)
class Krr:
    """KRR 1.29, `simple`: two weeks, daily, changed by its enforcer's fifth; no CPU limit."""

    resource: Resource
    rows: int
    cpu_percentile: float = 95.0
    memory_buffer: float = 0.15
    every: int = STEPS_A_DAY
    history: History = field(default_factory=lambda: History(14 * STEPS_A_DAY))
    killed_at: Doubles = field(init=False)

    def __post_init__(self) -> None:
        self.killed_at = np.zeros(self.rows)

    def observe(self, used: Doubles, at: int) -> None:  # noqa: ARG002  the protocol's
        """Add usage to the history."""
        self.history.add(used)

    def killed(self, rows: NDArray[np.intp], limit: Doubles, at: int) -> None:  # noqa: ARG002  the protocol's
        """Apply KRR's OOM option: the limit at the kill."""
        self.killed_at[rows] = np.maximum(self.killed_at[rows], limit[rows])

    def size(self, held: HeldSizes, at: int) -> Sized:  # noqa: ARG002  the protocol's
        """The percentile of CPU, or the peak of memory with a buffer."""
        used = self.history.latest()
        if self.resource == "cpu":
            target = np.nanpercentile(used, self.cpu_percentile, axis=1)
            limit = np.full(self.rows, np.inf)
        else:
            target = np.maximum(np.fmax.reduce(used, axis=1) * (1 + self.memory_buffer), self.killed_at * 1.25)
            limit = target
        return target, limit, np.abs(target - held.request) > 0.2 * held.request


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
    peaks: dict[tuple[int, int], PeakQuantiles] = field(default_factory=dict)

    def at(self, column: int, ahead: int) -> PeakQuantiles:
        """[row] quantiles of the highest of `ahead` values from `column` on, from the values before it."""
        if (column, ahead) not in self.peaks:
            self.peaks[column, ahead] = self._forecast(column, ahead)
        return self.peaks[column, ahead]

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
            self.load.demand[:, first:column].astype(np.float32), _BEGIN + first * _STEP, _STEP, self._keys
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
    """Result of one strategy over all loads."""

    family: str
    setting: str
    summary: SizeSummary


def size_outcomes(loads: Sequence[Load], strategies: Sequence[SizeStrategy]) -> list[SizeOutcome]:
    """Every strategy over every load, the containers of all of them together."""
    foreseen = [LoadForecasts(load) for load in loads]
    return [
        SizeOutcome(strategy.family, strategy.setting, _over_all(foreseen, strategy).summary())
        for strategy in strategies
    ]


def backtested_sizes(load: Load, policy: VerticalPolicy) -> list[SizeOutcome]:
    """Replay one policy beside the VPA's margins and KRR."""
    return size_outcomes([load], [SizeStrategy("forecaster", "policy", partial(_ours, policy=policy)), *references()])


def references() -> list[SizeStrategy]:
    """The VPA at several margins, and KRR."""
    vpa = [SizeStrategy("VPA", f"margin {margin:g}", partial(_vpa, margin=margin)) for margin in VPA_MARGINS]
    return [*vpa, SizeStrategy("KRR", "simple", _krr)]


def ours(family: str, setting: str, **policy: object) -> SizeStrategy:
    """Return the strategy that sizes by a policy of forecaster."""
    return SizeStrategy(family, setting, partial(_ours, policy=VerticalPolicy.model_validate(policy)))


def _ours(load: Load, foreseen: LoadForecasts, policy: VerticalPolicy) -> Sizer:
    return Ours(load.resource, len(load.names), policy, foreseen=foreseen)


def _vpa(load: Load, foreseen: LoadForecasts, margin: float) -> Sizer:  # noqa: ARG001  it looks back only
    return Vpa(load.resource, len(load.names), margin)


def _krr(load: Load, foreseen: LoadForecasts) -> Sizer:  # noqa: ARG001  it looks back only
    return Krr(load.resource, len(load.names))


def _over_all(foreseen: Sequence[LoadForecasts], strategy: SizeStrategy) -> SizeAccount:
    accounts = [replay_sizes(forecasts.load, strategy.build(forecasts.load, forecasts)) for forecasts in foreseen]
    return SizeAccount(
        *(np.concatenate([getattr(account, column.name) for account in accounts]) for column in fields(SizeAccount))
    )
