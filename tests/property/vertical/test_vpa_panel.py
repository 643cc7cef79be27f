"""Many containers in arrays are recommended what each alone is, up to one bucket."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.vertical.recommenders.vpa import VpaPanel
from tests.oracles.vpa_amounts import of_cores
from tests.oracles.vpa_histograms import of_unix
from tests.oracles.vpa_recommender import recommend
from tests.oracles.vpa_samples import AggregateState, ContainerState

BEGIN = 1_700_006_400
STEP = 5400
ONE_BUCKET = 1.0501
"""The ratio of neighbouring buckets, and a little for the part that is cut off."""

cores = st.one_of(st.just(math.nan), st.floats(0.03, 60))
memory = st.one_of(st.just(math.nan), st.floats(4e8, 9e10))
samples = st.lists(st.tuples(cores, memory, st.booleans()), min_size=4, max_size=80)


@settings(max_examples=60, deadline=None)
@given(st.lists(samples, min_size=1, max_size=3))
def test_a_row_of_the_panel_is_the_container_alone(containers: list[list[tuple[float, float, bool]]]) -> None:
    length = min(map(len, containers))
    rows = np.array([container[:length] for container in containers], float)
    at = BEGIN + np.arange(length) * STEP
    panel = together(rows, at)
    for row, states in enumerate(map(alone, rows)):
        expected = recommend({"one": states})["one"]
        for resource, amounts in panel.recommend().items():
            for name in ("target", "lower", "upper"):
                separate, among = getattr(expected, name)[resource], int(getattr(amounts, name)[row])
                assert near(separate, among), (resource, name, separate, among)


def together(rows: np.ndarray, at: np.ndarray) -> VpaPanel:
    panel = VpaPanel(len(rows))
    panel.add_cpu(rows[:, :, 0], at)
    for column, instant in enumerate(at.tolist()):
        panel.add_memory(rows[:, column, 1], instant)
        killed = np.flatnonzero((rows[:, column, 2] > 0) & (panel.window_end > 0))
        panel.record_oom(killed, np.full(len(killed), 1e9), instant)
    return panel


def alone(row: np.ndarray) -> AggregateState:
    state = AggregateState()
    container = ContainerState(state)
    for column, (used_cores, used_memory, killed) in enumerate(row.tolist()):
        at = of_unix(BEGIN + column * STEP)
        if not math.isnan(used_cores):
            container.add_cpu(of_cores(used_cores), at)
        if not math.isnan(used_memory):
            container.add_memory(int(used_memory), at)
        if killed and container.window_end:
            container.record_oom(10**9, at)
    return state


def near(amount: int, other: int) -> bool:
    larger, smaller = max(amount, other), min(amount, other)
    return larger - smaller <= 2 or larger <= smaller * ONE_BUCKET


def test_amounts_are_those_of_the_worked_example() -> None:
    """Specification of the VPA's rules, worked example A: a day of one sample a minute, constant."""
    at = BEGIN + np.arange(1441) * 60
    panel = VpaPanel(1)
    panel.add_cpu(np.full((1, 1441), 0.25), at)
    for instant in at.tolist():
        panel.add_memory(np.array([3e8]), instant)
    amounts = panel.recommend()
    assert [int(amounts["cpu"].target[0]), int(amounts["cpu"].upper[0]), int(amounts["cpu"].lower[0])] == [
        296,
        592,
        295,
    ]
    assert int(amounts["memory"].target[0]) == 351198544
