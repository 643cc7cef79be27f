"""Requests to an API server: `python -m benchmarks.api_load [--workloads N] [--pods P] [--minutes M]`.

N Deployments of P pods with an HPA each on a real API server, without controllers: nothing happens by itself; they are
put into its etcd, as it would have stored them. One cycle raises all of them, and its writes are timed. Then
`forecaster run` itself goes on with the floors that are up, with a Prometheus that does not answer, and the requests
of its account are counted in the audit log of the API server.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx

from benchmarks.procfs import rss_mib
from benchmarks.record import record
from forecaster.domain.workload import WorkloadId
from tests.support.control_plane.acting import ActingReplica, apply_components
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.report import Effected
    from tests.support.control_plane.api import Document

FLEET = "fleet"
AT_ONCE = 100
"""Objects of one transaction; etcd takes no more than 128."""
BEGAN = "2026-11-01T00:00:00Z"
WARM_UP = 90.0
"""Seconds in which the service starts, lists everything and takes the Lease."""
CONTROLLERS = ("kwok", "kube-scheduler", "kube-controller-manager")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=10, help="of each workload")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), services="127.122") as plane:
        apply_components(plane, Path(folder), "floor", "resources")
        plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
        for name in CONTROLLERS:
            plane.programs.stop(name)
        fill(plane, options.workloads, options.pods)
        rows = [*one_round(plane, options.workloads, options.pods), "", *steady(plane, Path(folder), options.minutes)]
    text = "\n".join(rows)
    print(text)
    if options.record:
        sizes = f"--workloads {options.workloads} --pods {options.pods} --minutes {options.minutes:g}"
        print(record("api-load", "What is asked of the API server", f"python -m benchmarks.api_load {sizes}", text))


def fill(plane: ControlPlane, count: int, pods: int) -> None:
    """Deployments with their ReplicaSet and pods, each with an HPA that has seen them."""
    plane.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FLEET}})
    store = f"http://127.0.0.1:{plane._ports.etcd}/v3/kv/txn"  # noqa: SLF001  the API server would take minutes
    puts = ({"requestPut": stored(*item)} for number in range(count) for item in objects_of(f"web-{number}", pods))
    with httpx.Client() as client:
        for batch in batched(puts, AT_ONCE):
            client.post(store, json={"success": batch}, timeout=60.0).raise_for_status()
    for path, expected in (("/api/v1/pods", count * pods), ("/apis/apps/v1/deployments", count)):
        wait_until(lambda path=path, expected=expected: object_count(plane, path) >= expected, goal=path, timeout=300.0)  # type: ignore[misc]


def object_count(plane: ControlPlane, path: str) -> int:
    """Number of objects that the API server knows."""
    remaining: int = plane.api.get(f"{path}?limit=1")["metadata"].get("remainingItemCount", 0)
    return remaining + 1


def batched(puts: Iterator[Document], size: int) -> Iterator[list[Document]]:
    while batch := list(islice(puts, size)):
        yield batch


def stored(resource: str, document: Document) -> Document:
    """One object as etcd keeps it."""
    name = document["metadata"]["name"]
    key, value = f"/registry/{resource}/{FLEET}/{name}", json.dumps(document)
    return {"key": b64encode(key.encode()).decode(), "value": b64encode(value.encode()).decode()}


def objects_of(name: str, pods: int) -> Iterator[tuple[str, Document]]:
    """A workload and all that belongs to it, by resource."""
    made = owned(deployment(name, pods), "apps/v1", None)
    made["status"] = {"replicas": pods, "readyReplicas": pods}
    above = owned({"kind": "ReplicaSet", "metadata": {"name": f"{name}-7d4f"}, "spec": made["spec"]}, "apps/v1", made)
    hpa = owned(external_hpa(name, target="1"), "autoscaling/v2", None)
    hpa["status"] = {"currentReplicas": pods, "desiredReplicas": pods}
    yield "deployments", made
    yield "replicasets", above
    yield "horizontalpodautoscalers", hpa
    for number in range(pods):
        template = made["spec"]["template"]
        pod = {"kind": "Pod", "metadata": {"name": f"{name}-7d4f-{number}", "labels": template["metadata"]["labels"]}}
        pod["spec"] = {**template["spec"], "nodeName": f"node-{number}"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEGAN}
        pod["status"] = {"phase": "Running", "conditions": [{**ready, "type": "PodScheduled"}, ready]}
        yield "pods", owned(pod, "v1", above)


def owned(document: Document, version: str, owner: Document | None) -> Document:
    """Return the document with the fields that the API server would have added."""
    meta = {**document["metadata"], "namespace": FLEET, "uid": str(uuid4()), "creationTimestamp": BEGAN}
    if owner:
        above = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        meta["ownerReferences"] = [{**above, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]
    return {**document, "apiVersion": version, "metadata": meta}


def one_round(plane: ControlPlane, count: int, pods: int) -> Iterator[str]:
    """Run two cycles in which every workload needs two more pods."""
    ids = [WorkloadId(FLEET, "Deployment", f"web-{number}") for number in range(count)]
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, {"floor": {"enabled": True}, "policy": {"mode": "floor"}})
        replica.until_leading()
        yield "| cycle in which all ask for more | HPAs raised | failures | seconds of its effects |"
        yield "| --- | ---: | ---: | ---: |"
        for cycle in (1, 2):
            replica.publish_counts(dict.fromkeys(ids, pods + 2), now := datetime.now(UTC))
            began = time.monotonic()
            effected: Effected = replica.actuators.act(now)["floor"]
            took = time.monotonic() - began
            raised = effected.writes["raise", "written"]
            yield f"| {cycle}, of {count:,} | {raised:,} | {len(effected.failures)} | {took:.1f} |"


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
            wait_until(lambda: b'"event": "live_facts"' in (folder / "log").read_bytes(), goal="live facts")
            time.sleep(WARM_UP)
            since = datetime.now(UTC)
            time.sleep(minutes * 60)
            until, memory = datetime.now(UTC), rss_mib(process.pid)
        finally:
            process.terminate()
    requests = Counter(
        (event["verb"], event.get("objectRef", {}).get("resource") or event["requestURI"].partition("?")[0])
        for event in plane.audited("forecaster")
        if since <= datetime.fromisoformat(event["requestReceivedTimestamp"]) < until
    )
    yield "| in steady state | requests a minute |"
    yield "| --- | ---: |"
    for (verb, resource), count in requests.most_common():
        yield f"| {verb} {resource} | {count / minutes:.1f} |"
    yield f"| all | {requests.total() / minutes:.1f} |"
    yield f"\nOver {minutes:g} minutes; the process had {memory:.0f} MiB."


if __name__ == "__main__":
    main()
