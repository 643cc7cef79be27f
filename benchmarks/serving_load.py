"""The metrics API under load: `python -m benchmarks.serving_load [--workloads N] [--seconds S] [--cluster]`.

Mutual TLS, every right reviewed, 64 kept connections, each request for another workload: at 1,000 requests a second and
as many as go, alone and while models are fitted in another process. A server that answers a constant, written in Go,
is measured in the same way in the same run: its times are those of the machine and the client. For each window the
worst stall is attributed: to the client, or to the server, at work or in line for a core. With `--cluster` both
answer through a real API server, too. Needs Go for the client (benchmarks/load).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.procfs import cpu_seconds, peak_mib, rss_mib
from benchmarks.serving import recommendation
from tests.support.cluster_serving import ClusterServing
from tests.support.control_plane.plane import ControlPlane
from tests.support.published import publisher
from tests.support.secure_serving import HPA, SecureServing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.control_plane.authority import KeyPair

SOURCE = Path(__file__).parent / "load"
BASE = "/apis/external.metrics.k8s.io/v1beta1/namespaces"
PACE = 1000
HPAS_PACE = 667
"""Requests a second of 10,000 HPAs that look every 15 s."""
THROUGH = 24
"""Requests at a time through the API server. It keeps 25 idle connections to a server of HTTP/1.1 and opens and closes
the rest for each request; the HPA controller has 5 at a time."""
ANSWER = json.dumps(
    {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "forecaster_demand",
                "metricLabels": {"namespace": "namespace-1", "kind": "Deployment", "workload": "workload-1"},
                "timestamp": "2026-01-01T00:00:00Z",
                "value": "2750m",
            }
        ],
    }
)


class Load(NamedTuple):
    """The client: which program, where to ask, as whom."""

    program: Path
    folder: Path
    ca: Path
    identity: KeyPair
    user: str = ""
    connections: int = 64
    post: Path | None = None
    """A file that is posted, in place of a GET."""

    def ask(self, server: str, targets: list[str], *, rate: float, seconds: float, pid: int | None) -> dict[str, Any]:
        urls = self.folder / f"urls-{threading.get_ident()}"
        urls.write_text("\n".join(server + target for target in targets))
        command = [self.program, "ask", "-urls", urls, "-ca", self.ca]
        command += ["-cert", self.identity.certificate, "-key", self.identity.key]
        command += ["-rate", str(rate), "-seconds", str(seconds), "-user", self.user]
        command += ["-connections", str(self.connections), "-server", str(pid or 0)]
        command += ["-post", self.post] if self.post else []
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cluster", action="store_true", help="through a real API server as well")
    parser.add_argument(
        "--fit", action="store_true", help="fit models for ever (what the benchmark starts beside itself)"
    )
    options = parser.parse_args()
    if options.fit:
        fit_for_ever()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = built(folder)
        now = datetime.now(UTC)
        publisher(folder / "table").publish(now, [recommendation(i) for i in range(options.workloads)])
        measure_direct(program, folder, options.workloads, options.seconds)
        if options.cluster:
            measure_through(program, folder, options.workloads, options.seconds)


def measure_direct(program: Path, folder: Path, workloads: int, seconds: float) -> None:
    targets = targets_of(workloads)
    with SecureServing(folder, folder / "table") as serving:
        load = Load(program, folder, serving.issuer.certificate, serving.proxy, HPA["X-Remote-User"])
        forecaster = f"https://localhost:{serving.port}"
        ca = serving.reviews.front_proxy.certificate
        pid = serving.process.pid
        assert pid is not None
        with constant(program, serving.certificate, ca) as constant_server:
            tell("constant server, alone", load, constant_server, targets, PACE, seconds)
            tell("constant server, alone", load, constant_server, targets, 0, seconds)
            tell("ours, first minute", load, forecaster, targets, PACE, seconds, pid)
            tell("ours, alone", load, forecaster, targets, PACE, seconds, pid)
            tell("ours, alone", load, forecaster, targets, 0, seconds, pid)
            with fitting():
                tell("constant server beside a fit", load, constant_server, targets, PACE, seconds)
                tell("ours beside a fit", load, forecaster, targets, PACE, seconds, pid)
        print(f"ours: RSS {rss_mib(pid):.0f} MiB, at its peak {peak_mib(pid):.0f} MiB")


def measure_through(program: Path, folder: Path, workloads: int, seconds: float) -> None:
    (folder / "plane").mkdir()
    (folder / "behind").mkdir()
    with (
        ControlPlane(folder / "plane") as plane,
        ClusterServing(plane, folder / "behind", stale_after=3600.0) as serving,
    ):
        serving.publish(*[recommendation(i) for i in range(workloads)])
        admin = plane.authority.issue("load", common_name="load", organization="system:masters")
        load = Load(program, folder, plane.authority.certificate, admin, connections=THROUGH)
        targets = targets_of(workloads)
        for rate in (HPAS_PACE, 0):
            tell("ours through the API server", load, plane.server, targets, rate, seconds, serving.process.pid)
        with constant(program, serving.renew(), plane.front_proxy.certificate) as constant_server:
            plane.aggregate(int(constant_server.rsplit(":", 1)[1]), serving.issuer.bundle)
            plane.until_available()
            for rate in (HPAS_PACE, 0):
                tell("constant server through the API server", load, plane.server, targets, rate, seconds)


def tell(
    title: str, load: Load, server: str, targets: list[str], rate: float, seconds: float, pid: int | None = None
) -> None:
    before = cpu_seconds(pid) if pid else 0.0
    figures = load.ask(server, targets, rate=rate, seconds=seconds, pid=pid)
    each = f", {(cpu_seconds(pid) - before) / figures['requests'] * 1e6:.0f} µs of CPU each" if pid else ""
    pace = f"at {rate}/s" if rate else f"at most {figures['requests'] / figures['seconds']:.0f}/s"
    millis = figures["millis"]
    waits = f"p50 {millis['p50']:.1f}, p99 {millis['p99']:.1f}, p99.9 {millis['p999']:.1f} ms"
    print(f"{title}: {pace}, {waits}, {figures['errors']} errors{each} {figures['first_error']}".rstrip())
    print(f"    the worst {hiccup(figures['worst'], known=pid is not None)}", flush=True)


def hiccup(worst: dict[str, Any], *, known: bool) -> str:
    """Attribution of the worst stall of a window, as far as it was looked at."""
    late = f"{worst['millis']:.1f} ms, in which the client woke up {worst['client_late']:.1f} ms late"
    if not known:
        return late
    server = f"the server ran {worst['server_ran']:.1f} ms and stood in line for {worst['server_queued']:.1f} ms"
    return f"{late}, {server}: {worst['whose']}"


def targets_of(workloads: int) -> list[str]:
    numbers = list(range(workloads))
    random.Random(1).shuffle(numbers)  # noqa: S311  an order, no secret
    selector = "labelSelector=workload%3Dworkload-{}%2Csignal%3Dcpu"
    return [f"{BASE}/namespace-{i % 100}/forecaster_demand?{selector.format(i)}" for i in numbers]


def built(folder: Path) -> Path:
    program = folder / "load-program"
    subprocess.run(["go", "build", "-o", program, "."], cwd=SOURCE, check=True)
    return program


@contextmanager
def constant(program: Path, identity: KeyPair, client_ca: Path) -> Iterator[str]:
    command = [program, "serve", "-body", ANSWER, "-cert", identity.certificate, "-key", identity.key]
    command += ["-client-ca", client_ca]
    with subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield f"https://localhost:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()


@contextmanager
def fitting() -> Iterator[None]:
    """Another process that fits models without a pause, as urgent as a cycle of the service."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks.serving_load", "--fit"], stdout=subprocess.PIPE) as fit:
        assert fit.stdout is not None
        fit.stdout.readline()
        try:
            yield
        finally:
            fit.kill()


def fit_for_ever() -> None:
    import numpy as np  # noqa: PLC0415  the benchmark itself needs none of this
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    import models  # noqa: PLC0415
    from forecaster.app.service import give_way  # noqa: PLC0415

    give_way()
    values = np.random.default_rng(1).random((200, 2016))
    week_ago = datetime(2026, 1, 1, tzinfo=UTC)
    panel = models.Panel(values, week_ago, timedelta(minutes=5), tuple(map(str, range(len(values)))))
    print("fitting", flush=True)
    with threadpool_limits(1):
        while True:
            models.create("adaptive").fit(panel)


if __name__ == "__main__":
    main()
