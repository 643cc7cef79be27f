"""Protocols of models: a frozen spec that learns from a panel and returns a fitted model, which forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .forecast import Forecast, Peak, StepWindow
    from .panel import Panel


class Model(Protocol):
    """Hyper-parameters only; data never goes into a constructor, and fitting twice gives the same."""

    @property
    def name(self) -> str:
        """Name in forecasts, reports and the catalogue."""

    def fit(self, panel: Panel) -> Fitted:
        """Learn from a panel. Slow is allowed: the service fits rarely and in rotation."""


class Fitted(Protocol):
    """A model that has learned, with the latest history it was given. A value: `update` gives a new one."""

    def update(self, panel: Panel) -> Fitted:
        """Return the fitted model with newer samples of the same series.

        The panel may hold only the new bins, or overlap what is known (the newer is right), or be the caller's whole
        window; in that case it is taken over without a copy.

        Raises:
            PanelError: other series, another grid, or a hole between what is known and the panel.
        """

    def forecast(self, steps: int, quantiles: Sequence[float]) -> Forecast:
        """Quantiles of each of the next steps, counted from the end of the latest bin.

        Raises:
            QuestionError: no steps, or levels that do not ascend within (0, 1).
        """

    def forecast_peak(self, window: StepWindow, quantiles: Sequence[float]) -> Peak:
        """Return quantiles of the largest value within a window of coming steps, which a reserve must cover.

        Raises:
            QuestionError: as in `forecast`.
        """


@runtime_checkable
class SeesAll(Protocol):
    """A fitted model that answers for several windows at once, for little more than the cost of one."""

    def forecast_peaks(self, windows: Sequence[StepWindow], quantiles: Sequence[float]) -> Mapping[StepWindow, Peak]:
        """Return `forecast_peak` of each of these windows."""


@runtime_checkable
class HasStandIn(Protocol):
    """A model with a stand-in until it is fitted."""

    def stand_in(self, panel: Panel) -> Fitted:
        """Return a model for these series without fitting; it reads no sample of the panel and learns nothing."""


@runtime_checkable
class Stacks(Protocol):
    """A fitted model that can forecast together with others: large arrays cost less per series.

    The forecast of a series is the same alone, but for the order in which floating-point numbers are added.
    """

    def stacked(self, others: Sequence[Fitted]) -> Fitted | None:
        """Return one model, without samples, of its own series, then the others'; None if they differ in kind."""

    def part(self, rows: slice | npt.NDArray[np.intp]) -> Fitted:
        """Return the model of some of its series, without samples; neighbours share learned state without a copy."""


@runtime_checkable
class Forgets(Protocol):
    """A fitted model that can be kept without samples: they come with each question."""

    def without_history(self) -> Fitted:
        """Return the fitted model without samples; give it a whole window before the next question."""
