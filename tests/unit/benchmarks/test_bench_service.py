"""The bench knows load by the minute as the service keeps it: points cut by the clock, and three hours of minutes."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from benchmarks.bench.ours import Group, Played
from benchmarks.bench.replay import TICK, Replay
from benchmarks.bench.service import KEPT_MINUTES, history_of
from forecaster.domain.window import FIVE_MINUTES, MINUTE, MINUTES_A_POINT

DAY = 1440
END = datetime(2026, 1, 5, 0, 3, tzinfo=UTC)


def test_the_service_keeps_means_of_five_minutes_by_the_clock() -> None:
    minutes = np.arange(8.0 * DAY)[None]
    weeks = history_of(minutes, END).weeks
    assert (weeks.end, weeks.step) == (END - 3 * MINUTE, FIVE_MINUTES)
    assert weeks.values[0, -2:].tolist() == [minutes[0, -13:-8].mean(), minutes[0, -8:-3].mean()]


def test_the_service_keeps_three_hours_of_minutes() -> None:
    minutes = np.arange(8.0 * DAY)[None]
    latest = history_of(minutes, END).minutes
    assert latest is not None
    assert latest.end == END
    assert latest.values.tolist() == minutes[:, -KEPT_MINUTES:].tolist()


def test_of_older_load_only_its_five_minute_means_matter() -> None:
    rough = load_of_a_week()
    smooth = replace(rough, past=with_older_means(rough.past))
    np.testing.assert_allclose(peaks(rough, as_kept=True), peaks(smooth, as_kept=True), rtol=1e-5)
    assert not np.allclose(peaks(rough, as_kept=False), peaks(smooth, as_kept=False), rtol=1e-2)


def load_of_a_week() -> Replay:
    """A load with a daily rhythm whose minutes differ."""
    minutes, rng = np.arange(7 * DAY + 60), np.random.default_rng(1)
    demand = 100 + 40 * np.sin(2 * np.pi * minutes / DAY) + rng.uniform(0, 60, len(minutes))
    return Replay(
        "made/up", "made", TICK, 7 * DAY * TICK, demand[: 7 * DAY], demand[7 * DAY :], demand[7 * DAY :], 10.0
    )


def with_older_means(past: np.ndarray) -> np.ndarray:
    """Return it with the mean of each point in place of its minutes, but for the latest three hours."""
    means = np.repeat(past.reshape(-1, MINUTES_A_POINT).mean(axis=1), MINUTES_A_POINT)
    means[-KEPT_MINUTES:] = past[-KEPT_MINUTES:]
    return means


def peaks(replay: Replay, *, as_kept: bool) -> tuple[float, ...]:
    """Quantiles of the coming peak at the first tick."""
    played = Played(replay, 2, 2, as_kept=as_kept)
    Group([played]).forecast(0)
    return next(iter(played.series.forecast_peaks.values()))
