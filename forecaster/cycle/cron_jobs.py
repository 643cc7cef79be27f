"""CronJobs as workloads without pods between their runs, sized by these runs; their count is not ours to decide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from forecaster.cycle.sizes import spec_of
from forecaster.domain.decision import Hold, Reason, Recommendation
from forecaster.domain.workload import ContainerFacts, ContainerId, Workload, WorkloadId, total
from forecaster.errors import SourceError
from forecaster.sources.cron_jobs import MAX_CRON_JOBS, runs_of
from forecaster.vertical.sizing.pod import size
from forecaster.vertical.sizing.runs import NO_RUNS, Runs, run_sizes

if TYPE_CHECKING:
    from forecaster.cycle.run import Outcome
    from forecaster.domain.policies import Policies
    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.sources.prometheus import PrometheusSource
    from forecaster.vertical.sizing.containers import PodSizing

_SCHEDULED = Hold(Reason.NO_TARGET, "its schedule decides when there are pods")


def with_cron_jobs(outcome: Outcome, source: PrometheusSource, policies: Policies) -> Outcome:
    """Return the outcome with every CronJob that had a pod within a week; without an answer they are left out."""
    at, facts = outcome.report.at, ContainerFacts()
    try:
        facts = source.containers(at)
        cron_jobs = sized_cron_jobs(facts, runs_of(source, at), policies, at)
    except SourceError as error:
        cron_jobs, failures = {}, [f"CronJobs are left out: {error}"]
    else:
        counts = Counter(workload.id.namespace for workload in cron_jobs)
        full = [name for name, count in counts.items() if count >= MAX_CRON_JOBS]
        failures = [f"CronJobs of {name}: no more than the {MAX_CRON_JOBS} oldest are read" for name in full]
    report = replace(outcome.report, failures=(*outcome.report.failures, *facts.unread, *failures))
    inventory = replace(outcome.inventory, workloads=(*outcome.inventory.workloads, *cron_jobs))
    return type(outcome)(inventory, [*outcome.recommendations, *cron_jobs.values()], report)


def sized_cron_jobs(
    facts: ContainerFacts, runs: Mapping[ContainerId, Runs], policies: Policies, at: datetime
) -> dict[Workload, Recommendation]:
    """Every CronJob with containers that are known, and the size of its runs."""
    alike: dict[VerticalPolicy, list[ContainerId]] = defaultdict(list)
    for container in sorted(facts.images):
        alike[policies.of(container.workload).vertical].append(container)
    sizings: dict[WorkloadId, PodSizing] = defaultdict(tuple)
    for policy, ids in alike.items():
        sized = run_sizes([runs.get(id_, NO_RUNS) for id_ in ids], [spec_of(id_, facts) for id_ in ids], policy)
        for id_, sizing in zip(ids, sized, strict=True):
            sizings[id_.workload] += (sizing,)
    return dict(_recommended(id_, sizings[id_], policies, at) for id_ in sorted(sizings))


def _recommended(
    id_: WorkloadId, sizing: PodSizing, policies: Policies, at: datetime
) -> tuple[Workload, Recommendation]:
    workload = Workload(id_, 0, 0, total(container.now for container in sizing))
    decided = size(workload, sizing, policies.of(id_).vertical)
    if isinstance(decided, Hold) and decided.reason is Reason.NO_DATA:
        decided = replace(decided, reason=Reason.SHORT_HISTORY)
    return workload, Recommendation(id_, at, 0, _SCHEDULED, workload.resources, decided)
