"""Where forecasts stand on workloads: columns [row] that outlive a process, and their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.horizontal.columns import Table, column

if TYPE_CHECKING:
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.horizontal.numbers import Codes, Counts, Flags, Floats


class Standing(StrEnum):
    """How far a forecast has come on one workload."""

    OBSERVE = "observe"
    TRIAL = "trial"
    """Promising; it acts when the next evidence confirms it."""
    ACTING = "acting"


class GateForecaster(StrEnum):
    """Origin of the forecast that acts."""

    MODEL = "model"
    SEASONAL = "seasonal"
    """Yesterday's load at the same time."""


STANDINGS = tuple(Standing)
OBSERVE, TRIAL, ACTING = (np.int8(code) for code in range(3))
FORECASTERS = tuple(GateForecaster)
MODEL, SEASONAL = (np.int8(code) for code in range(2))
VERDICTS = ("new", "no history", "too short", "too far", "no better", "promising", "promoted", "better", "demoted")
"""Why a row stands where it stands: not judged yet, not to be judged, or judged by evidence."""
NEW, NO_HISTORY, TOO_SHORT, TOO_FAR, NO_BETTER, PROMISING, PROMOTED, STILL_BETTER, DEMOTED = (
    np.int8(code) for code in range(len(VERDICTS))
)


class Gate(NamedTuple):
    """Gate of one workload: its state, the forecaster that it judges, since when, and why."""

    standing: Standing = Standing.OBSERVE
    forecaster: GateForecaster = GateForecaster.MODEL
    since: datetime | None = None
    why: str = "new: not judged yet"


def shut_by(policy: HorizontalPolicy, gate: Gate | None) -> str:
    """Why a forecast has no say; empty when it has one. Without a gate it is not judged."""
    if not policy.gate or gate is None or gate.standing is Standing.ACTING:
        return ""
    return f"{gate.standing}: {gate.why}"


@dataclass(frozen=True, eq=False)
class Gates(Table):
    """Gate states of forecasts, [row] each; instants are epoch seconds."""

    standing: Codes = column("b", OBSERVE)
    """A position in `STANDINGS`."""
    forecaster: Codes = column("b", MODEL)
    """A position in `FORECASTERS`."""
    since: Floats = column("d", np.nan)
    """NaN for a row that was never judged."""
    verdict: Codes = column("b", NEW)
    """A position in `VERDICTS`."""
    fell: Flags = column("?", empty=False)
    """Whether it was demoted because it cannot be judged any more."""
    signal: Counts = column("q", -1, of_signal=True)
    """The position in `signals` of what the verdict is about; -1 for none in particular."""
    days: Floats = column("d", np.nan)
    """Days of history or of evidence."""
    least_days: Floats = column("d", np.nan)
    """Days of history that are needed, or that are looked ahead at most."""
    reactive: Floats = column("d", np.nan)
    """What the measured demand alone left short, as a share of the demand."""
    short: Floats = column("d", np.nan)
    """What decisions by the forecast left short; NaN where they cannot be as lean."""
    saving: Floats = column("d", np.nan)
    """The share of pod-hours that they did without."""
    judged_at: Floats = column("d", np.nan)
    """Last judgement; NaN before the first one."""
    due: Floats = column("d", np.nan)
    """Instant before which the row is not judged again; NaN at the beginning."""

    @property
    def acting(self) -> Flags:
        """[row] whether the forecast has its say."""
        return np.asarray(self.standing == ACTING)

    def gate(self, row: int) -> Gate:
        """Return the gate of one row."""
        since = float(self.since[row])
        return Gate(
            STANDINGS[self.standing[row]],
            FORECASTERS[self.forecaster[row]],
            None if np.isnan(since) else datetime.fromtimestamp(since, UTC),
            self.why(row),
        )

    def why(self, row: int) -> str:
        """Why a row stands where it stands."""
        verdict = self.verdict[row]
        if verdict < NO_BETTER:
            return ("demoted: " if self.fell[row] else "") + self._unjudged(row)
        return f"{VERDICTS[verdict]}: {self._judged(row)}"

    def _unjudged(self, row: int) -> str:
        days, least = float(self.days[row]), float(self.least_days[row])
        match VERDICTS[self.verdict[row]]:
            case "no history":
                return f"no history yet; {least:g} days are the least"
            case "too short":
                return f"{days:.1f} days of {self.signals[self.signal[row]]} history; {least:g} are the least"
            case "too far":
                return f"it looks further ahead than {least:g}d"
            case _:
                return "new: not judged yet"

    def _judged(self, row: int) -> str:
        by = "the model" if self.forecaster[row] == MODEL else "yesterday's load"
        signal = self.signals[self.signal[row]] if self.signal[row] >= 0 else ""
        days, reactive, short = (float(column[row]) for column in (self.days, self.reactive, self.short))
        if np.isnan(short):
            on = f" by {signal}" if signal else ""
            return f"decisions by {by} cannot be as lean as those by measured demand alone{on}"
        demand = f"the {signal} demand" if signal else "the demand"
        if max(reactive, short) < LEAST_SHORT:
            saving = float(self.saving[row])
            return f"nothing of {demand} was short on {days:.3g} days; {by} would have saved {saving:.1%}"
        promoted = self.verdict[row] in {PROMISING, PROMOTED, STILL_BETTER}
        chance = ", a difference that chance explains" if promoted and short > reactive else ""
        return (
            f"for the same pod-hours decisions by {by} left {short:.2%} of {demand} short on {days:.3g} days, "
            f"measured demand alone {reactive:.2%}{chance}"
        )


LEAST_SHORT = 1e-4
"""Share of the demand. Where less was short there is no shortage to remove, only pods to save."""
