from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecaster.domain.signal import CPU
from forecaster.domain.window import Block
from forecaster.domain.workload import WorkloadId
from forecaster.store.ring import HistoryRing

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEB, API = WorkloadId("shop", "Deployment", "web"), WorkloadId("shop", "Deployment", "api")


def ring(columns: int = 5) -> HistoryRing:
    return HistoryRing(step=MINUTE, columns=columns, latest=NOON)


def block(start: datetime, *rows: list[float], ids: tuple[WorkloadId, ...] = (WEB, API)) -> Block:
    return Block(CPU, ids[: len(rows)], start, MINUTE, np.array(rows, np.float64))


def test_a_late_sample_heals_a_gap_and_a_missing_one_erases_nothing() -> None:
    buffer = ring()
    buffer.write(block(NOON - MINUTE, [1.0, 2.0]))
    buffer.write(block(NOON - 2 * MINUTE, [3.0, np.nan]))
    assert buffer.window().values[0, -3:].tolist() == [3.0, 1.0, 2.0]


def test_the_window_is_a_view_that_nobody_can_write_to() -> None:
    buffer = ring()
    buffer.write(block(NOON, [1.0]))
    window = buffer.window()
    assert window.values.base is not None
    with pytest.raises(ValueError, match="read-only"):
        window.values[0, 0] = 2.0


def test_an_instant_answered_without_samples_is_not_asked_for_again() -> None:
    buffer = ring()
    buffer.write(Block(CPU, (), NOON, MINUTE, np.empty((0, 1))))
    assert buffer.missing(buffer.oldest, NOON) == [(NOON - 4 * MINUTE, NOON - MINUTE)]
    assert len(buffer) == 0


def test_a_jump_beyond_the_window_clears_it_but_keeps_who_is_known() -> None:
    buffer = ring()
    buffer.write(block(NOON, [1.0]))
    buffer.advance(NOON + timedelta(hours=1))
    assert np.isnan(buffer.window().values).all()
    assert buffer.window().keys == (WEB,)


def test_a_clock_that_goes_back_keeps_what_lies_before_it_and_asks_again_for_the_rest() -> None:
    buffer = ring()
    buffer.write(block(NOON - 2 * MINUTE, [1.0, 2.0, 3.0]))
    buffer.advance(NOON - MINUTE)
    assert buffer.latest == NOON - MINUTE
    assert buffer.window().values[0, -2:].tolist() == [1.0, 2.0]
    assert buffer.missing(buffer.oldest, buffer.latest) == [(buffer.oldest, NOON - 3 * MINUTE)]
    buffer.advance(NOON)
    assert (NOON, NOON) in buffer.missing(buffer.oldest, buffer.latest)


def test_a_clock_that_was_ahead_by_more_than_the_ring_begins_anew() -> None:
    buffer = ring()
    buffer.write(block(NOON, [1.0]))
    buffer.advance(NOON - timedelta(days=400))
    assert buffer.latest == NOON - timedelta(days=400)
    assert np.isnan(buffer.window().values).all()
    assert not buffer.answered.any()


def test_a_block_between_the_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="not on the grid"):
        ring().write(block(NOON - timedelta(seconds=30), [1.0]))


def test_an_instant_without_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        ring().advance(datetime(2026, 3, 1, 12))  # noqa: DTZ001  that is what is refused


def test_a_value_beyond_float32_is_not_known() -> None:
    buffer = ring()
    buffer.write(block(NOON, [1e300], [1.0]))
    assert buffer.window().keys == (API,)


def test_the_row_of_a_forgotten_workload_is_used_again() -> None:
    buffer = ring()
    buffer.write(block(NOON - 4 * MINUTE, [1.0]))
    buffer.write(block(NOON, [2.0], ids=(API,)))
    assert buffer.forget(NOON) == 1
    assert buffer.window().keys == (API,)
    assert buffer.window().values[0, -1] == 2.0


def test_the_rows_of_a_window_stay_those_of_its_own_workloads() -> None:
    buffer = ring()
    buffer.write(block(NOON - 4 * MINUTE, [1.0], ids=(WEB,)))
    before = buffer.window()
    buffer.write(block(NOON, [2.0], ids=(API,)))
    between = buffer.window()
    buffer.forget(NOON)
    assert (before.row, between.row, buffer.window().row) == ({WEB: 0}, {WEB: 0, API: 1}, {API: 0})


def test_a_workload_without_a_value_at_first_gets_its_row_in_the_next_part_of_the_answer() -> None:
    buffer = ring()
    buffer.write(block(NOON - 2 * MINUTE, [np.nan], [1.0]))
    buffer.write(block(NOON - MINUTE, [2.0], [np.nan]))
    buffer.write(block(NOON, [3.0], [4.0]))
    window = buffer.window()
    assert window.values[[window.row[WEB], window.row[API]], -2:].tolist()[0] == [2.0, 3.0]
    assert window.values[window.row[API], [-3, -1]].tolist() == [1.0, 4.0]


def test_thousands_of_workloads_appear_little_by_little() -> None:
    buffer = ring()
    ids = tuple(WorkloadId("ns", "Deployment", str(i)) for i in range(2000))
    for i in range(0, 2000, 100):
        buffer.write(Block(CPU, ids[: i + 100], NOON, MINUTE, np.arange(i + 100.0)[:, None]))
    assert buffer.window().values[:, -1].tolist() == list(range(2000))
