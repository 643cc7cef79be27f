"""A day played minute by minute on a real control plane and a real Prometheus: pods, exporters, both processes, clocks.

Pods are those of the API server, so that a minute later the count which the HPA controller made of our numbers is
scraped.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import httpx
import numpy as np

from forecaster.app import telemetry
from forecaster.app.serve import build_service, state_directory
from forecaster.config.settings import parse
from forecaster.domain.window import MINUTE
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.exporters import NAMESPACE, SCRAPE, Exporters, ScrapedPod, ScrapedWorkload
from tests.support.faulty_proxy import FaultyProxy
from tests.support.prometheus import RealPrometheus, fill
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.child import ServingProcess
    from forecaster.app.service import Service
    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.deployed import Deployed
    from tests.support.played_time import PlayedTime
    from tests.support.prometheus import Binaries

TARGET = 0.31
"""Cores of a pod, so that 3.0 are ten pods with room for the error of a rate."""
MOST = 40
BEFORE = timedelta(hours=26)
"""Length of the history before the day."""
STARTING_CORES = 1.0
"""Cores that a pod uses until it is ready."""
BESIDE = tuple(
    ScrapedWorkload(name, 1, (ScrapedPod(f"{name}-5d8f-0", f"{name}-5d8f", 0.1),)) for name in ("blog", "mail", "wiki")
)
"""Deployments of the fleet without an HPA, which are in no cluster."""
NOT_READY_BY_ITSELF = {"pod-ready.stage.kwok.x-k8s.io/delay": "24h"}


class Played(NamedTuple):
    """A workload: how many pods it begins with, and its demand at an instant, in cores."""

    name: str
    begins: int
    demand: Callable[[datetime], float]


class Arrangement(NamedTuple):
    """Clock, start, workloads and policy that a day begins with."""

    clock: PlayedTime
    start: datetime
    workloads: Sequence[Played]
    policy: Mapping[str, object]
    """Sections of the settings."""


@dataclass
class PlayedDay:
    """`at` is the instant in truth; the clock that both processes read may be wrong."""

    deployed: Deployed
    clock: PlayedTime
    at: datetime
    workloads: Sequence[Played]
    exporters: Exporters
    proxy: FaultyProxy
    policy: Mapping[str, object]
    wrong_by: timedelta = timedelta()
    """Time by which the clock of the machine is ahead."""
    _service: Service | None = None
    _parts: ExitStack = field(default_factory=ExitStack)

    @property
    def api(self) -> Api:
        """API of the cluster."""
        return self.deployed.cluster.api

    def minute(self) -> list[ScrapedWorkload]:
        """Play one more minute of load and scrapes, and the cycle at its end; return the last scraped workloads."""
        workloads: list[ScrapedWorkload] = []
        for _ in range(MINUTE // SCRAPE):
            self.at += SCRAPE
            workloads = self.cluster()
            self.exporters.scrape(workloads, self.at)
        self.computed()
        return workloads

    def computed(self) -> None:
        """A cycle by the clock of the machine."""
        assert self._service
        self.tell(self._service.settings.delay)
        self._service.tick()

    def tell(self, past: timedelta) -> None:
        """Set the clock of both processes this much after the last minute; `wrong_by` is added."""
        self.clock.set(self.at + self.wrong_by + past)

    def start(self) -> None:
        """The computing process, in place of one that was killed."""
        self._parts.close()
        given = {
            "prometheus": {"url": self.proxy.url, "retries": 0, "read_timeout_seconds": 3},
            "queries": {"requests_from": "none", "specifications_every": "0s"},
            "state": {"directory": str(self.deployed.table.parent)},
            "serving": {"workload_metrics": "all"},
            "remote_write": {"url": f"{self.exporters.url}/api/v1/write", "timestamps": "evaluation"},
            **self.policy,
        }
        settings = parse(given, "test")
        directory = state_directory(settings.state)
        self._service = build_service(settings, directory, telemetry.logger(), self._parts, clock=self.clock)

    def close(self) -> None:
        """Close the computing process and the exporters."""
        self._parts.close()
        self.exporters.close()

    def cluster(self) -> list[ScrapedWorkload]:
        """Workloads as they are now."""
        return [*(self.scraped(played) for played in self.workloads), *BESIDE]

    def scraped(self, played: Played) -> ScrapedWorkload:
        """The pods that there are share the demand; those that start use what starting takes."""
        pods = sorted(pods_of(self.api, played.name), key=lambda pod: str(pod["metadata"]["name"]))
        ready = [is_ready(pod) for pod in pods]
        share = played.demand(self.at) / max(1, sum(ready))
        pods_of_it = [
            ScrapedPod(
                pod["metadata"]["name"],
                pod["metadata"]["ownerReferences"][0]["name"],
                share if there else STARTING_CORES,
                there,
            )
            for pod, there in zip(pods, ready, strict=True)
        ]
        desired = replicas(self.api, played.name, NAMESPACE).desired
        return ScrapedWorkload(played.name, desired, pods_of_it, TARGET, MOST)

    def until_settled(self, *, starting: Sequence[str] = ()) -> None:
        """Wait until every Deployment has the pods it wants, but for those that are rolled out."""
        names = [played.name for played in self.workloads if played.name not in starting]

        def settled() -> bool:
            self.deployed.cluster.programs.check()
            return all(_settled(self.api, name) for name in names)

        wait_until(settled, goal="the pods of all Deployments")

    def scale(self, name: str, count: int) -> None:
        """Set the number of replicas by hand."""
        self.api.merge("Deployment", name, {"spec": {"replicas": count}}, NAMESPACE)

    def roll_out(self, name: str) -> None:
        """A new template, three pods at a time, none of which becomes ready by itself."""
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 0}}
        template = {"metadata": {"annotations": NOT_READY_BY_ITSELF}}
        self.api.merge("Deployment", name, {"spec": {"strategy": rolling, "template": template}}, NAMESPACE)
        wait_until(lambda: len(self.starting(name)) == 3, goal="a surge of three pods")

    def starting(self, name: str) -> list[str]:
        """Pods that are not ready."""
        return [str(pod["metadata"]["name"]) for pod in pods_of(self.api, name) if not is_ready(pod)]

    def become_ready(self, name: str) -> None:
        """Let the starting pods become ready; the next pods of the rollout start."""
        ready = self.starting(name)
        for pod in ready:
            conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/status"
            body = {"status": {"phase": "Running", "conditions": conditions}}
            answer = self.api.ask("PATCH", path, body, content_type="application/strategic-merge-patch+json")
            assert answer.is_success, answer.text
        wait_until(lambda: self._next_surge(name, ready), goal="the next pods of the rollout")

    def _next_surge(self, name: str, before: Sequence[str]) -> bool:
        starting = set(self.starting(name))
        status = self.api.read("Deployment", name, NAMESPACE)["status"]
        done = status.get("updatedReplicas") == status.get("replicas") == status.get("readyReplicas")
        return bool(starting) and starting.isdisjoint(before) if not done else not starting


def pods_of(api: Api, name: str) -> list[Document]:
    """Pods that are not going away."""
    pods = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{name}")["items"]
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod: Document) -> bool:
    """By its condition."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _settled(api: Api, name: str) -> bool:
    desired, ready = replicas(api, name, NAMESPACE)
    return desired == ready == len(pods_of(api, name))


