"""What the service asks of an API server: `python -m benchmarks.api_load [--workloads N] [--minutes M] [--record]`.

N Deployments with an HPA each on a real API server, without controllers: nothing happens by itself. One cycle asks for
more on all of them, and its writes are timed. Then `forecaster run` itself goes on with the floors that are up, with a
Prometheus that does not answer, and what its account asks is counted in the audit log of the API server.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.procfs import rss_mib
from benchmarks.record import record
from forecaster.domain.workload import WorkloadId
from tests.support.control_plane.acting import ActingReplica, apply_components
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.report import Effected

FLEET = "fleet"
WRITERS = 8
WARM_UP = 90.0
"""Seconds in which the service starts, lists everything and takes the Lease."""
CONTROLLERS = ("kwok", "kube-scheduler", "kube-controller-manager")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), services="127.122") as plane:
        apply_components(plane, Path(folder), "floor", "resources")
        plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
        for name in CONTROLLERS:
            plane.programs.stop(name)
        fill(plane, options.workloads)
        rows = [*one_round(plane, options.workloads), "", *steady(plane, Path(folder), options.minutes)]
    text = "\n".join(rows)
    print(text)
    if options.record:
        sizes = f"--workloads {options.workloads} --minutes {options.minutes:g}"
        print(record("api-load", "What is asked of the API server", f"python -m benchmarks.api_load {sizes}", text))


def fill(plane: ControlPlane, count: int) -> None:
    """Deployments of one pod, each with an HPA that has seen it."""
    plane.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FLEET}})
    with ThreadPoolExecutor(WRITERS) as threads:
        for _ in threads.map(lambda number: make(plane, f"web-{number}"), range(count)):
            pass


def make(plane: ControlPlane, name: str) -> None:
    plane.api.create(deployment(name, 1), FLEET)
    plane.api.create(external_hpa(name, target="1"), FLEET)
    path = f"/apis/autoscaling/v2/namespaces/{FLEET}/horizontalpodautoscalers/{name}/status"
    status = {"status": {"currentReplicas": 1, "desiredReplicas": 1}}
    answer = plane.api.ask("PATCH", path, status, content_type="application/merge-patch+json")
    if not answer.is_success:
        raise RefusedError("PATCH", path, answer.status_code, answer.text)


def one_round(plane: ControlPlane, count: int) -> Iterator[str]:
    """Two cycles in which every workload asks for three pods."""
    ids = [WorkloadId(FLEET, "Deployment", f"web-{number}") for number in range(count)]
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, {"floor": {"enabled": True}, "policy": {"mode": "floor"}})
        replica.until_leading()
        yield "| cycle in which all ask for more | HPAs raised | failures | seconds of its effects |"
        yield "| --- | ---: | ---: | ---: |"
        for cycle in (1, 2):
            replica.publish_counts(dict.fromkeys(ids, 3), now := datetime.now(UTC))
            began = time.monotonic()
            found: Effected = replica.actuators.act(now)["floor"]
            took = time.monotonic() - began
            raised = found.writes["raise", "written"]
            yield f"| {cycle}, of {count:,} | {raised:,} | {len(found.failures)} | {took:.1f} |"


def steady(plane: ControlPlane, folder: Path, minutes: float) -> Iterator[str]:
    """Requests a minute of `forecaster run`."""
    rights = {"kubeconfig": str(plane.account("forecaster", NAMESPACE))}
    settings = {
        "acting": rights,
        "kubernetes": rights,
        "floor": {"enabled": True},
        "resources": {"enabled": True},
        "policy": {"mode": "floor"},
        "prometheus": {"url": "http://127.0.0.1:9", "retries": 0},
        "serving": {"enabled": False},
        "state": {"directory": str(folder / "state")},
    }
    (folder / "settings.yaml").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "forecaster", "run", "--config", str(folder / "settings.yaml")]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        try:
            wait_until(lambda: b'"event": "live_facts"' in (folder / "log").read_bytes(), what="live facts")
            time.sleep(WARM_UP)
            since = datetime.now(UTC)
            time.sleep(minutes * 60)
            until, memory = datetime.now(UTC), rss_mib(process.pid)
        finally:
            process.terminate()
    asked = Counter(
        (one["verb"], one["objectRef"]["resource"] if "objectRef" in one else one["requestURI"].partition("?")[0])
        for one in plane.audited("forecaster")
        if since <= datetime.fromisoformat(one["requestReceivedTimestamp"]) < until
    )
    yield "| in steady state | requests a minute |"
    yield "| --- | ---: |"
    for (verb, resource), count in asked.most_common():
        yield f"| {verb} {resource} | {count / minutes:.1f} |"
    yield f"| all | {asked.total() / minutes:.1f} |"
    yield f"\nOver {minutes:g} minutes; the process had {memory:.0f} MiB."


if __name__ == "__main__":
    main()
