"""KEDA's cron scaler as a careful person sets it: a schedule by the hour, written from the week before the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay

MINUTES_OF_WEEK, MINUTES_OF_DAY, MINUTES_OF_HOUR = 10080, 1440, 60


def expected(replay: Replay, start_up: int) -> NDArray[np.float64]:
    """The largest demand [tick] of that hour a week before; of that hour of the day where no week was recorded.

    An hour begins `start_up` ticks early, so that its pods are ready in time.
    """
    week = len(replay.past) >= MINUTES_OF_WEEK
    period = MINUTES_OF_WEEK if week else MINUTES_OF_DAY
    first = replay.start // 60
    past = replay.past[-(MINUTES_OF_WEEK if week else len(replay.past)) :]
    hours = (first - len(past) + np.arange(len(past))) % period // MINUTES_OF_HOUR
    schedule = np.full(period // MINUTES_OF_HOUR, np.nan)
    for hour in np.unique(hours):
        schedule[hour] = np.fmax.reduce(past[hours == hour])
    minutes = first + np.arange(len(replay.demand))
    now, soon = (schedule[minute % period // MINUTES_OF_HOUR] for minute in (minutes, minutes + start_up))
    return np.asarray(np.fmax(now, soon))
