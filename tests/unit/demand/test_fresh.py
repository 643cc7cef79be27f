"""The newest minute reaches the forecast, whatever the clock says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecaster.demand.fresh import fresh
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from tests.support.recommendations import workload_id

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEB, API = workload_id("web"), workload_id("api")


def window(step: timedelta, end: datetime, rows: dict[str, list[float]]) -> Window:
    values = np.array(list(rows.values()), np.float32)
    keys = tuple(workload_id(name) for name in rows)
    return Window(keys, end - (values.shape[1] - 1) * step, step, values)


def weeks(end: datetime = NOON, **rows: list[float]) -> Window:
    return window(FIVE_MINUTES, end, rows or {"web": [1, 2, 3, 4]})


def minutes(end: datetime, **rows: list[float]) -> Window:
    return window(MINUTE, end, rows)


def test_points_end_at_the_newest_minute() -> None:
    joined = fresh(weeks(), minutes(NOON + 2 * MINUTE, web=[10, 10, 10, 10, 10, 20, 20, 20, 20, 20]))
    assert joined.end == NOON + 2 * MINUTE
    assert joined.rows(slice(0, 1)).tolist() == [[1, 2, 10, 20]]


def test_at_the_clocks_own_cut_nothing_is_copied() -> None:
    stored = weeks()
    joined = fresh(stored, minutes(NOON, web=[9] * 10))
    assert np.shares_memory(joined.rows(slice(0, 1)), stored.values)
    assert joined.end == NOON


def test_rows_are_matched_by_workload() -> None:
    stored = weeks(web=[1, 1], api=[2, 2])
    joined = fresh(stored, minutes(NOON + MINUTE, api=[7] * 5, web=[5] * 5))
    assert joined.rows(slice(0, 2))[:, -1].tolist() == [5, 7]


def test_a_workload_without_minutes_keeps_its_points() -> None:
    joined = fresh(weeks(web=[1, 1], api=[2, 2]), minutes(NOON + MINUTE, web=[5] * 5))
    assert joined.rows(slice(1, 2)).tolist() == [[2, 2]]


@pytest.mark.parametrize(("known", "newest"), [(3, 8.0), (2, 4.0)])
def test_a_point_needs_three_known_minutes(known: int, newest: float) -> None:
    gaps = [float("nan")] * (5 - known) + [8.0] * known
    assert fresh(weeks(), minutes(NOON + MINUTE, web=gaps)).rows(slice(0, 1))[0, -1] == newest


def test_what_is_kept_is_not_changed() -> None:
    stored = weeks()
    fresh(stored, minutes(NOON + MINUTE, web=[9] * 5)).rows(slice(0, 1))[:] = 0
    assert stored.values.tolist() == [[1, 2, 3, 4]]
