"""Two processes of `forecaster run` on a real API server, by a clock that goes six times as fast; one is killed."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import dropwhile
from typing import TYPE_CHECKING, NamedTuple

import httpx
import numpy as np
import pytest

from forecaster.app.serve import table_path
from forecaster.config.settings import Settings
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.domain.window import DAY, MINUTE, last_multiple
from forecaster.kube.lease import VALID_SECONDS, WRITE_SECONDS
from forecaster.publish.reader import TableReader
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import Recording
from tests.support.builders import GIB, workload
from tests.support.control_plane.acting import apply_components
from tests.support.control_plane.audit import audited
from tests.support.control_plane.authority import Authority
from tests.support.control_plane.deployed import NAMESPACE, SERVICE
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.audit import AuditedWrite
    from tests.support.control_plane.plane import ControlPlane

SPEED = 6.0
"""Played seconds in a real one: a cycle takes ten seconds, a dead leader's last table is fresh for half a minute."""
SHOP = "shop"
VALUE = (
    f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{SHOP}/forecaster_demand"
    "?labelSelector=workload%3Dweb%2Ckind%3DDeployment%2Csignal%3Dcpu"
)
TAKING_OVER = VALID_SECONDS + 5.0


def demand(start: datetime, minutes: int) -> np.ndarray:  # type: ignore[type-arg]
    """Cores [minute]: on each day as many more from the fourth minute on, so that the day before tells it."""
    past = np.arange(minutes) % (DAY // MINUTE)
    return 2.0 + 0.25 * np.clip(past, 0, 60)


@contextmanager
def prometheus(now: datetime) -> Iterator[str]:
    """Four days before `now`, and an hour after it."""
    minutes = 4 * DAY // MINUTE + 60
    web = workload("web", replicas=2)
    cores = demand(now, minutes)[None]
    values = {
        CPU: cores,
        MEMORY: np.full((1, minutes), 2 * GIB),
        REQUESTS: np.full((1, minutes), np.nan),
        PODS: np.full((1, minutes), 2.0),
    }
    recording = Recording(now - 4 * DAY, (web,), values)
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(now)) as served:
        yield served.url


class Answer(NamedTuple):
    at: float
    text: str

    @property
    def good(self) -> bool:
        return '"value":"' in self.text


