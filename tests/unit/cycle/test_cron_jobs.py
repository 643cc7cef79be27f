"""CronJobs as workloads: each has its own policy; their counts and init containers are left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.cycle.sizes import sized_cron_jobs
from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.workload import ContainerFacts, ContainerId, WorkloadId
from forecaster.vertical.sizing.runs import Runs
from tests.support.builders import GIB, NOON, RESOURCES

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

BACKUP, REPORT = (WorkloadId("shop", "CronJob", name) for name in ("backup", "report"))
APP, SETUP = (ContainerId(BACKUP, name) for name in ("app", "setup"))


def known(*ids: ContainerId) -> ContainerFacts:
    return ContainerFacts(images=dict.fromkeys(ids, "app"), resources={APP: RESOURCES})


def runs(largest: float) -> Runs:
    return Runs({}, dict.fromkeys("abcdefghi", largest))


def sized(facts: ContainerFacts, by_container: dict[ContainerId, Runs], *overrides: Any) -> list[Recommendation]:
    return list(sized_cron_jobs(facts, by_container, Policies(Policy(), overrides), NOON).values())


def test_a_run_gets_its_size_and_the_schedule_keeps_the_count() -> None:
    (job,) = sized(known(APP), {APP: runs(2 * GIB)})
    assert isinstance(job.resources, Resize)
    assert (job.resources_now, job.replicas_now) == (RESOURCES, 0)
    assert isinstance(job.replicas, Hold)


def test_the_policy_of_a_cron_job_bounds_its_sizes() -> None:
    least = (PolicySelector(kind="CronJob", name="back*"), {"vertical": {"min_memory": "8Gi"}})
    (job,) = sized(known(APP), {APP: runs(2 * GIB)}, least)
    assert isinstance(job.resources, Resize)
    assert job.resources.resources.memory_limit == 8 * GIB


def test_an_init_container_keeps_what_it_has_and_is_no_part_of_the_size() -> None:
    peaks = {APP: runs(2 * GIB), SETUP: runs(GIB)}
    (job,) = sized(known(APP), peaks)
    assert isinstance(job.resources, Resize)
    assert [size.name for size in job.resources.containers] == ["app"]


def test_a_cron_job_of_which_no_run_is_known_says_so() -> None:
    (job,) = sized(known(ContainerId(REPORT, "app")), {})
    assert job.resources == Hold(Reason.SHORT_HISTORY, "0 completed runs are known, it takes 5; unchanged")
