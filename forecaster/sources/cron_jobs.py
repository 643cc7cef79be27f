"""PromQL about runs of CronJobs: the sizes of containers of Jobs, and the usage of each run.

A run is a Job, its pods have names of their own, and most of them are gone. So each query covers a week at once and
reads every series once; with steps of minutes it would read runs times steps. Series by pod are read only where the
name has the minute of a schedule. A namespace is read up to a number of its oldest CronJobs, and of their runs: an
owner with more of them harms that namespace only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.sources.container_queries import CONTAINER_FACTS, ENDED, hottest, named_containers
from forecaster.sources.facts import NEEDED_OF_CONTAINERS, container_of
from forecaster.sources.promql import CONTAINERS, SELECTED
from forecaster.sources.wire import at_instant
from forecaster.vertical.sizing.runs import Runs

if TYPE_CHECKING:
    from forecaster.domain.workload import ContainerId
    from forecaster.sources.prometheus import PrometheusSource
    from forecaster.sources.queries import Queries

MAX_CRON_JOBS = 500
"""CronJobs read of a namespace, the oldest first."""
MAX_RUNS, MAX_NAMESPACE_RUNS = 100, 5000
"""Runs read of a CronJob, and of all of a namespace, in a week: the last ones."""
WEEK, WEEKS = timedelta(weeks=1), 5
"""Weeks that are read: a weekly run has as many runs in five as a size needs."""


def _of_runs(query: str) -> str:
    """Extend `query` to pods and Jobs that are gone, by the last value of their series within a week.

    Each pod of a CronJob has the minute of its schedule in its name, of which 52 letters before it leave five digits.
    """
    query = re.sub(r"(kube_(?:pod|job)_\w+\{[^}]*\})", r"last_over_time(\1[1w])", query)
    return re.sub(r"\b(?:container|kube_pod)_\w+\{", r'\g<0>pod=~".+-[0-9][0-9][0-9][0-9][0-9].*",', query)


_JOBS = f"""\
topk by (namespace, job_name) (1, group by (namespace, job_name, workload_kind, workload) (
      label_replace(label_replace(
        group by (namespace, job_name, owner_name) (kube_job_owner{{owner_kind="CronJob",{SELECTED}}}),
        "workload_kind", "CronJob", "", ""), "workload", "$1", "owner_name", "(.+)")
      and on (namespace, workload)
      label_replace(bottomk by (namespace) ({MAX_CRON_JOBS},
        max by (namespace, cronjob) (kube_cronjob_created{{{SELECTED}}})), "workload", "$1", "cronjob", "(.+)")
    ))"""
_PODS = f"""\
topk by (namespace, pod) (1, group by (namespace, pod, job_name, workload_kind, workload) (
    label_replace(group by (namespace, pod, owner_name) (kube_pod_owner{{owner_kind="Job",{SELECTED}}}),
      "job_name", "$1", "owner_name", "(.+)")
    * on (namespace, job_name) group_left (workload_kind, workload)
    {_JOBS}
  ))"""
_CREATED = f"max by (namespace, pod) (kube_pod_created{{{SELECTED}}})"
_LATEST = f"""\
topk by (namespace, workload) (1, {_CREATED} * on (namespace, pod) group_left (workload_kind, workload) {_PODS}) ^ 0"""
"""The newest pod of each CronJob: runs that are kept may be of an older template."""
_KILLED = " or ".join(
    f'max by (namespace, pod, container) (kube_pod_container_status_{last}{{reason="OOMKilled",{SELECTED}}}) == 1'
    for last in ("terminated_reason", "last_terminated_reason")
)
_KILLED_AT = f"""\
(max by (namespace, pod, container) (kube_pod_container_resource_limits{{resource="memory",{SELECTED}}})
  and on (namespace, pod, container) ({_KILLED})
  and on (namespace, pod) ({_CREATED} > time() - {WEEK.total_seconds():.0f}))"""
"""Memory limits of containers that were killed, of pods made within a week: a kept run may be much older."""

_STATED = {name: CONTAINER_FACTS[name].replace(ENDED, "").replace("$owners", _LATEST) for name in NEEDED_OF_CONTAINERS}
_APPS = named_containers("image", f"kube_pod_container_info{{{SELECTED}}}").replace(ENDED, "")
"""Init containers are not sized, sidecars among them: a template has these in another list."""
_HELD_BACK = CONTAINER_FACTS["held_back"].replace("[1h]", "[1w]").replace("(rate(", "(deriv(")
RUN_QUERIES: Mapping[str, str] = {
    name: _of_runs(query.replace("$owners", owners))
    for name, query, owners in (
        *((name, query, _LATEST) for name, query in _STATED.items()),
        ("container_images", _APPS, _LATEST),
        ("held_back", _HELD_BACK, _PODS),
        ("oom_kills", hottest(_KILLED_AT), _PODS),
    )
}
"""Queries about containers of CronJobs."""


_COMPLETED = f"""\
topk by (namespace) ({MAX_NAMESPACE_RUNS}, topk by (namespace, workload) ({MAX_RUNS},
  max by (namespace, job_name) (kube_job_status_completion_time{{{SELECTED}}})
  * on (namespace, job_name) group_left (workload)
  {_JOBS}
))"""
"""The last Jobs that completed: others may have ended before their peak."""


def _by_run(usage: str) -> str:
    """The query for the usage of each run, which began at most a day before the week in which it completed."""
    return _of_runs(f"""\
max by (namespace, workload_kind, workload, container, job_name) (
  max by (namespace, pod, container) ({usage}{{{CONTAINERS}}}[8d]))
  * on (namespace, pod) group_left (job_name, workload_kind, workload)
  {_PODS}
) and on (namespace, job_name) {_COMPLETED}""")


RUN_CPU = _by_run("deriv(container_cpu_usage_seconds_total")
"""Mean cores of each run: the slope of its samples, however short it is. A rate would spread it over the week."""
RUN_MEMORY = _by_run("max_over_time(container_memory_working_set_bytes")


def run_queries(queries: Queries) -> Queries:
    """Return the queries with runs of CronJobs in place of workloads, for the same part of the cluster."""
    return queries.model_copy(update=dict(RUN_QUERIES))


def runs_of(source: PrometheusSource, at: datetime) -> dict[ContainerId, Runs]:
    """Completed runs of every container in five weeks. Raises SourceError."""
    cpu, memory = (_usage_of(source, at, query) for query in (RUN_CPU, RUN_MEMORY))
    return {id_: Runs(cpu.get(id_, {}), peaks) for id_, peaks in memory.items()}


def _usage_of(source: PrometheusSource, at: datetime, query: str) -> dict[ContainerId, dict[str, float]]:
    """The highest amount of each container by run."""
    amounts: dict[ContainerId, dict[str, float]] = defaultdict(dict)
    for end in (at - week * WEEK for week in range(WEEKS)):
        for row in source.rows(at_instant("runs of CronJobs", source.queries.rendered(query), end)):
            if (id_ := container_of(row.labels)) and (run := row.labels.get("job_name")):
                amounts[id_][run] = max(row.value, amounts[id_].get(run, 0.0))
    return amounts
