"""Runs of CronJobs as cAdvisor and kube-state-metrics tell them, for small worlds in the real Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tests.support.exposition import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.prometheus import Span

FIRST = datetime(2024, 5, 6, 1, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MIB = 2.0**20


class Run(NamedTuple):
    """One Job of a CronJob: four minutes of usage, then the objects for two hours, as the history limit keeps them."""

    cron_job: str
    start: datetime
    mebibytes: float
    namespace: str = "shop"
    cores: float = 0.5
    limit: float = 1024
    """Memory in MiB, request and limit."""
    completes: bool = True
    killed: bool = False

    @property
    def job(self) -> str:
        return f"{self.cron_job}-{self.start.timestamp() / 60:.0f}"

    def spans(self) -> Iterator[Span]:
        """Yield every series of the run."""
        begin, pod = self.start.timestamp() + 7, f"{self.job}-x7k2p"
        there = {"namespace": self.namespace, "pod": pod}
        app, mesh = (there | {"container": name} for name in ("app", "mesh"))
        usage = World("one", begin, interval=30.0, scrapes=8)
        usage.counter("container_cpu_usage_seconds_total", self.cores, id=f"/{pod}", **app)
        usage.gauge("container_memory_working_set_bytes", self.mebibytes * MIB, id=f"/{pod}", **app)
        usage.gauge("container_memory_working_set_bytes", self.mebibytes * MIB, id=f"/{pod}/mesh", **mesh)
        state = World("one", begin, interval=60.0, scrapes=120)
        state.owner(self.namespace, pod, "Job", self.job)
        state.gauge("kube_pod_created", self.start.timestamp(), **there)
        state.gauge("kube_pod_container_info", 1, image="app", **app)
        state.gauge("kube_pod_init_container_info", 1, image="mesh", restart_policy="Always", **mesh)
        for kind, cores in (("requests", 1.0), ("limits", 2.0)):
            state.gauge(f"kube_pod_container_resource_{kind}", cores, resource="cpu", **app)
            state.gauge(f"kube_pod_container_resource_{kind}", self.limit * MIB, resource="memory", **app)
        named = {"namespace": self.namespace, "job_name": self.job}
        state.gauge("kube_job_owner", 1, owner_kind="CronJob", owner_name=self.cron_job, **named)
        if self.completes:
            state.gauge("kube_job_status_completion_time", begin + 240, **named)
        if self.killed:
            state.gauge("kube_pod_container_status_terminated_reason", 1, reason="OOMKilled", **app)
        yield from [*usage, *state]


def created(namespace: str, name: str, hours: float) -> Iterator[Span]:
    """A CronJob that is there from the first run on."""
    world = World("one", FIRST.timestamp() + 7, interval=60.0, scrapes=round(hours * 60))
    world.gauge("kube_cronjob_created", FIRST.timestamp(), namespace=namespace, cronjob=name)
    yield from world
