"""Faults, a function each: a fault begins, lasts while its block does, and is mended."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from forecaster.app.serve import table_path
from tests.support import postgres
from tests.support.chaos.replica import limited
from tests.support.chaos.world import NAMES, OWNERS, hpa_of
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.exporters import NAMESPACE as SHOP
from tests.support.exporters import none_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.support.chaos.replica import Replica
    from tests.support.chaos.world import World

    Fault = Callable[[World, random.Random], AbstractContextManager[None]]

STEP = timedelta(minutes=10)
VALUE = re.compile(rb'(\[\d+(?:\.\d+)?,")([^"]+)("\])')
MALFORMED = (b"NaN", b"+Inf", b"-Inf", b"-5", b"", b"abc", b"1e", b"0x1p4")


def ended(which: Callable[[World], Replica], number: int) -> Fault:
    """The computing process of a replica; its serving process ends with it, and a kubelet starts it again."""

    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        which(world).kill(number)
        yield

    return fault


def serving_killed(which: Callable[[World], Replica]) -> Fault:
    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        pid = which(world).serving_pid
        if pid:
            os.kill(pid, signal.SIGKILL)
        yield

    return fault


def frozen(pid_of: Callable[[World], int | None]) -> Fault:
    """A process that the kernel does not run."""

    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        pid = pid_of(world)
        with suppress(ProcessLookupError, TypeError):
            os.kill(pid, signal.SIGSTOP)  # type: ignore[arg-type]
        try:
            yield
        finally:
            with suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGCONT)  # type: ignore[arg-type]

    return fault


@contextmanager
def disk_full(world: World, _luck: random.Random) -> Iterator[None]:
    """Leave no byte on the leader's disk."""
    ballast = world.leader.state / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        ballast.unlink(missing_ok=True)


@contextmanager
def nothing_written(world: World, _luck: random.Random) -> Iterator[None]:
    """Keep the leader from growing any file by a byte, and from writing a new one."""
    pid = world.leader.pid
    with suppress(ProcessLookupError):
        limited(pid, resource.RLIMIT_FSIZE, 0)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            limited(pid, resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)


def clock_wrong(by: timedelta) -> Fault:
    """Set the clock of the leader's machine wrong."""

    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        with marked(world.leader.faults / "clock", str(by.total_seconds())):
            yield

    return fault


@contextmanager
def no_names(world: World, _luck: random.Random) -> Iterator[None]:
    with ExitStack() as parts:
        for replica in world.replicas:
            parts.enter_context(marked(replica.faults / "dns", ""))
        yield


