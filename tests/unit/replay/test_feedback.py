"""Load that depends on pods: a queue that drains, retries, saturation that hides demand, pods slow at first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.signal import CPU, REQUESTS
from forecaster.domain.window import MINUTE
from forecaster.hpa.limits import ReplicaBounds
from forecaster.replay.account import Run, RunResult
from forecaster.replay.assumptions import NO_FEEDBACK, Assumptions, Feedback, load_of
from forecaster.replay.engine import replay_runs
from forecaster.replay.setup import Setup, setup_of
from tests.unit.replay.test_engine import WEB, measured

SYNC = timedelta(seconds=15)
QUEUE = Feedback(returns=1.0)


def played(
    cores: list[float], feedback: Feedback, *, most: int = 20, floors: list[int] | None = None, replicas: int = 4
) -> RunResult:
    """Replay four pods of a core each with a target of 50 % and this feedback."""
    setup = setup_of(WEB, HorizontalPolicy(), Assumptions(feedback=feedback))
    assert isinstance(setup, Setup)
    setup = replace(setup, bounds=ReplicaBounds(2, most))
    stated = None if floors is None else np.array(floors, np.int32)
    return replay_runs([Run(0, WEB, setup, replicas, floors=stated)], measured(cores), tracks=True)[0]


def test_a_queue_grows_and_drains_after_the_jump_is_over() -> None:
    """An excess of two cores for four sync periods queues 2, 4, 6, 8; then there is room for two."""
    track = played([2.0, 6.0, 2.0, 2.0, 2.0], QUEUE, most=4).track
    assert (track.missing * 4).tolist() == [0, 2 + 4 + 6 + 8, 6 + 4 + 2 + 0, 0, 0]


def test_of_retries_a_part_gives_up() -> None:
    track = played([2.0, 6.0, 2.0, 2.0], Feedback(returns=0.5), most=4).track
    assert (track.missing * 4).tolist() == [0, 2 + 3 + 3.5 + 3.75, 0, 0]


def test_an_hpa_reads_no_more_than_its_pods_can_use() -> None:
    """Pods use four of eight cores, so the count doubles, while the demand itself would have made it sixteen."""
    jump = [2.0, 8.0, 8.0, 8.0]
    assert played(jump, NO_FEEDBACK).track.desired.tolist()[1:3] == [4, 16]
    assert played(jump, QUEUE).track.desired.tolist()[1:3] == [4, 8]


def test_pods_are_slow_at_first() -> None:
    """Ten cores come; eight more pods are ready from the second sync of minute 2 on, and carry half for a minute."""
    demand, slow = [2.0, 2.0, 10.0, 10.0, 10.0], Feedback(cold=MINUTE, cold_share=0.5)
    plain, cold = (played(demand, feedback, most=12, floors=[12] * 5).track for feedback in (NO_FEEDBACK, slow))
    assert plain.ready.tolist() == cold.ready.tolist() == [4, 4, 12, 12, 12]
    assert (plain.missing * 4).tolist() == [0, 0, 6, 0, 0]
    assert (cold.missing * 4).tolist() == [0, 0, 6 + 2 + 2 + 2, 2, 0]


@pytest.mark.parametrize("given", [{"returns": 1.5}, {"cold_share": -0.1}, {"cold": timedelta(seconds=-1)}], ids=str)
def test_what_cannot_be_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        Feedback(**given)  # type: ignore[arg-type]


@dataclass
class Ready:
    ready: np.ndarray


AMOUNTS = st.lists(st.tuples(st.floats(0.0, 50.0), st.integers(0, 30)), min_size=1, max_size=40)


@given(AMOUNTS, st.floats(0.0, 1.0))
def test_nothing_is_lost_and_nothing_made_up(periods: list[tuple[float, int]], returns: float) -> None:
    """Requests that came were carried, gave up, or still wait."""
    load = load_of(Feedback(returns, timedelta(seconds=30), 0.5), np.array([1.0]), CPU, SYNC)
    given_up = came = carried = missing = 0.0
    for coming, ready in periods:
        waiting = returns * missing
        missing = float(load.missing(Ready(np.array([ready])), np.array([coming]))[0])  # type: ignore[arg-type]
        came, carried = came + coming, carried + coming + waiting - missing
        given_up += (1.0 - returns) * missing
        assert 0.0 <= missing <= coming + waiting
        assert coming + waiting - missing <= ready + 1e-9
    assert carried + given_up + returns * missing == pytest.approx(came)


@given(AMOUNTS)
def test_without_feedback_it_is_what_exceeds_the_ready_pods(periods: list[tuple[float, int]]) -> None:
    plain, none = (
        load_of(NO_FEEDBACK, np.array([1.0]), CPU, SYNC),
        load_of(Feedback(0.0, SYNC, 1.0), np.array([1.0]), REQUESTS, SYNC),
    )
    for coming, ready in periods:
        pods = Ready(np.array([ready]))
        missing = plain.missing(pods, np.array([coming]))  # type: ignore[arg-type]
        assert missing.tolist() == [max(0.0, coming - ready)]
        assert none.missing(pods, np.array([coming])) == pytest.approx(missing)  # type: ignore[arg-type]
