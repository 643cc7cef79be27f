"""Decisions of single workloads through the arrays: a table of one row, and its whole record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forecaster.horizontal.row import UNKNOWN
from forecaster.horizontal.state import State
from forecaster.vertical.sizing.containers import NO_SIZING
from forecaster.vertical.sizing.pod import size
from tests.support import builders
from tests.support.builders import NOON, minutes
from tests.support.one_row import decide_one, state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.gate_states import Gate
    from forecaster.vertical.sizing.containers import PodSizing
    from tests.support.outlook import SignalForecast

NOTHING_BEFORE = state_of()
NEVER_SEEN = State.new(1)


def decide(
    workload: Workload,
    outlooks: Mapping[str, SignalForecast],
    under: Policy,
    state: State,
    now: datetime,
    *,
    sizing: PodSizing = NO_SIZING,
    gate: Gate | None = None,
) -> tuple[Recommendation, State]:
    """Decide for one workload, and return the state to remember."""
    recommendation, after = decide_one(workload, outlooks, under.horizontal, state, now, gate=gate)
    return replace(recommendation, resources=size(workload, sizing, under.vertical)), after


def decided(
    outlooks: Mapping[str, SignalForecast],
    *,
    workload: Workload | None = None,
    under: Policy | None = None,
    state: State = NOTHING_BEFORE,
    sizing: PodSizing = NO_SIZING,
    gate: Gate | None = None,
) -> Recommendation:
    """The decision at noon, without the state that it leaves."""
    return decide(
        workload or builders.workload(), outlooks, under or builders.policy(), state, NOON, sizing=sizing, gate=gate
    )[0]


def recommended_before(*replicas_at: tuple[int, float]) -> State:
    """Earlier recommendations, each so many minutes before noon."""
    return state_of((replicas, NOON - minutes(age)) for replicas, age in replicas_at)


def recommended(state: State) -> list[tuple[int, datetime]]:
    """Remembered counts of one row before stabilization, and when they were recommended."""
    counts = zip(state.recommendations[:, 0].tolist(), state.times, strict=True)
    return [(count, datetime.fromtimestamp(at, UTC)) for count, at in counts if count != UNKNOWN]