@contextmanager
def marked(file: Path, text: str) -> Iterator[None]:
    """A file with this text while the block lasts."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text, encoding="ascii")
    fresh.replace(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


@contextmanager
def certificate_expired(world: World, _luck: random.Random) -> Iterator[None]:
    world.issuer.issue("serving", *NAMES, until=datetime.now(UTC) - timedelta(hours=1))
    try:
        yield
    finally:
        world.issuer.issue("serving", *NAMES)


@contextmanager
def half_open(world: World, luck: random.Random) -> Iterator[None]:
    """Connections to the listener of every replica that say nothing, or the beginning of something."""
    with ExitStack() as parts:
        for replica in world.replicas:
            for _ in range(100):
                with suppress(OSError):
                    open_one = parts.enter_context(socket.create_connection(("127.0.0.1", replica.secure), 2.0))
                    open_one.send(luck.choice([b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HT"]))
        yield


def prometheus(begin: Callable[[World, random.Random], None]) -> Fault:
    """Make the proxy before Prometheus misbehave."""

    @contextmanager
    def fault(world: World, luck: random.Random) -> Iterator[None]:
        begin(world, luck)
        try:
            yield
        finally:
            world.proxy.mended()

    return fault


def away(world: World, _luck: random.Random) -> None:
    world.proxy.away = True


def halves(world: World, _luck: random.Random) -> None:
    world.proxy.halves = True


def slow(world: World, luck: random.Random) -> None:
    world.proxy.slow = luck.choice(["container_cpu_usage_seconds_total", "kube_pod_owner", "kube_"])


def cut_short(world: World, _luck: random.Random) -> None:
    world.proxy.spoils = lambda body: body[: len(body) // 2]


def malformed(world: World, luck: random.Random) -> None:
    """Spoil one sample in a hundred, and one of each answer at least."""

    def spoilt(body: bytes) -> bytes:
        places = list(VALUE.finditer(body))
        chosen = {luck.choice(places).start()} if places else set()
        chosen |= {place.start() for place in places if luck.random() < 0.01}
        return VALUE.sub(
            lambda match: match[1] + luck.choice(MALFORMED) + match[3] if match.start() in chosen else match[0], body
        )

    world.proxy.spoils = spoilt


@contextmanager
def prometheus_restarts(world: World, _luck: random.Random) -> Iterator[None]:
    world.prometheus.stop()
    try:
        yield
    finally:
        world.prometheus.start()


def renamed(metric: str) -> Fault:
    """By an upgrade of its exporter, which is then rolled back."""

    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        world.day.exporters.renamed = metric
        try:
            yield
        finally:
            world.day.exporters.renamed = ""

    return fault


@contextmanager
def state_away(world: World, _luck: random.Random) -> Iterator[None]:
    world.day.exporters.state_away = True
    try:
        yield
    finally:
        world.day.exporters.state_away = False


@contextmanager
def half_unseen(world: World, _luck: random.Random) -> Iterator[None]:
    world.day.exporters.unseen = lambda pod: sum(pod.encode()) % 2 == 0
    try:
        yield
    finally:
        world.day.exporters.unseen = none_of


@contextmanager
def written_late(world: World, _luck: random.Random) -> Iterator[None]:
    """An agent cannot write, and fills the gap when it can."""
    world.day.exporters.hold_back()
    try:
        yield
    finally:
        world.day.exporters.write_late()


def damaged_file(name: str, *, restart: bool) -> Fault:
    """Damage a file of the leader; with a restart it is read again."""

    @contextmanager
    def fault(world: World, luck: random.Random) -> Iterator[None]:
        leader = world.leader
        file = table_path(leader.state) if name == "table" else leader.state / name
        if restart:
            leader.kill()
        with suppress(OSError):
            content = file.read_bytes()
            place = luck.randrange(len(content) or 1)
            spoilt = (content[:place], content[:place] + luck.randbytes(200) + content[place + 200 :], b"")
            file.write_bytes(luck.choice(spoilt))
        yield

    return fault


@contextmanager
def ledger_damaged(world: World, luck: random.Random) -> Iterator[None]:
    """The SQLite file of the second replica, in which another program has written."""
    second = world.replicas[1]
    second.kill()
    with suppress(OSError):
        file = second.state / "ledger.sqlite"
        content = file.read_bytes()
        file.write_bytes(luck.randbytes(100) + content[100:])
    yield


@contextmanager
def database_restarts(world: World, _luck: random.Random) -> Iterator[None]:
    place, owner = postgres.binaries(), postgres.user()
    assert place
    assert owner
    postgres.restart(place, owner, world.database)
    yield


@contextmanager
def database_hangs(world: World, _luck: random.Random) -> Iterator[None]:
    pids = postgres.processes(world.database)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def no_memory(world: World, _luck: random.Random) -> Iterator[None]:
    """The leader's computing process gets not a page more than it has."""
    leader = world.leader
    leader.expected = True
    pid = leader.pid
    pages = int((Path("/proc") / str(pid) / "statm").read_text().split()[0])
    with suppress(ProcessLookupError):
        limited(pid, resource.RLIMIT_AS, pages * resource.getpagesize())
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            limited(pid, resource.RLIMIT_AS, resource.RLIM_INFINITY)


def demand(share: float) -> Fault:
    """Change the demand of all workloads from one moment to the next."""

    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        world.share.now = share
        try:
            yield
        finally:
            world.share.now = 1.0

    return fault


@contextmanager
def outage_and_return(world: World, _luck: random.Random) -> Iterator[None]:
    """Stop all traffic, then let it return threefold."""
    world.share.now = 0.001
    try:
        yield
    finally:
        world.share.now = 3.0
        until = world.clock() + timedelta(minutes=1)
        wait_until(lambda: world.clock() > until, goal="a played minute")
        world.share.now = 1.0


def program_restarts(name: str) -> Fault:
    @contextmanager
    def fault(world: World, _luck: random.Random) -> Iterator[None]:
        world.plane.programs.stop(name)
        try:
            yield
        finally:
            world.plane.programs.start_again(name)
            wait_until(world.plane._answers, goal="the API server")  # noqa: SLF001

    return fault


@contextmanager
def workload_recreated(world: World, luck: random.Random) -> Iterator[None]:
    name = luck.choice(list(OWNERS))
    count = replicas(world.api, name, SHOP).desired
    world.api.delete("Deployment", name, SHOP)
    wait_until(lambda: not world.api.has("Deployment", name, SHOP), goal="the end of a Deployment")
    try:
        yield
    finally:
        world.api.create(deployment(name, count), SHOP)


