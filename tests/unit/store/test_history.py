from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.signal import CPU
from forecaster.domain.window import Block, Gap
from forecaster.domain.workload import WorkloadId
from forecaster.store.history import FIVE_MINUTES, MINUTE, HistorySettings, HistoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEB = WorkloadId("shop", "Deployment", "web")
SETTINGS = HistorySettings(minutes_kept=timedelta(minutes=30), weeks_kept=timedelta(days=1))


def history(now: datetime = NOON) -> HistoryStore:
    return HistoryStore([CPU], SETTINGS, now=now)


def answer(gap: Gap, value: float = 1.0) -> Block:
    return Block(gap.signal, (WEB,), gap.start, gap.step, np.full((1, gap.columns), value))


def at(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute)


def test_at_the_start_minutes_are_asked_first_and_the_weeks_only_where_minutes_do_not_reach() -> None:
    minutes, weeks = history().gaps(NOON)
    assert minutes == Gap(CPU, at(-29), NOON, MINUTE)
    assert weeks == Gap(CPU, NOON - timedelta(days=1) + FIVE_MINUTES, at(-30), FIVE_MINUTES)


def test_after_the_back_fill_nothing_is_missing_anywhere() -> None:
    store = history()
    for gap in store.gaps(NOON):
        store.write(answer(gap))
    assert store.gaps(NOON) == []
    assert np.isfinite(store.window(CPU, MINUTE).values).all()
    assert np.isfinite(store.window(CPU, FIVE_MINUTES).values).all()


def test_in_the_steady_state_one_new_minute_is_asked_for() -> None:
    store = history()
    for gap in store.gaps(NOON):
        store.write(answer(gap))
    assert store.gaps(at(1)) == [Gap(CPU, at(1), at(1), MINUTE)]


def test_an_instant_that_failed_is_asked_for_again_with_the_next_one() -> None:
    store = history()
    for gap in store.gaps(NOON):
        store.write(answer(gap))
    store.gaps(at(1))
    assert store.gaps(at(2)) == [Gap(CPU, at(1), at(2), MINUTE)]


@pytest.mark.parametrize("outage", [20, 40, 200, 3000])
def test_after_an_outage_everything_within_the_windows_comes_back(outage: int) -> None:
    store = history()
    for gap in store.gaps(NOON):
        store.write(answer(gap))
    for gap in store.gaps(at(outage)):
        store.write(answer(gap, 2.0))
    assert store.gaps(at(outage)) == []
    assert np.isfinite(store.window(CPU, FIVE_MINUTES).values).all()


def five_minute_point(*minutes: float) -> float:
    store = history(at(5))
    store.write(Block(CPU, (WEB,), at(1), MINUTE, np.array([minutes])))
    return float(store.window(CPU, FIVE_MINUTES).values[0, -1])


def test_a_five_minute_point_is_the_mean_of_the_five_minutes_that_end_with_it() -> None:
    assert five_minute_point(1.0, 2.0, 3.0, 4.0, 10.0) == 4.0


def test_three_of_five_minutes_are_enough() -> None:
    assert five_minute_point(np.nan, 2.0, 3.0, np.nan, 4.0) == 3.0


def test_two_of_five_minutes_are_not() -> None:
    store = history(at(5))
    store.write(Block(CPU, (WEB,), at(1), MINUTE, np.array([[1.0, np.nan, np.nan, np.nan, 1.0]])))
    assert store.window(CPU, FIVE_MINUTES).keys == ()


def test_a_late_minute_completes_its_five_minute_point() -> None:
    store = history(at(5))
    store.write(Block(CPU, (WEB,), at(1), MINUTE, np.array([[1.0, 1.0]])))
    store.write(Block(CPU, (WEB,), at(4), MINUTE, np.array([[1.0, 1.0]])))
    assert store.window(CPU, FIVE_MINUTES).keys == ()
    store.write(Block(CPU, (WEB,), at(3), MINUTE, np.array([[6.0]])))
    assert store.window(CPU, FIVE_MINUTES).values[0, -1] == 2.0


def test_workloads_without_samples_give_their_memory_back() -> None:
    store = HistoryStore([CPU], SETTINGS.model_copy(update={"forget_after": timedelta(hours=1)}), now=NOON)
    store.write(Block(CPU, (WEB,), NOON, FIVE_MINUTES, np.array([[1.0]])))
    store.gaps(at(55))
    assert store.forget({"shop": 1}) == 0
    store.gaps(at(65))
    assert store.forget({"shop": 1}) == 1


def test_names_that_are_always_new_take_no_memory_from_others() -> None:
    store = history()
    store.write(named("pay", ["api"], 0))
    for minute in range(1, 9):
        store.gaps(at(minute))
        store.write(named("shop", [f"web-{minute}-{number}" for number in range(500)], minute))
        store.forget({"shop": 500})
    keys = store.window(CPU, MINUTE).keys
    assert sum(id_.namespace == "shop" for id_ in keys) == 2 * 500 + SPARE_ROWS
    assert WorkloadId("shop", "Deployment", "web-8-499") in keys
    assert WorkloadId("pay", "Deployment", "api") in keys


def named(namespace: str, names: list[str], minute: int) -> Block:
    ids = tuple(WorkloadId(namespace, "Deployment", name) for name in names)
    return Block(CPU, ids, at(minute), MINUTE, np.ones((len(ids), 1)))


def test_a_signal_that_no_workload_has_is_answered_and_stays_empty() -> None:
    store = history()
    for gap in store.gaps(NOON):
        store.write(Block(gap.signal, (), gap.start, gap.step, np.empty((0, gap.columns))))
    assert store.gaps(NOON) == []
    assert store.window(CPU, FIVE_MINUTES).keys == ()


def test_what_is_left_of_the_back_fill_is_counted() -> None:
    store = history()
    assert store.missing(CPU) == 30 + 288 - 6
    for gap in store.gaps(NOON):
        store.write(answer(gap))
    assert store.missing(CPU) == 0