@dataclass
class Process:
    """One replica: its process, its answers, and the tables that it served."""

    name: str
    folder: Path
    port: int
    running: subprocess.Popen[bytes]
    answers: list[Answer] = field(default_factory=list)
    tables: dict[datetime, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Digests of the tables that it served, by evaluation time."""

    @property
    def log(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines() if line.startswith("{")]

    @property
    def served(self) -> list[Answer]:
        """Answers from the first number on: before it the pod would not be ready."""
        return list(dropwhile(lambda answer: not answer.good, self.answers))

    def logged(self, event: str) -> bool:
        return any(line["event"] == event for line in self.log)

    def kill(self) -> None:
        """Kill the process as a lost node does: the serving process ends with it."""
        self.running.send_signal(signal.SIGKILL)
        self.running.wait()

    def look(self) -> None:
        """Note the table that lies there now."""
        reader = TableReader(table_path(self.folder / "state"), lambda: datetime.now(UTC) + DAY)  # its clock is ahead
        try:
            content = table_path(self.folder / "state").read_bytes()
        except OSError:
            return
        reader.refresh()
        if reader.table and table_path(self.folder / "state").read_bytes() == content:
            self.tables[reader.table.meta.published_at].add(sha256(content).hexdigest())


@dataclass
class Watcher:
    """Asks every replica for a metric and looks at its table, four times a second."""

    processes: list[Process]
    token: str
    ca: Path
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        tls = ssl.create_default_context(cafile=str(self.ca))
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(verify=tls, headers=headers, timeout=5.0) as client:
            while not self.stopped.wait(0.25):
                for process in self.processes:
                    if process.running.poll() is None:
                        self._ask(client, process)

    def _ask(self, client: httpx.Client, process: Process) -> None:
        process.look()
        names, began = {"sni_hostname": f"{SERVICE}.{NAMESPACE}.svc"}, time.monotonic()
        try:
            answer = client.get(f"https://127.0.0.1:{process.port}{VALUE}", extensions=names)
        except httpx.TransportError as error:
            if process.running.poll() is None:
                process.answers.append(Answer(began, str(error)))
        else:
            process.answers.append(Answer(began, answer.text))


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane with `deploy/base` and the components, and a shop that is empty again afterwards."""
    apply_components(control_plane, tmp_path_factory.mktemp("replicas"), "floor", "replicas")
    api = control_plane.api
    if not api.has("Namespace", SHOP):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        wait_until(lambda: api.has("ServiceAccount", "default", SHOP), goal="the shop")
    api.put(deployment("web", 2), SHOP)
    api.put(external_hpa("web", target="1", most=12), SHOP)
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
    yield control_plane
    control_plane.kubectl("delete", "hpa,deployment", "web", f"--namespace={SHOP}")


@contextmanager
def processes(plane: ControlPlane, folder: Path, url: str, began: float) -> Iterator[tuple[list[Process], Authority]]:
    issuer = Authority(folder, "serving-ca")
    certificate = issuer.issue("serving", f"{SERVICE}.{NAMESPACE}.svc", "127.0.0.1")
    started: list[Process] = []
    try:
        for name in ("one", "two"):
            account = plane.account("forecaster", NAMESPACE)
            own = account.rename(folder / f"{name}.kubeconfig")
            (port,) = free_ports(1)
            (folder / name).mkdir()
            settings = {
                "prometheus": {"url": url, "retries": 0},
                "kubernetes": {"kubeconfig": str(own)},
                "forecast": {"model": "seasonal-naive-day"},
                "state": {"directory": str(folder / name / "state")},
                "acting": {"kubeconfig": str(own)},
                "floor": {"enabled": True, "expires_after": "5m"},
                "replicas": {"enabled": True, "host": "127.0.0.1", "ca_file": str(issuer.certificate)},
                "serving": {
                    "host": "127.0.0.1",
                    "port": 0,
                    "secure": {
                        "enabled": True,
                        "host": "127.0.0.1",
                        "port": port,
                        "certificate_file": str(certificate.certificate),
                        "key_file": str(certificate.key),
                        "kubeconfig": str(own),
                        "service": f"{NAMESPACE}/{SERVICE}",
                    },
                },
                "policy": {"mode": "floor", "horizontal": {"gate": False, "lead_time": "3m"}},
            }
            (folder / f"{name}.yaml").write_text(json.dumps(settings))
            command = [sys.executable, "-m", "tests.support.replica_process", str(began), str(SPEED)]
            with (folder / name / "log").open("wb") as log:
                running = subprocess.Popen([*command, str(folder / f"{name}.yaml")], stderr=log, stdout=log)
            started.append(Process(name, folder / name, port, running))
            wait_until(lambda: started[-1].logged("leads") or started[-1] is not started[0], goal="the first leader")
        yield started, issuer
    finally:
        for process in started:
            process.running.terminate()
        for process in started:
            process.running.wait(PATIENCE)


def test_a_leader_is_killed_and_the_other_takes_over_with_its_numbers_and_without_a_second_write(
    plane: ControlPlane, tmp_path: Path
) -> None:
    now = last_multiple(datetime.now(UTC), MINUTE)
    with ExitStack() as parts:
        url = parts.enter_context(prometheus(now))
        pair, issuer = parts.enter_context(processes(plane, tmp_path, url, now.timestamp()))
        first, second = pair
        token = plane.token("horizontal-pod-autoscaler", "kube-system")
        watcher = Watcher(pair, token, issuer.certificate)
        asking = threading.Thread(target=watcher.run)
        wait_until(lambda: second.logged("started"), goal="the second replica")
        asking.start()
        parts.callback(asking.join)
        parts.callback(watcher.stopped.set)
        wait_until(lambda: len(second.tables) >= 4, goal="four tables", timeout=90.0)
        wait_until(lambda: bool(floors(plane)), goal="a floor", timeout=60.0)
        killed, dead = datetime.now(UTC), time.monotonic()
        first.kill()
        wait_until(lambda: second.logged("leads"), goal="the next leader")
        took = (datetime.now(UTC) - killed).total_seconds()
        last = max(first.tables)
        wait_until(lambda: max(second.tables) > last + MINUTE, goal="tables of the next leader")
        wait_until(lambda: floors(plane)[-1].at > killed, goal="a write of the next leader", timeout=90.0)
    print(f"from the kill to the next leader: {took:.1f} s; tables {len(first.tables)} and {len(second.tables)}")  # noqa: T201
    assert took < TAKING_OVER
    before = [answer for answer in first.served if answer.at < dead]
    assert [answer for answer in [*before, *second.served] if not answer.good] == []
    both = first.tables.keys() & second.tables.keys()
    assert len(both) >= 3
    assert all(first.tables[at] == second.tables[at] and len(first.tables[at]) == 1 for at in both)
    assert_written_once(plane, killed)


def floors(plane: ControlPlane) -> list[AuditedWrite]:
    """Writes to HPAs that were carried out."""
    return [write for write in audited(plane.folder, "horizontalpodautoscalers", SHOP) if write.status == 200]


def assert_written_once(plane: ControlPlane, killed: datetime) -> None:
    """Each write is of another version, and each is of the replica whose Lease it was."""
    written = floors(plane)
    assert len({write.version for write in written}) == len(written)
    renewals = [renewal for renewal in audited(plane.folder, "leases", NAMESPACE) if renewal.status == 200]
    for write in written:
        held = max((each for each in renewals if each.at <= write.at), key=lambda each: each.at)
        assert write.credential == held.credential
        assert write.at - held.at < timedelta(seconds=WRITE_SECONDS + 1)
    print("floors:", [(write.credential[-4:], write.min_replicas, write.at > killed) for write in written])  # noqa: T201
    assert len({write.credential for write in written}) == 2
