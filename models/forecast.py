"""Forecast and Peak: quantiles of the future, with the models behind them and the series without a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from math import isclose
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .errors import QuestionError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .panel import Panel

Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepWindow:
    """The steps `first` to `last` after the origin, both included; step 1 is the first bin after the origin."""

    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse a window that contains no step."""
        if not 1 <= self.first <= self.last:
            raise QuestionError(f"the window {self.first}..{self.last} holds no step; use 1 <= first <= last")

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Provenance:
    """The model behind each series' forecast, and the series without a forecast.

    Attributes:
        keys: the series that have a forecast, in the order of its rows.
        models: per such series the model that made the numbers.
        reasons: per such series why another model than the asked one spoke, or "".
        unknown: the other series, each with the reason why there is no forecast.
    """

    keys: tuple[str, ...]
    models: tuple[str, ...]
    reasons: tuple[str, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)

    def rows(self, keys: Sequence[str]) -> npt.NDArray[np.intp]:
        """Row of each key, -1 for those that have none: the way from arrays over workloads to arrays of forecasts."""
        row = {key: i for i, key in enumerate(self.keys)}
        return np.fromiter((row.get(key, -1) for key in keys), dtype=np.intp, count=len(keys))

    def row(self, key: str) -> int:
        """Return the row of one key; QuestionError with the reason when there is none."""
        if key in self.keys:
            return self.keys.index(key)
        raise QuestionError(f"no forecast for series {key!r}: {self.unknown.get(key, 'it was not in the panel')}")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Forecast:
    """Quantiles of each step for every series that can be forecast; finite, not negative, ascending with the level.

    Attributes:
        values: float64 [series, quantile, step], rows as in `provenance.keys`, unit of the panel.
        origin: instant after which the first step begins.
        step: length of one step; step k (1, 2, ...) covers [origin + (k-1)·step, origin + k·step).
        levels: ascending quantile levels in (0, 1).
        provenance: which model spoke; series without a forecast are there, with a reason, and not in `values`.
    """

    values: Float64s
    origin: datetime
    step: timedelta
    levels: tuple[float, ...]
    provenance: Provenance

    @property
    def keys(self) -> tuple[str, ...]:
        """The series that have a forecast."""
        return self.provenance.keys

    @property
    def unknown(self) -> Mapping[str, str]:
        """The series that have none, with the reason."""
        return self.provenance.unknown

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.values.shape[2])

    def quantile(self, level: float) -> Float64s:
        """[series, step] at one of the levels."""
        result: Float64s = self.values[:, level_index(self.levels, level)]
        return result

    def to_frame(self) -> pd.DataFrame:
        """Columns (series, level), beginnings of the steps as index."""
        from .frames import frame_of_forecast  # noqa: PLC0415  pandas takes 0.3 s to import

        return frame_of_forecast(self)

    def plot(self, panel: Panel | None = None, keys: Sequence[str] = ()) -> Figure:
        """Plot a row per series with its band, and the panel's measurements around it."""
        from .pictures import plot_forecast  # noqa: PLC0415  a picture for people

        return plot_forecast(self, panel, keys)

    def __repr__(self) -> str:
        from .display import forecast_summary  # noqa: PLC0415  as above

        return forecast_summary(self)

    def _repr_html_(self) -> str:
        from .display import forecast_html  # noqa: PLC0415  as above

        return forecast_html(self)


@dataclass(frozen=True, eq=False, slots=True)
class Peak:
    """Quantiles of the largest value within a window of steps.

    Attributes:
        values: float64 [series, quantile], rows as in `provenance.keys`.
        window: the steps of which the maximum is meant; the other attributes as in Forecast.
    """

    values: Float64s
    window: StepWindow
    origin: datetime
    step: timedelta
    levels: tuple[float, ...]
    provenance: Provenance

    @property
    def keys(self) -> tuple[str, ...]:
        """The series that have a forecast."""
        return self.provenance.keys

    @property
    def unknown(self) -> Mapping[str, str]:
        """The series that have none, with the reason."""
        return self.provenance.unknown


def level_index(levels: Sequence[float], level: float) -> int:
    """Position of a level; QuestionError when it is not in the forecast."""
    near = [i for i, known in enumerate(levels) if isclose(known, level)]
    if not near:
        raise QuestionError(f"the forecast has no level {level}; its levels are {tuple(levels)}")
    return near[0]


def checked_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """The levels of a question; QuestionError unless they ascend within (0, 1)."""
    checked = tuple(float(level) for level in levels)
    if not checked or not all(0 < level < 1 for level in checked) or any(b <= a for a, b in pairwise(checked)):
        raise QuestionError(f"quantile levels {checked} must ascend within (0, 1)")
    return checked
