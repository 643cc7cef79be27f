from __future__ import annotations

import gc
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.cycle.steps import MIN_ALLOCATIONS, Steps, expect_records

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("workloads", "records"), [(0, MIN_ALLOCATIONS), (100, MIN_ALLOCATIONS), (10_000, 500_000)])
def test_the_collector_looks_the_seldomer_the_more_a_cycle_replaces(workloads: int, records: int) -> None:
    expect_records(workloads)
    assert gc.get_threshold()[0] == records


class Onlooker:
    """An onlooker who goes on after the first Ctrl-C."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.interruptions = 0

    def began(self, stage: str, share: float) -> None:
        assert 0 <= share <= 1
        self.stages.append(stage)

    def interrupted(self, stage: str) -> bool:
        self.interruptions += 1
        return self.interruptions == 1


def ctrl_c() -> int:
    raise KeyboardInterrupt


def test_after_ctrl_c_the_rest_is_done_with_what_is_known_and_optional_work_is_left() -> None:
    steps = Steps(lambda: 0.0, timedelta(hours=1), watch=Onlooker())
    steps.run("targets", lambda: 1, 0)
    assert steps.run("observations", ctrl_c, 3) == 3
    assert steps.optional("fits", lambda: 1, 0) == 0
    assert steps.run("decisions", lambda: 5, 0) == 5
    assert steps.failures == ["interrupted in observations: it has only the results until then"]
    with pytest.raises(KeyboardInterrupt):
        steps.run("offers", ctrl_c, 0)


def test_without_an_onlooker_ctrl_c_ends_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        Steps(lambda: 0.0, timedelta(hours=1)).run("observations", ctrl_c, 0)


class Shares(Onlooker):
    """An onlooker who records the shares it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []

    def began(self, stage: str, share: float) -> None:
        super().began(stage, share)
        self.shares.append(share)


def test_a_long_step_says_how_far_it_is() -> None:
    onlooker = Shares()
    steps = Steps(lambda: 0.0, timedelta(hours=1), watch=onlooker)
    steps.run("targets", lambda: None, None)
    reached = steps.within("observations")
    steps.run("observations", lambda: [reached("cpu", share) for share in (0.0, 0.5, 1.0)], [])
    for name in "abcdefghij":
        steps.run(name, lambda: None, None)
    assert onlooker.stages[:4] == ["targets", "observations", "observations: cpu", "observations: cpu"]
    assert onlooker.shares == sorted(onlooker.shares)
    assert onlooker.shares[3] == pytest.approx((onlooker.shares[2] + onlooker.shares[4]) / 2)
