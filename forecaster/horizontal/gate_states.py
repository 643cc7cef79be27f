"""Gate state of forecasts by workload: columns [row] that outlive a process, and their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from forecaster.domain.decision import ForecastState
from forecaster.domain.policy import Policy
from forecaster.horizontal.columns import Codes, Counts, Flags, Floats, Table, column


class GateState(StrEnum):
    """Gate state of the forecast of one workload."""

    OBSERVE = "observe"
    TRIAL = "trial"
    """Promising; it acts when the next evidence confirms it."""
    ACTING = "acting"


class GateForecaster(StrEnum):
    """Origin of the forecast that acts."""

    MODEL = "model"
    SEASONAL = "seasonal"
    """Yesterday's load at the same time."""


GATE_STATES = tuple(GateState)
OBSERVE, TRIAL, ACTING = (np.int8(code) for code in range(3))
FORECASTERS = tuple(GateForecaster)
LEARNING_CODE, OBSERVING_CODE, ACTING_CODE, HELD_BACK_CODE = range(4)
"""Positions in `domain.decision.FORECAST_STATES`."""
MODEL, SEASONAL = (np.int8(code) for code in range(2))
VERDICTS = ("new", "no history", "too short", "too far", "no better", "promising", "promoted", "better", "demoted")
"""Reasons for a gate state: not judged yet, not judgeable, or judged by evidence."""
NEW, NO_HISTORY, TOO_SHORT, TOO_FAR, NO_BETTER, PROMISING, PROMOTED, STILL_BETTER, DEMOTED = (
    np.int8(code) for code in range(len(VERDICTS))
)


class Gate(NamedTuple):
    """Gate of one workload: its state, the forecaster that it judges, since when, and why."""

    standing: GateState = GateState.OBSERVE
    forecaster: GateForecaster = GateForecaster.MODEL
    since: datetime | None = None
    why: str = "not judged yet"
    judged: bool = False
    """Whether evidence was judged, and not only that there is too little."""

    @property
    def state(self) -> ForecastState:
        """State of the forecast, as users read it."""
        if self.standing is GateState.ACTING:
            return ForecastState.ACTING
        if self.standing is GateState.TRIAL:
            return ForecastState.OBSERVING
        return ForecastState.HELD_BACK if self.judged else ForecastState.LEARNING


OBSERVED = f"{ForecastState.OBSERVING}: mode observe applies nothing"


def gate_reason(policy: Policy, gate: Gate | None) -> str:
    """State of a forecast that does not act, and why; empty when it acts. Without a gate it is not judged."""
    if not policy.horizontal.gate or gate is None or gate.standing is GateState.ACTING:
        return OBSERVED if policy.mode == "observe" else ""
    return f"{gate.state}: {gate.why}"


@dataclass(frozen=True, eq=False)
class Gates(Table):
    """Gate states of forecasts, [row] each; instants are epoch seconds."""

    standing: Codes = column("b", OBSERVE)
    """A position in `GATE_STATES`."""
    forecaster: Codes = column("b", MODEL)
    """A position in `FORECASTERS`."""
    since: Floats = column("d", np.nan)
    """NaN for a row that was never judged."""
    verdict: Codes = column("b", NEW)
    """A position in `VERDICTS`."""
    fell: Flags = column("?", empty=False)
    """Whether it was demoted because it can no longer be judged."""
    signal: Counts = column("q", -1, of_signal=True)
    """Position in `signals` of the judged signal; -1 for none in particular."""
    days: Floats = column("d", np.nan)
    """Days of history or of evidence."""
    least_days: Floats = column("d", np.nan)
    """Days of history that are needed, or that are looked ahead at most."""
    reactive: Floats = column("d", np.nan)
    """Unserved share of demand with measured demand alone."""
    short: Floats = column("d", np.nan)
    """Unserved share of demand with the forecast; NaN where it cannot spend as little."""
    saving: Floats = column("d", np.nan)
    """The share of pod-hours that they did without."""
    judged_at: Floats = column("d", np.nan)
    """Last judgement; NaN before the first one."""
    due: Floats = column("d", np.nan)
    """Instant before which the row is not judged again; NaN at the beginning."""

    @property
    def acting(self) -> Flags:
        """[row] whether the forecast acts."""
        return np.asarray(self.standing == ACTING)

    @property
    def states(self) -> Codes:
        """[row] state of each forecast, a position in `FORECAST_STATES`."""
        begun = np.where(self.standing == TRIAL, OBSERVING_CODE, np.where(self.judged, HELD_BACK_CODE, LEARNING_CODE))
        return np.where(self.acting, ACTING_CODE, begun).astype(np.int8)

    def gate(self, row: int) -> Gate:
        """Return the gate of one row."""
        since = float(self.since[row])
        return Gate(
            GATE_STATES[self.standing[row]],
            FORECASTERS[self.forecaster[row]],
            None if np.isnan(since) else datetime.fromtimestamp(since, UTC),
            self.why(row),
            bool(self.judged[row]),
        )

    @property
    def judged(self) -> Flags:
        """[row] whether evidence was judged, or the forecast looks further ahead than any can be."""
        return np.asarray((self.verdict >= TOO_FAR) | self.fell)

    def why(self, row: int) -> str:
        """Say why a row has its gate state."""
        verdict = self.verdict[row]
        if verdict < NO_BETTER:
            return ("it acted before; " if self.fell[row] else "") + self._unjudged(row)
        return ("it acted before; " if verdict == DEMOTED else "") + self._judged(row)

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
                return "not judged yet"

    def _judged(self, row: int) -> str:
        by = "the model" if self.forecaster[row] == MODEL else "yesterday's load"
        signal = self.signals[self.signal[row]] if self.signal[row] >= 0 else ""
        judged = f"on the {self.days[row]:.3g} days judged".replace("the 1 days", "the day")
        reactive, short = float(self.reactive[row]), float(self.short[row])
        if np.isnan(short):
            on = f" by {signal}" if signal else ""
            return f"decisions by {by} cannot be as lean as those by measured demand alone{on}"
        demand = f"the {signal} demand" if signal else "the demand"
        if max(reactive, short) < MIN_SHORTAGE:
            return f"nothing of {demand} was short {judged}; {by} would have saved {self.saving[row]:z.1%}"
        promoted = self.verdict[row] in {PROMISING, PROMOTED, STILL_BETTER}
        chance = ", a difference that chance explains" if promoted and short > reactive else ""
        return (
            f"for the same pod-hours decisions by {by} left {short:.2%} of {demand} short {judged}, "
            f"measured demand alone {reactive:.2%}{chance}"
        )


MIN_SHORTAGE = 1e-4
"""Share of the demand. Where less was short there is no shortage to remove, only pods to save."""
