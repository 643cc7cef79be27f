"""The history that the service keeps of load by the minute: weeks of five-minute points, and three hours of minutes.

A replay has weeks of minutes. Forecasts and the evidence of gates are made here by the service's own code of what it
would have kept of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import numpy as np

from forecaster.demand.fresh import fresh, point_means
from forecaster.domain.signal import REQUESTS
from forecaster.domain.window import FIVE_MINUTES, MINUTE, MINUTES_A_POINT, Window
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.peaks import LEVELS
from forecaster.replay.judging import Case, judgements_of
from forecaster.store.history import HistorySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.replay.judging import Judgement

    Floats = NDArray[np.float64]

MODEL = "adaptive"
KEPT_MINUTES = HistorySettings().minutes_kept // MINUTE
KEPT_POINTS = HistorySettings().weeks_kept // FIVE_MINUTES
UNKNOWN = (np.nan,) * len(LEVELS)


class Coming(Protocol):
    """The steps that are forecast, after an epoch second."""

    after: int
    steps: int


def history_of(minutes: Floats, end: datetime) -> FreshHistory:
    """Return the history of demand [series, minute], the last of which ends at `end`; points follow the clock."""
    later = int(end.timestamp()) // 60 % MINUTES_A_POINT
    ids = ids_of(len(minutes))
    points = points_of(minutes, later)
    weeks = Window(ids, end - later * MINUTE - (points.shape[1] - 1) * FIVE_MINUTES, FIVE_MINUTES, points)
    latest = minutes[:, -KEPT_MINUTES:].astype(np.float32)
    return fresh(weeks, Window(ids, end - (latest.shape[1] - 1) * MINUTE, MINUTE, latest))


def ids_of(count: int) -> tuple[WorkloadId, ...]:
    """Identities of series, by their place."""
    return tuple(WorkloadId("bench", "Deployment", f"series-{row}") for row in range(count))


def points_of(minutes: Floats, later: int) -> NDArray[np.float32]:
    """[series, point] the weeks of points that end `later` minutes before the minutes do."""
    before = minutes[:, : minutes.shape[1] - later].astype(np.float32)
    whole = before[:, before.shape[1] % MINUTES_A_POINT :].reshape(len(before), -1, MINUTES_A_POINT)
    return point_means(whole[:, -KEPT_POINTS:])


class ServiceForecasts:
    """The service's forecasts of series that are forecast together."""

    def __init__(self) -> None:
        self.forecaster = Forecaster(MODEL)

    def peaks(self, minutes: Floats, window: Coming, width: int) -> list[tuple[float, ...]]:  # noqa: ARG002  always 1
        """[series] quantiles of the largest of the minutes in a window after minutes [series, minute]."""
        now = datetime.fromtimestamp(window.after, UTC)
        span = PeakSpan(timedelta(0), window.steps * MINUTE)
        peaks = self.forecaster.peaks(REQUESTS, history_of(minutes, now), [span], now)[span]
        places = [peaks.place.get(id_, -1) for id_ in ids_of(len(minutes))]
        return [tuple(peaks.values[place].tolist()) if place >= 0 else UNKNOWN for place in places]


def evidence_of(minutes: Sequence[Floats], now: int, rules: HorizontalPolicy, span: PeakSpan) -> list[Judgement]:
    """The service's evidence about each of these demands [minute] in pods, as seen at `now`."""
    later = now // 60 % MINUTES_A_POINT
    end = datetime.fromtimestamp(now - later * 60, UTC)
    cases = [
        Case(
            id_,
            REQUESTS,
            points_of(demand[None], later)[0].astype(np.float64),
            demand[-KEPT_MINUTES : len(demand) - later],
            end,
            span,
            rules,
        )
        for id_, demand in zip(ids_of(len(minutes)), minutes, strict=True)
    ]
    judgements = judgements_of(cases, MODEL)
    return [judgements[case.id][0] for case in cases]
