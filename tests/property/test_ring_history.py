"""However sources fail and clocks run, no instant is queried twice, and every answer is remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.signal import CPU
from forecaster.domain.window import Block
from forecaster.domain.workload import WorkloadId
from forecaster.store.history import FIVE_MINUTES, MINUTE, HistorySettings, HistoryStore

if TYPE_CHECKING:
    from forecaster.domain.window import Gap

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SETTINGS = HistorySettings(minutes_kept=timedelta(minutes=30), weeks_kept=timedelta(days=1))
WEB = WorkloadId("shop", "Deployment", "web")
CYCLES = st.lists(
    st.tuples(st.one_of(st.just(1), st.integers(1, 400)), st.lists(st.booleans(), max_size=4)), max_size=12
)


def demand(minute: datetime) -> float:
    """A value that encodes its minute and is exact in float32, as are means of five of them."""
    return float((minute - EPOCH) // MINUTE % 4096)


def five_minute_demand(end: datetime) -> float:
    return sum(demand(end - i * MINUTE) for i in range(5)) / 5


def answer(gap: Gap) -> Block:
    value = demand if gap.step == MINUTE else five_minute_demand
    values = [value(gap.start + i * gap.step) for i in range(gap.columns)]
    return Block(gap.signal, (WEB,), gap.start, gap.step, np.array([values]))


def instants(gap: Gap) -> set[tuple[timedelta, datetime]]:
    return {(gap.step, gap.start + i * gap.step) for i in range(gap.columns)}


def run(cycles: list[tuple[int, list[bool]]]) -> tuple[HistoryStore, datetime]:
    """Some cycles, in each of which some of the gaps are not answered; then one in which all are."""
    now, history, answered = START, HistoryStore([CPU], SETTINGS, now=START), set[tuple[timedelta, datetime]]()
    for ahead, failing in [*cycles, (1, [])]:
        now += ahead * MINUTE
        for i, gap in enumerate(history.gaps(now)):
            assert not instants(gap) & answered, "an instant is queried twice"
            if i < len(failing) and failing[i]:
                continue
            history.write(answer(gap))
            answered |= instants(gap)
    return history, now


@given(CYCLES)
def test_in_the_end_every_minute_is_known_and_right(cycles: list[tuple[int, list[bool]]]) -> None:
    history, now = run(cycles)
    window = history.window(CPU, MINUTE)
    assert window.end == now
    assert window.values[0].tolist() == [demand(window.start + i * MINUTE) for i in range(30)]


@given(CYCLES)
def test_in_the_end_every_five_minute_point_is_the_mean_of_its_minutes(cycles: list[tuple[int, list[bool]]]) -> None:
    history, now = run(cycles)
    window = history.window(CPU, FIVE_MINUTES)
    assert window.end == now - (now - EPOCH) % FIVE_MINUTES
    expected = [five_minute_demand(window.start + i * FIVE_MINUTES) for i in range(288)]
    np.testing.assert_allclose(window.values[0], expected, rtol=1e-6)
