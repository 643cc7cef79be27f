"""The installed product on a played day: Prometheus, a control plane with the HPA controller, PostgreSQL, two replicas.

Played time goes `SPEED` times as fast as the machine's, and lies in its past. Everything is a process of its own. The
state of each replica lies on a small disk of its own where this user may mount one.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import httpx
import numpy as np

from forecaster.domain.window import MINUTE, last_multiple
from forecaster.serving.options import Address
from tests.support import postgres
from tests.support.chaos.replica import Replica
from tests.support.control_plane.acting import apply_components
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.authority import Authority
from tests.support.control_plane.deployed import NAMESPACE, SERVICE
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.exporters import NAMESPACE as SHOP
from tests.support.exporters import SCRAPE, Exporters
from tests.support.faulty_proxy import FaultyProxy
from tests.support.front import Front
from tests.support.played_day import BEFORE, MOST, TARGET, Played, PlayedDay, shares
from tests.support.ports import free_ports
from tests.support.prometheus import RealPrometheus, fill
from tests.support.replica_process import FastClock
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.plane import ControlPlane
    from tests.support.exporters import ScrapedWorkload
    from tests.support.prometheus import Binaries

SPEED = 10.0
"""A cycle in six seconds."""
AGO = timedelta(hours=8)
DISK = "24m"
NAMES = (f"{SERVICE}.{NAMESPACE}.svc", "aggregated-external.default.svc", "127.0.0.1")
"""Names of the serving certificate: of the Service, of the way there in a test, and of a replica."""
OWNERS = {"web": 2, "checkout": 3, "cart": 1}
"""Value of minReplicas that the owner of each HPA states."""


@dataclass
class Share:
    """Share of the demand of all workloads, as a fault changes it; demand before the played day stays."""

    now: float = 1.0

    def wave(self, start: datetime, cores: float, swing: float) -> Callable[[datetime], float]:
        """Demand of so many cores, and up to a swing more and less in two hours."""

        def demand(at: datetime) -> float:
            share = self.now if at > start else 1.0
            return share * (cores - swing * math.cos((at - start) / timedelta(hours=2) * 2 * math.pi))

        return demand


class Place(NamedTuple):
    """Address of a replica and of its cluster, in the shape that `EveryWay` and `PlayedDay` take."""

    cluster: ControlPlane
    table: Path
    address: Address


@dataclass
class World:
    """Cluster, Prometheus and both replicas, running."""

    plane: ControlPlane
    prometheus: RealPrometheus
    proxy: FaultyProxy
    day: PlayedDay
    clock: FastClock
    replicas: list[Replica]
    issuer: Authority
    database: str
    """Address of PostgreSQL; empty where there is none."""
    disks: bool
    """Whether each replica has a disk of its own."""
    share: Share
    owned: dict[str, Document] = field(default_factory=dict)
    """Fields of each HPA that belong to its owner."""
    scraped: list[ScrapedWorkload] = field(default_factory=list)
    lost_scrapes: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def api(self) -> Api:
        return self.plane.api

    @property
    def leader(self) -> Replica:
        """Replica that the Lease names; the first one while the Lease cannot be read."""
        with suppress(httpx.TransportError, RefusedError, KeyError, ValueError):
            annotations = self.api.read("Lease", "forecaster", NAMESPACE)["metadata"]["annotations"]
            port = int(annotations["forecaster.dev/leader-address"].rpartition(":")[2])
            return next(replica for replica in self.replicas if replica.secure == port)
        return self.replicas[0]

    @property
    def follower(self) -> Replica:
        leader = self.leader
        return next(replica for replica in self.replicas if replica is not leader)

    def scrape_for_ever(self) -> None:
        """Every half minute of the played day; one that comes late is caught up."""
        while not self.stopped.wait(0.2):
            while self.day.at + SCRAPE <= self.clock() and not self.stopped.is_set():
                self.day.at += SCRAPE
                self._scrape()

    def look_for_ever(self) -> None:
        """Look three times a second, as kubelets do; take footprints every few seconds."""
        looks = 0
        while not self.stopped.wait(0.33):
            looks += 1
            for replica in self.replicas:
                replica.look(len(OWNERS))
                if looks % 12 == 0:
                    replica.measure()

    def _scrape(self) -> None:
        with suppress(httpx.TransportError, RefusedError, KeyError):
            self.scraped = self.day.cluster()
        try:
            self.day.exporters.scrape(self.scraped, self.day.at)
        except httpx.HTTPError:
            self.lost_scrapes += 1


def hpas(api: Api) -> dict[str, Document]:
    """Fields of each HPA that belong to its owner."""
    documents = {}
    for name in OWNERS:
        document = api.read("HorizontalPodAutoscaler", name, SHOP)
        meta = document["metadata"]
        documents[name] = {
            "spec": document["spec"],
            "labels": meta.get("labels"),
            "annotations": meta.get("annotations"),
        }
    return documents


def hpa_of(name: str) -> Document:
    """HPA as its owner applies it."""
    manifest = external_hpa(name, target=f"{TARGET * 1000:.0f}m", most=MOST)
    manifest["spec"]["minReplicas"] = OWNERS[name]
    return manifest


@dataclass
class Stage:
    """Parts that a world is built of."""

    plane: ControlPlane
    folder: Path
    parts: ExitStack
    real: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def start(self) -> datetime:
        """Start of the played day."""
        return last_multiple(self.real - AGO, MINUTE)

    @property
    def clock(self) -> FastClock:
        """Clock that shows `start` now."""
        return FastClock(self.real.timestamp() + (self.real - self.start).total_seconds() / (SPEED - 1.0), SPEED)


@contextmanager
def world(plane: ControlPlane, binaries: Binaries, folder: Path) -> Iterator[World]:
    """Before the first fault: both replicas run, one leads, and the HPA controller reads it."""
    with ExitStack() as parts:
        apply_components(plane, _made(folder / "manifests"), "floor", "replicas")
        _shop(plane)
        stage, share = Stage(plane, folder, parts), Share()
        prometheus, proxy, day = _observed(stage, share, binaries)
        database, disks = parts.enter_context(_database()), _mountable(folder)
        issuer = Authority(folder / "issuer", "serving-ca")
        issuer.issue("serving", *NAMES)
        replicas_ = [_replica(stage, "one", proxy.url, database), _replica(stage, "two", proxy.url, "")]
        if disks:
            for replica in replicas_:
                _mount(replica, parts)
        front = parts.enter_context(
            Front(lambda: [replica.secure for replica in sorted(replicas_, key=lambda replica: not replica.ready)])
        )
        running = World(plane, prometheus, proxy, day, stage.clock, replicas_, issuer, database, disks, share)
        day.at = last_multiple(running.clock(), SCRAPE) - SCRAPE
        parts.enter_context(_threads(running))
        _start(running, front, parts)
        yield running


def _start(running: World, front: Front, parts: ExitStack) -> None:
    """Both replicas, and what reads them."""
    for replica in running.replicas:
        replica.start()
        parts.callback(replica.close)
    wait_until(lambda: any(replica.ready for replica in running.replicas), goal="a replica that is ready")
    running.plane.aggregate(front.port, running.issuer.bundle)
    running.plane.until_available()
    for name in OWNERS:
        running.api.put(hpa_of(name), SHOP)
    running.owned = hpas(running.api)
    wait_until(
        lambda: all(replica.ready and len(replica.tables) > 2 for replica in running.replicas), goal="both replicas"
    )


def _observed(stage: Stage, share: Share, binaries: Binaries) -> tuple[RealPrometheus, FaultyProxy, PlayedDay]:
    """Deployments, and a Prometheus with their history."""
    config, options = "storage: {tsdb: {out_of_order_time_window: 2h}}\n", ["--web.enable-remote-write-receiver"]
    data, start = stage.folder / "data", stage.start
    prometheus = RealPrometheus(binaries, data, options=options, config=config)
    exporters, proxy = Exporters(prometheus.url), FaultyProxy(prometheus.url)
    waves = {"web": (10, 3.0, 0.0), "checkout": (7, 3.5, 1.5), "cart": (10, 3.0, 0.5)}
    workloads = [Played(name, begins, share.wave(start, *wave)) for name, (begins, *wave) in waves.items()]
    place = Place(stage.plane, stage.folder / "nowhere", Address("", 0))
    day = PlayedDay(place, stage.clock, start, workloads, exporters, proxy, {})  # type: ignore[arg-type]
    stage.parts.callback(day.close)
    for workload in workloads:
        stage.plane.api.put(deployment(workload.name, workload.begins), SHOP)
    day.until_settled()
    times = start.timestamp() - np.arange(int(BEFORE / SCRAPE), -1, -1) * SCRAPE.total_seconds()
    fill(data, exporters.history(day.cluster(), times, shares(workloads, start, times)), binaries)
    stage.parts.enter_context(prometheus)
    stage.parts.enter_context(proxy)
    return prometheus, proxy, day


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _shop(plane: ControlPlane) -> None:
    if not plane.api.has("Namespace", SHOP):
        plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
    wait_until(lambda: plane.api.has("ServiceAccount", "default", SHOP), goal="the shop")
    plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")


@contextmanager
def _threads(running: World) -> Iterator[None]:
    threads = [threading.Thread(target=target) for target in (running.scrape_for_ever, running.look_for_ever)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        running.stopped.set()
        for thread in threads:
            thread.join()


@contextmanager
def _database() -> Iterator[str]:
    place, owner = postgres.binaries(), postgres.user()
    if place is None or owner is None:
        yield ""
        return
    with postgres.server(place, owner) as address:
        yield address


def _mountable(folder: Path) -> bool:
    probe = _made(folder / "probe")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "chaos", probe], check=False, stderr=-3).returncode:
        return False
    subprocess.run(["umount", probe], check=True)
    return True


def _mount(replica: Replica, parts: ExitStack) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "chaos", replica.state], check=True)
    parts.callback(subprocess.run, ["umount", "-l", replica.state], check=True)


def _replica(stage: Stage, name: str, url: str, database: str) -> Replica:
    plain, secure = free_ports(2)
    folder = _made(stage.folder / name)
    for part in ("state", "faults"):
        _made(folder / part)
    own = stage.plane.account("forecaster", NAMESPACE).rename(folder / "kubeconfig")
    issuer = stage.folder / "issuer"
    settings = {
        "prometheus": {"url": url, "retries": 0, "read_timeout_seconds": 3},
        "queries": {"requests_from": "none", "specifications_every": "0s"},
        "kubernetes": {"kubeconfig": str(own)},
        "forecast": {"model": "seasonal-naive-day"},
        "state": {"directory": str(folder / "state")} | ({"database": database} if database else {}),
        "acting": {"kubeconfig": str(own)},
        "floor": {"enabled": True, "expires_after": "15m"},
        "remote_write": {"url": f"{url}/api/v1/write", "timestamps": "evaluation"},
        "replicas": {"enabled": True, "host": "127.0.0.1", "ca_file": str(issuer / "serving-ca.crt")},
        "serving": {
            "host": "127.0.0.1",
            "port": plain,
            "workload_metrics": "all",
            "secure": {
                "enabled": True,
                "host": "127.0.0.1",
                "port": secure,
                "certificate_file": str(issuer / "serving.crt"),
                "key_file": str(issuer / "serving.key"),
                "kubeconfig": str(own),
                "service": f"{NAMESPACE}/{SERVICE}",
            },
        },
        "policy": {"mode": "floor", "horizontal": {"gate": False, "lead_time": "3m", "max_replicas": MOST}},
    }
    (folder / "settings.yaml").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "tests.support.replica_process", repr(stage.clock.began), str(SPEED)]
    return Replica(name, folder, plain, secure, [*command, str(folder / "settings.yaml")])
