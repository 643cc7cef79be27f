"""Sizes learned from runs of a job; today one core with a limit of two, and one GiB with an equal limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.vertical.sizing.containers import ContainerSizing, ContainerSpec
from forecaster.vertical.sizing.memory import OOM_RAISE, PEAK_MARGIN
from forecaster.vertical.sizing.runs import MIN_RUNS, Runs, run_sizes
from tests.support.builders import GIB, RESOURCES


def runs(largest: float, completed: int = 9, cores: float = 0.4) -> Runs:
    """Completed runs with these cores; the last one has the largest peak of memory, the others half of it."""
    names = [f"backup-{i}" for i in range(completed)]
    peaks = dict.fromkeys(names[:-1], largest / 2) | dict.fromkeys(names[-1:], largest)
    return Runs(dict.fromkeys(names, cores), peaks)


def sized(known: Runs, policy: VerticalPolicy | None = None, **spec: float) -> ContainerSizing:
    (sizing,) = run_sizes([known], [ContainerSpec(RESOURCES, name="app", **spec)], policy or VerticalPolicy())
    return sizing


def memory_of(peaks: Runs, policy: VerticalPolicy | None = None, **spec: float) -> float:
    memory = sized(peaks, policy, **spec).memory
    assert memory is not None
    assert memory.limit is not None
    return memory.limit


def test_request_and_limit_of_memory_are_the_largest_peak_and_its_margin() -> None:
    sizing = sized(runs(2 * GIB))
    assert sizing.memory is not None
    assert sizing.memory.request == sizing.memory.limit == pytest.approx(PEAK_MARGIN * 2 * GIB)
    assert sizing.explained["memory"] == (
        "the largest peak is 2Gi, of run backup-8; by 9 completed runs the next passes it with a "
        "chance of at most 1 in 10"
    )


def test_todays_limit_stays_where_it_is_about_that() -> None:
    memory = sized(runs(0.9 * GIB)).memory
    assert memory is not None
    assert memory.unchanged
    assert memory.limit == GIB


def test_an_unchanged_size_is_reported_as_it_is() -> None:
    """With a request below the limit, the size is still the request and not the limit."""
    stated = ContainerSpec(replace(RESOURCES, memory_request=GIB / 2), name="app")
    (sizing,) = run_sizes([runs(0.9 * GIB)], [stated], VerticalPolicy())
    assert sizing.memory is not None
    assert (sizing.memory.unchanged, sizing.memory.request, sizing.memory.limit) == (True, GIB / 2, GIB)


def test_a_limit_that_a_run_has_passed_does_not_stay() -> None:
    assert memory_of(runs(1.01 * GIB)) == pytest.approx(PEAK_MARGIN * 1.01 * GIB)


def test_after_a_kill_the_limit_is_that_of_every_other_workload() -> None:
    assert memory_of(runs(GIB), oom_floor=OOM_RAISE * GIB) == OOM_RAISE * GIB


@pytest.mark.parametrize("completed", range(MIN_RUNS))
def test_too_few_runs_say_so_and_have_no_number(completed: int) -> None:
    sizing = sized(runs(GIB, completed))
    assert (sizing.cpu, sizing.memory) == (None, None)
    assert sizing.note == f"{completed} completed runs are known, it takes 5; unchanged"


def test_cpu_is_what_runs_use_on_average() -> None:
    cpu = sized(runs(GIB)).cpu
    assert cpu is not None
    assert (cpu.request, cpu.limit) == pytest.approx((0.4, 0.8))


def test_one_greedy_run_of_many_is_not_what_cpu_is_requested_for() -> None:
    """A run with less CPU only takes longer, while a run with less memory is killed."""
    many = runs(GIB, 100)
    cpu = sized(many._replace(cpu=dict(many.cpu) | {"backup-7": 8.0})).cpu
    assert cpu is not None
    assert cpu.request == pytest.approx(0.4)


def test_a_throttled_run_is_not_given_less_cpu() -> None:
    cpu = sized(runs(GIB), throttled=0.2).cpu
    assert cpu is not None
    assert cpu.request == RESOURCES.cpu_request


def test_without_a_limit_in_the_policy_there_is_none() -> None:
    sizing = sized(runs(2 * GIB), VerticalPolicy(memory_limit="none", cpu_limit="none"))
    assert sizing.memory is not None
    assert sizing.cpu is not None
    assert (sizing.memory.limit, sizing.cpu.limit) == (None, None)


def test_memory_alone_is_sized_where_no_sample_of_cpu_is_known() -> None:
    sizing = sized(runs(2 * GIB)._replace(cpu={}))
    assert sizing.cpu is None
    assert sizing.memory is not None


def test_a_request_below_the_limit_covers_the_share_of_runs_that_the_policy_states() -> None:
    memory = sized(runs(4 * GIB, 100), VerticalPolicy(memory_limit="peak")).memory
    assert memory is not None
    assert (memory.request, memory.limit) == pytest.approx((2 * GIB, PEAK_MARGIN * 4 * GIB))
