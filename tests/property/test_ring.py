"""Ring against a dictionary: whatever is written and however it advances, both remember the same."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forecaster.domain.signal import CPU
from forecaster.domain.window import Block
from forecaster.domain.workload import WorkloadId
from forecaster.store.ring import HistoryRing

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
COLUMNS = 7
IDS = tuple(WorkloadId("ns", "Deployment", f"w{i}") for i in range(5))
VALUES = st.one_of(st.just(math.nan), st.just(math.inf), st.integers(0, 1000).map(float))


class RingMachine(RuleBasedStateMachine):
    """`model` maps (workload, column) to the value that a perfect memory would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = HistoryRing(step=MINUTE, columns=COLUMNS, latest=START)
        self.newest = 0
        self.model: dict[tuple[WorkloadId, int], float] = {}
        self.answered: set[int] = set()

    def holds(self, column: int) -> bool:
        return self.newest - COLUMNS < column <= self.newest

    @rule(ahead=st.integers(0, 2 * COLUMNS))
    def advance(self, ahead: int) -> None:
        self.newest += ahead
        self.ring.advance(START + self.newest * MINUTE + timedelta(seconds=30))
        self.model = {at: value for at, value in self.model.items() if self.holds(at[1])}
        self.answered = {column for column in self.answered if self.holds(column)}

    @rule(
        ids=st.lists(st.sampled_from(IDS), unique=True, max_size=5),
        first=st.integers(-2 * COLUMNS, 3),
        width=st.integers(0, 2 * COLUMNS),
        data=st.data(),
    )
    def write(self, ids: list[WorkloadId], first: int, width: int, data: st.DataObject) -> None:
        values = data.draw(st.lists(VALUES, min_size=len(ids) * width, max_size=len(ids) * width))
        block = np.array(values, np.float64).reshape(len(ids), width)
        start = self.newest + first
        self.ring.write(Block(CPU, tuple(ids), START + start * MINUTE, MINUTE, block))
        self.answered |= {column for column in range(start, start + width) if self.holds(column)}
        for (i, j), value in np.ndenumerate(block):
            self._remember(ids[i], start + j, value)

    def _remember(self, key: WorkloadId, column: int, value: float) -> None:
        if not math.isfinite(value):
            return
        if self.holds(column):
            self.model[key, column] = value

    @rule(age=st.integers(0, COLUMNS))
    def forget(self, age: int) -> None:
        self.ring.forget(START + (self.newest - age) * MINUTE)
        alive = {key for key, column in self.model if column >= self.newest - age}
        self.model = {at: value for at, value in self.model.items() if at[0] in alive}

    @invariant()
    def same_values(self) -> None:
        window = self.ring.window()
        held = {
            (window.keys[i], self.newest - COLUMNS + 1 + j): float(value)
            for (i, j), value in np.ndenumerate(window.values)
            if not math.isnan(value)
        }
        assert held == self.model
        assert window.end == START + self.newest * MINUTE

    @invariant()
    def same_answers(self) -> None:
        answered_columns = {self.newest - COLUMNS + 1 + j for j, answered in enumerate(self.ring.answered) if answered}
        assert answered_columns == self.answered

    @invariant()
    def missing_is_the_rest(self) -> None:
        gaps = self.ring.missing(self.ring.oldest, self.ring.latest)
        missing = {
            column for start, end in gaps for column in range((start - START) // MINUTE, (end - START) // MINUTE + 1)
        }
        assert missing == set(range(self.newest - COLUMNS + 1, self.newest + 1)) - self.answered


RingMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestRing = RingMachine.TestCase