@contextmanager
def hpa_recreated(world: World, luck: random.Random) -> Iterator[None]:
    name = luck.choice(list(OWNERS))
    world.api.delete("HorizontalPodAutoscaler", name, SHOP)
    try:
        yield
    finally:
        world.api.put(hpa_of(name), SHOP)


@contextmanager
def lease_recreated(world: World, _luck: random.Random) -> Iterator[None]:
    world.api.delete("Lease", "forecaster", NAMESPACE)
    try:
        yield
    finally:
        empty = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "forecaster"}}
        world.api.put({**empty, "spec": {}}, NAMESPACE)


@contextmanager
def rights_taken(world: World, _luck: random.Random) -> Iterator[None]:
    name = "forecaster-floor"
    binding = world.api.read("ClusterRoleBinding", name, "")
    world.api.delete("ClusterRoleBinding", name, "")
    try:
        yield
    finally:
        restored = {key: binding[key] for key in ("apiVersion", "kind", "roleRef", "subjects")}
        world.api.put({**restored, "metadata": {"name": name}})


@contextmanager
def token_refused(world: World, _luck: random.Random) -> Iterator[None]:
    """The leader's credential is not known to the API server any more."""
    file = world.leader.folder / "kubeconfig"
    good = file.read_text()
    file.write_text(re.sub(r'"token": "[^"]+"', '"token": "revoked"', good))
    try:
        yield
    finally:
        file.write_text(good)


@contextmanager
def paused(world: World, _luck: random.Random) -> Iterator[None]:
    def annotate(value: str | None) -> None:
        world.api.merge(
            "Lease", "forecaster", {"metadata": {"annotations": {"forecaster.dev/pause": value}}}, NAMESPACE
        )

    annotate("true")
    try:
        yield
    finally:
        annotate(None)


def leader_of(world: World) -> Replica:
    return world.leader


def follower_of(world: World) -> Replica:
    return world.follower


DANGEROUS: dict[str, Fault] = {
    "leader killed": ended(leader_of, signal.SIGKILL),
    "leader stopped by SIGSTOP": frozen(lambda world: world.leader.pid),
    "disk full": disk_full,
    "clock +10 min": clock_wrong(STEP),
    "clock -10 min": clock_wrong(-STEP),
    "half of each answer missing": prometheus(halves),
    "table damaged": damaged_file("table", restart=False),
    "state damaged, restart": damaged_file("observed.json", restart=True),
    "API server restarts": program_restarts("kube-apiserver"),
    "demand 100 times as high": demand(100.0),
    "half of the pods unseen": half_unseen,
    "1 % of samples malformed": prometheus(malformed),
    "database restarts": database_restarts,
    "traffic outage and return": outage_and_return,
    "HPA deleted and recreated": hpa_recreated,
}
OTHERS: dict[str, Fault] = {
    "leader ends by SIGTERM": ended(leader_of, signal.SIGTERM),
    "follower killed": ended(follower_of, signal.SIGKILL),
    "follower stopped by SIGSTOP": frozen(lambda world: world.follower.pid),
    "serving process of the leader killed": serving_killed(leader_of),
    "serving process of the follower killed": serving_killed(follower_of),
    "serving process stopped by SIGSTOP": frozen(lambda world: world.leader.serving_pid),
    "no file may be written": nothing_written,
    "names of hosts not found": no_names,
    "serving certificate expired": certificate_expired,
    "half-open connections": half_open,
    "Prometheus away": prometheus(away),
    "Prometheus slow": prometheus(slow),
    "answers cut short": prometheus(cut_short),
    "Prometheus restarts": prometheus_restarts,
    "Prometheus stopped by SIGSTOP": frozen(lambda world: world.prometheus.pid),
    "CPU metric renamed": renamed("container_cpu_usage_seconds_total"),
    "owners' metric renamed": renamed("kube_pod_owner"),
    "kube-state-metrics away": state_away,
    "history written late": written_late,
    "snapshot damaged, restart": damaged_file("history.snapshot", restart=True),
    "ledger damaged, restart": ledger_damaged,
    "database hangs": database_hangs,
    "memory limit hit": no_memory,
    "etcd restarts": program_restarts("etcd"),
    "HPA controller restarts": program_restarts("kube-controller-manager"),
    "Deployment deleted and recreated": workload_recreated,
    "Lease deleted and recreated": lease_recreated,
    "rights taken away": rights_taken,
    "token refused": token_refused,
    "writes paused": paused,
}
WITHOUT_API = {"API server restarts", "etcd restarts"}
"""Faults that begin after the changes made through the API server, and end before these are undone."""
ON_DISKS = {"disk full"}
OF_DATABASE = {"database restarts", "database hangs"}
