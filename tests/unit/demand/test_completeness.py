"""Numbers with which a sum is compared, one row at a time."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.demand.completeness import (
    BEYOND_USE,
    COMPLETE,
    LEAVING_PODS,
    PARTIAL_ANSWER,
    SILENT_PODS,
    STARTING_PODS,
    UNCOVERED,
    Expected,
    acting,
    judged,
    learned,
)
from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE, Block, PodSamples
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

WEB = workload_id("web")


def cell(value: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[value]])


def block(
    cores: float = 3.0,
    *,
    pods: float = 10.0,
    samples: float = 8.0,
    settled: float = 3.0,
    starting: float = 0.0,
    partial: str = "",
) -> Block:
    """Ten pods with three cores and eight samples a window."""
    made_of = PodSamples(cell(pods), cell(samples), cell(settled), cell(starting))
    return Block(CPU, (WEB,), NOON, MINUTE, cell(cores), made_of=made_of, partial=partial, rated=True)


def expected(ready: float = 10.0, before: float | None = None, usual: float = 8.0, most: float = 80.0) -> Expected:
    there = cell(ready if before is None else before)
    fewest, highest = np.fmin(there, ready), np.fmax(there, ready)
    return Expected(cell(ready), fewest, highest, np.array([usual]), np.array([most]), np.zeros(1, np.bool_))


@pytest.mark.parametrize(
    ("answer", "against", "code"),
    [
        pytest.param(block(), expected(), COMPLETE, id="whole"),
        pytest.param(block(pods=6.0), expected(), SILENT_PODS, id="four of ten pods have no samples"),
        pytest.param(block(pods=10.0), expected(ready=13.0, before=10.0), STARTING_PODS, id="three are ready just now"),
        pytest.param(block(4.0, pods=10.0, starting=1.0), expected(ready=13.0), STARTING_PODS, id="three use some"),
        pytest.param(block(), expected(before=30.0), LEAVING_PODS, id="twenty of thirty have left"),
        pytest.param(block(pods=30.0), expected(ready=30.0, before=31.0), COMPLETE, id="one of 31 has left"),
        pytest.param(block(pods=30.0), expected(ready=30.0, before=32.0), LEAVING_PODS, id="two of 32 have left"),
        pytest.param(block(pods=6.0), expected(before=30.0), SILENT_PODS, id="some left, and others are silent"),
        pytest.param(block(4.0, starting=1.0), expected(), COMPLETE, id="a surge that is not ready"),
        pytest.param(block(samples=4.0), expected(), UNCOVERED, id="half a window"),
        pytest.param(block(pods=1.0, samples=7.0), expected(ready=1.0), COMPLETE, id="one lost sample of one pod"),
        pytest.param(block(samples=7.0), expected(), UNCOVERED, id="one lost sample of each of ten pods"),
        pytest.param(block(samples=2.0), expected(usual=2.0), COMPLETE, id="scrapes once a minute"),
        pytest.param(block(), expected(usual=np.nan), COMPLETE, id="nothing is known of scrapes"),
        pytest.param(block(), expected(ready=np.nan), COMPLETE, id="nothing is known of ready pods"),
        pytest.param(block(partial="a store is down"), expected(), PARTIAL_ANSWER, id="a partial answer"),
        pytest.param(block(8000.0), expected(), BEYOND_USE, id="a glitch"),
    ],
)
def test_the_verdict(answer: Block, against: Expected, code: int) -> None:
    assert judged(answer, against).code.item() == code


def test_a_rate_that_says_nothing_of_its_samples_is_incomplete_while_the_server_was_away() -> None:
    answer = Block(CPU, (WEB,), NOON, MINUTE, cell(3.0), rated=True)
    away = expected()._replace(away=np.ones(1, np.bool_))
    verdict = judged(answer, away)
    assert (verdict.code.item(), acting(answer, verdict).item()) == (UNCOVERED, 3.0)


def test_pods_past_their_start_act_and_all_pods_are_learned_from() -> None:
    answer = block(6.0, settled=3.0, starting=1.0)
    verdict = judged(answer, expected(ready=13.0))
    assert (acting(answer, verdict).item(), learned(answer, verdict).item()) == (3.0, 6.0)


@pytest.mark.parametrize("answer", [block(pods=6.0), block(samples=4.0), block(8000.0)])
def test_what_is_incomplete_is_not_learned(answer: Block) -> None:
    assert np.isnan(learned(answer, judged(answer, expected()))).all()