@contextmanager
def played_day(deployed: Deployed, binaries: Binaries, folder: Path, arranged: Arrangement) -> Iterator[PlayedDay]:
    """Deployments, a Prometheus with their history, and the computing process before its first cycle."""
    clock, start, workloads, policy = arranged
    prometheus = RealPrometheus(binaries, folder / "data", options=["--web.enable-remote-write-receiver"])
    exporters, proxy = Exporters(prometheus.url), FaultyProxy(prometheus.url)
    day = PlayedDay(deployed, clock, start, workloads, exporters, proxy, policy)
    for played in workloads:
        day.api.put(deployment(played.name, played.begins), NAMESPACE)
    day.until_settled()
    times = start.timestamp() - np.arange(int(BEFORE / SCRAPE), -1, -1) * SCRAPE.total_seconds()
    fill(folder / "data", exporters.history(day.cluster(), times, shares(workloads, start, times)), binaries)
    clock.set(start)
    with prometheus, proxy, closing(day):
        day.start()
        yield day


def shares(workloads: Sequence[Played], start: datetime, times: np.ndarray) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """Usage of each pod of a workload [time], in cores."""
    past = [timedelta(seconds=float(seconds)) for seconds in times - start.timestamp()]
    shares = {
        played.name: np.array([played.demand(start + each) / played.begins for each in past]) for played in workloads
    }
    return shares | {scraped.name: np.full(times.size, scraped.pods[0].cores) for scraped in BESIDE}


def scaled_by_hpas(day: PlayedDay) -> None:
    """Give each workload an HPA that reads us."""
    for played in day.workloads:
        day.api.put(external_hpa(played.name, target=f"{TARGET * 1000:.0f}m", most=MOST), NAMESPACE)


def until_hpas_have_read(day: PlayedDay, serving: ProcessCounts) -> None:
    """Wait two whole rounds of the controller, so that it has acted on the served numbers."""
    before = serving.lists()
    rounds = len(day.workloads) + 2  # and the API server's own questions
    wait_until(lambda: serving.lists() >= before + rounds, goal="two rounds of the HPA controller")


@dataclass(frozen=True)
class ProcessCounts:
    """Counters of a serving process. Connections are not kept: the process is killed now and then."""

    process: ServingProcess
    _client: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=PATIENCE, headers={"Connection": "close"})
    )

    def close(self) -> None:
        self._client.close()

    def lists(self) -> int:
        """Number of requests for external metrics."""
        lines = self._text("/metrics").splitlines()
        counted = [line for line in lines if "requests_total{" in line and 'handler="metrics_api"' in line]
        return round(sum(float(line.rsplit(" ", 1)[1]) for line in counted))

    def answers(self) -> bool:
        """Whether it is up."""
        return "workloads" in self._text("/readyz")

    def serves(self, at: datetime) -> bool:
        """Whether the newest table is of that instant."""
        return at.isoformat().replace("+00:00", "Z") in self._text("/readyz")

    def _text(self, path: str) -> str:
        return self._client.get(f"http://{self.process.address}{path}").text
