"""A second opinion in the forecast's place: somebody who sees pods and forecasts says a count, and it becomes a demand.

`decide` treats that demand as it treats a forecast, so every clamp holds for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from forecaster.decisions.targets import stated_pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.replay.lane import Lane
    from forecaster.replay.sight import Sight

    Floats = NDArray[np.float64]

MEDIAN, UPPER = 0.5, 0.9
LATEST = 5
"""Minutes back to the forecast that the newest demand is compared with."""
DAY = 1440


class Situation(NamedTuple):
    """Arrays over lanes at one minute. Demand is in pods at the HPA's own target; NaN where it is not known.

    `median` and `upper` are quantiles of the coming peak, `before` is the median that was said `LATEST` minutes ago.
    """

    measured: Floats
    median: Floats
    upper: Floats
    before: Floats
    asked: Floats
    ready: Floats
    minute_of_day: int


class Advisor(Protocol):
    """Says counts, and remembers nothing: lanes can be asked in any company."""

    def counts(self, situation: Situation) -> Floats:
        """[lane] pods to have; NaN for no opinion."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A block of minutes of some lanes with one advisor: [minute, lane], in pods at the target that is advised on."""

    advisor: Advisor
    signal: Signal
    pod: Floats
    measured: Floats
    median: Floats
    upper: Floats
    before: Floats
    minute_of_day: int

    def demand(self, place: int, asked: NDArray[np.int64], ready: NDArray[np.int64]) -> Floats:
        """[lane] the demand to size for: in the middle of what rounds up to the advised count; NaN for no opinion."""
        situation = Situation(
            self.measured[place],
            self.median[place],
            self.upper[place],
            self.before[place],
            asked.astype(np.float64),
            ready.astype(np.float64),
            (self.minute_of_day + place) % DAY,
        )
        counts = self.advisor.counts(situation)
        return np.asarray(np.maximum(counts - 0.5, 0.0) * self.pod)


def ahead_of(lanes: Sequence[Lane], sight: Sight, span: slice) -> Ahead | None:
    """What the lanes' advisor needs for the minutes of `span`; None where they have none.

    The first target is advised on: the HPA's other metrics ask for themselves.
    """
    first = lanes[0]
    if first.advisor is None or first.policy is None or first.foresight is None:
        return None
    signal = first.setup.scaler.targets[0].signal
    rows = np.array([lane.row for lane in lanes])
    pod = np.array([stated_pod(lane.setup.scaler.targets[0]) for lane in lanes])
    allowed = sight.foreseeable(signal, first.policy, span)[:, rows]

    def quantile(level: float, back: int = 0) -> Floats:
        found = np.full((span.stop - span.start, len(lanes)), np.nan)
        minutes = np.arange(span.start, span.stop) - back
        for i, lane in enumerate(lanes):
            values = lane.foresight.peak(signal, level) if lane.foresight else None
            if values is not None:
                found[minutes >= 0, i] = values[minutes[minutes >= 0], lane.row]
        in_pods: Floats = found / pod
        return in_pods

    moment = sight.instant(span.start)
    return Ahead(
        advisor=first.advisor,
        signal=signal,
        pod=pod,
        measured=sight.measured(signal, first.policy, span)[:, rows] / pod,
        median=np.where(allowed, quantile(MEDIAN), np.nan),
        upper=np.where(allowed, quantile(UPPER), np.nan),
        before=quantile(MEDIAN, LATEST),
        minute_of_day=moment.hour * 60 + moment.minute,
    )
