"""Sizes by runs; today one core with a limit of two, and one GiB with a limit of the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.vertical.sizing.containers import ContainerSizing, ContainerSpec
from forecaster.vertical.sizing.memory import OOM_RAISE, PEAK_MARGIN
from forecaster.vertical.sizing.runs import MIN_RUNS, Runs, run_sizes
from tests.support.builders import GIB, RESOURCES


def runs(largest: float, completed: int = 9, cores: float = 0.4) -> Runs:
    """Runs of so many cores, of which the last had the largest peak."""
    names = [f"backup-{i}" for i in range(completed)]
    peaks = dict.fromkeys(names[:-1], largest / 2) | dict.fromkeys(names[-1:], largest)
    return Runs(dict.fromkeys(names, cores), peaks)


def sized(known: Runs, policy: VerticalPolicy | None = None, **spec: float) -> ContainerSizing:
    (one,) = run_sizes([known], [ContainerSpec(RESOURCES, name="app", **spec)], policy or VerticalPolicy())
    return one


def memory_of(peaks: Runs, policy: VerticalPolicy | None = None, **spec: float) -> float:
    found = sized(peaks, policy, **spec).memory
    assert found is not None
    assert found.limit is not None
    return found.limit


def test_request_and_limit_of_memory_are_the_largest_peak_and_its_margin() -> None:
    found = sized(runs(2 * GIB))
    assert found.memory is not None
    assert found.memory.request == found.memory.limit == pytest.approx(PEAK_MARGIN * 2 * GIB)
    assert found.explained["memory"] == (
        "the largest peak is 2Gi, of run backup-8; by 9 completed runs the next passes it with a "
        "chance of at most 1 in 10"
    )


def test_todays_limit_stays_where_it_is_about_that() -> None:
    found = sized(runs(0.9 * GIB)).memory
    assert found is not None
    assert found.unchanged
    assert found.limit == GIB


def test_what_stays_is_told_as_it_is() -> None:
    """Beside a request below the limit, the size was said to be the limit."""
    stated = ContainerSpec(replace(RESOURCES, memory_request=GIB / 2), name="app")
    (one,) = run_sizes([runs(0.9 * GIB)], [stated], VerticalPolicy())
    assert one.memory is not None
    assert (one.memory.unchanged, one.memory.request, one.memory.limit) == (True, GIB / 2, GIB)


def test_a_limit_that_a_run_has_passed_does_not_stay() -> None:
    assert memory_of(runs(1.01 * GIB)) == pytest.approx(PEAK_MARGIN * 1.01 * GIB)


def test_after_a_kill_the_limit_is_that_of_every_other_workload() -> None:
    assert memory_of(runs(GIB), oom_floor=OOM_RAISE * GIB) == OOM_RAISE * GIB


@pytest.mark.parametrize("completed", range(MIN_RUNS))
def test_too_few_runs_say_so_and_have_no_number(completed: int) -> None:
    found = sized(runs(GIB, completed))
    assert (found.cpu, found.memory) == (None, None)
    assert found.note == f"{completed} completed runs are known, it takes 5; unchanged"


def test_cpu_is_what_runs_use_on_average() -> None:
    found = sized(runs(GIB)).cpu
    assert found is not None
    assert (found.request, found.limit) == pytest.approx((0.4, 0.8))


def test_one_greedy_run_of_many_is_not_what_cpu_is_requested_for() -> None:
    """A run with less CPU takes longer; a run with less memory is killed."""
    many = runs(GIB, 100)
    found = sized(many._replace(cpu=dict(many.cpu) | {"backup-7": 8.0})).cpu
    assert found is not None
    assert found.request == pytest.approx(0.4)


def test_a_throttled_run_is_not_given_less_cpu() -> None:
    found = sized(runs(GIB), throttled=0.2).cpu
    assert found is not None
    assert found.request == RESOURCES.cpu_request


def test_without_a_limit_in_the_policy_there_is_none() -> None:
    found = sized(runs(2 * GIB), VerticalPolicy(memory_limit="none", cpu_limit="none"))
    assert found.memory is not None
    assert found.cpu is not None
    assert (found.memory.limit, found.cpu.limit) == (None, None)


def test_memory_alone_is_sized_where_no_sample_of_cpu_is_known() -> None:
    found = sized(runs(2 * GIB)._replace(cpu={}))
    assert found.cpu is None
    assert found.memory is not None


def test_a_request_below_the_limit_covers_the_share_of_runs_that_the_policy_states() -> None:
    found = sized(runs(4 * GIB, 100), VerticalPolicy(memory_limit="peak")).memory
    assert found is not None
    assert (found.request, found.limit) == pytest.approx((2 * GIB, PEAK_MARGIN * 4 * GIB))
