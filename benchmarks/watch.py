"""Watches at full size: `python -m benchmarks.watch [--workloads N] [--pods N] [--record]`.

Deployments, HPAs, ReplicaSets and pods as an API server lists them, with managed fields and last-applied annotations,
page by page without a network: seconds of decoding and reducing, and the memory that stays. `record` writes the figures
to benchmarks/results; `cluster` measures a real API server, too.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from benchmarks.procfs import peak_mib, rss_mib
from benchmarks.record import record
from forecaster.kube.client import ApiClient
from forecaster.kube.collection import PAGE_ITEMS
from forecaster.kube.config import client_config_source
from forecaster.kube.connections import RawAnswer, RawRequest
from forecaster.publish.overlay import GONE, OverlayReader, OverlayWriter, PresentWorkload, overlay_path
from forecaster.publish.values import WorkloadOffer
from forecaster.resources.neighbours import HPAS
from forecaster.sources.live import LiveCluster
from forecaster.sources.live_objects import PODS_PATH, REPLICA_SETS
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment as plain_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.watch import Watch

DEPLOYMENTS = "/apis/apps/v1/deployments"
NAMESPACES = 100
SIZES = ("100m", "250m", "500m", "1", "2")
MANAGED = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": "2026-11-20T09:12:44Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:field{i}": {f"f:part{j}": {} for j in range(6)} for i in range(12)},
    }
    for manager in ("kubectl-client-side-apply", "kube-controller-manager")
]


class Listing:
    """An API server that lists and never streams; what it takes to write its pages is not measured."""

    def __init__(self, count: int, made: Callable[[int], dict[str, Any]]) -> None:
        self._count, self._made = count, made
        self.seconds = 0.0
        self.bytes = 0

    def exchange(self, request: RawRequest) -> RawAnswer:
        began = time.process_time()
        token = re.search(r"continue=(\d+)", request.target)
        first = int(token[1]) if token else 0
        last = min(first + PAGE_ITEMS, self._count)
        more = {"continue": str(last)} if last < self._count else {}
        page = {"metadata": {"resourceVersion": "1", **more}, "items": [self._made(i) for i in range(first, last)]}
        body = msgspec.json.encode(page)
        self.bytes += len(body)
        self.seconds += time.process_time() - began
        return RawAnswer(200, body, "application/json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--cluster", type=float, default=0.0, metavar="SECONDS", help="also on a real API server, idle")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    cluster = LiveCluster()
    begin = rss_mib()
    rows = [
        "| collection | objects | MiB on the wire | seconds of CPU | MiB of memory after |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, watch, count, made in (
        (DEPLOYMENTS, cluster.workloads["Deployment"], options.workloads, deployment),
        (HPAS, cluster.hpas, options.workloads, hpa),
        (REPLICA_SETS, cluster.replica_sets, options.workloads, replica_set),
        (PODS_PATH, cluster.pods, options.pods, lambda i: pod(i, options.workloads)),
    ):
        rows.append(listed(name, watch, Listing(count, made), begin))
    cluster.workloads["StatefulSet"].synced.set()
    rows += inventory_lines(cluster, options.workloads)
    if options.cluster:
        rows += on_control_plane(options.cluster)
    rows.append(f"\nPeak of the process {peak_mib():.0f} MiB, of which {begin:.0f} were there before.")
    text = "\n".join(rows)
    print(text)
    if options.record:
        sizes = f"--workloads {options.workloads} --pods {options.pods} --cluster {options.cluster:g}"
        command = f"python -m benchmarks.watch {sizes} --record"
        print(record("watch", "Watching a cluster", command, text))


def listed(name: str, watch: Watch[Any, Any], server: Listing, begin: float) -> str:
    """One collection, listed to its end."""
    gc.collect()
    started = time.process_time()
    while watch.progress.listing:
        watch._page(server)  # type: ignore[arg-type]  # noqa: SLF001  a step without the stream after it
    seconds = time.process_time() - started - server.seconds
    gc.collect()
    after = rss_mib() - begin
    return f"| `{name}` | {len(watch.objects):,} | {server.bytes / 2**20:.0f} | {seconds:.2f} | {after:.0f} |"


def inventory_lines(cluster: LiveCluster, workloads: int) -> list[str]:
    """Time the inventory of a cycle."""
    started = time.process_time()
    inventory = cluster.inventory(datetime.now(UTC), ["Deployment", "StatefulSet"], re.compile(".+"))
    seconds = time.process_time() - started
    assert len(inventory.workloads) == workloads
    assert all(workload.autoscaler and workload.resources.cpu_request for workload in inventory.workloads)
    return [f"\nThe inventory of a cycle is made of them in {seconds:.2f} s of CPU."]


CHANGES = 40
DEPLOYED = 50


def on_control_plane(seconds: float) -> list[str]:
    """Time from a changed count to a reader of the overlay, and count the requests of idle watches."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), services="127.121") as plane:
        for i in range(DEPLOYED):
            plane.api.create(plain_deployment(f"web-{i}", 1))
        client, stop = ApiClient(client_config_source(plane.kubeconfig), connections=8), threading.Event()
        cluster, path = LiveCluster(), overlay_path(Path(folder) / "table")
        writer = OverlayWriter(path, partial(present, cluster), cluster.confirmed)
        cluster.changed = writer.changed
        cluster.start(client)
        cluster.wait(60)
        threading.Thread(target=writer.run, args=[stop], daemon=True).start()
        reader = OverlayReader(path, lambda: datetime.now(UTC))
        delays = [delay(plane, reader, number % 7 + 1) for number in range(CHANGES)]
        before = sum(watch.health.requests for watch in cluster.watches)
        time.sleep(seconds)
        requests = sum(watch.health.requests for watch in cluster.watches) - before
        stop.set()
        cluster.stop(client)
    figures = f"{statistics.median(delays):.2f} s in the median, {max(delays):.2f} s at most, of {CHANGES} changes"
    rate = f"{len(cluster.watches)} watches take {requests / seconds * 60:.1f} requests a minute"
    return [
        f"\nOn a real API server with {DEPLOYED} Deployments, from a change of a count to a reader of the overlay:",
        f"{figures}. While nothing happens, {rate} ({seconds:g} s);",
        "the service asks 20 times a minute whether the API server is there.",
    ]


def present(cluster: LiveCluster, id_: WorkloadId) -> PresentWorkload:
    workload = cluster.present(id_)
    return PresentWorkload(GONE if workload is None else workload.replicas)


class Row(NamedTuple):
    namespace: str
    kind: str
    name: str


def delay(plane: ControlPlane, reader: OverlayReader, replicas: int) -> float:
    """Seconds from a change of `web-0` until a reader has it."""
    row, offer = Row("default", "Deployment", "web-0"), WorkloadOffer(0, 0, (), None, None, (), "neutral", 0.0)
    time.sleep(0.3)
    begin = time.monotonic()
    plane.api.merge("Deployment", "web-0", {"spec": {"replicas": replicas}})
    while reader.over(offer, row, ["Deployment"], datetime.now(UTC)).replicas_now != replicas:
        time.sleep(0.005)
    return time.monotonic() - begin


def metadata(kind: str, name: str, i: int) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": f"team-{i % NAMESPACES}",
        "uid": f"00000000-0000-0000-{kind[:4]:0>4}-{i:012d}",
        "resourceVersion": str(1_000_000 + i),
        "generation": 7,
        "creationTimestamp": "2026-10-01T08:00:00Z",
        "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm", "team": f"team-{i % 40}"},
        "annotations": {"deployment.kubernetes.io/revision": "7", "meta.helm.sh/release-name": name},
        "managedFields": MANAGED,
    }


def pod_spec(i: int) -> dict[str, Any]:
    size = SIZES[i % len(SIZES)]
    resources = {"requests": {"cpu": size, "memory": "256Mi"}, "limits": {"memory": f"{512 + 64 * (i % 8)}Mi"}}
    environment = [{"name": f"SETTING_{j}", "value": "https://example.test/some/path"} for j in range(12)]
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "periodSeconds": 10,
        "failureThreshold": 3,
    }
    app = {"name": "app", "image": "registry.test/app:1.2.3", "resources": resources, "env": environment}
    return {
        "containers": [app | {"livenessProbe": probe, "readinessProbe": probe}],
        "initContainers": [
            {
                "name": "proxy",
                "image": "registry.test/proxy:1",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
    }


def deployment(i: int) -> dict[str, Any]:
    meta = metadata("deployment", f"service-{i}", i)
    meta["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "x" * 1500
    labels = {"app": f"service-{i}"}
    return {
        "metadata": meta,
        "spec": {
            "replicas": 10,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(i)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        },
        "status": {"replicas": 10, "readyReplicas": 10, "availableReplicas": 10, "observedGeneration": 7},
    }


def hpa(i: int) -> dict[str, Any]:
    selector = {"matchLabels": {"workload": f"service-{i}", "kind": "Deployment", "signal": "cpu"}}
    external = {"metric": {"name": "forecaster_demand", "selector": selector}, "target": {"averageValue": "350m"}}
    utilization = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 60},
        {"type": "Percent", "value": 100, "periodSeconds": 60},
    ]
    rules = {"stabilizationWindowSeconds": 300, "selectPolicy": "Max", "policies": policies}
    return {
        "metadata": metadata("hpa", f"service-{i}", i),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"service-{i}"},
            "minReplicas": 2,
            "maxReplicas": 40,
            "metrics": [{"type": "Resource", "resource": utilization}, {"type": "External", "external": external}],
            "behavior": {"scaleUp": rules, "scaleDown": rules},
        },
        "status": {"currentReplicas": 10, "desiredReplicas": 10, "conditions": [{"type": "AbleToScale"}] * 3},
    }


def owned(meta: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    return meta | {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]}


def replica_set(i: int) -> dict[str, Any]:
    return {"metadata": owned(metadata("replicaset", f"service-{i}-7d4b9c", i), "Deployment", f"service-{i}")}


def pod(i: int, workloads: int) -> dict[str, Any]:
    service = i % workloads
    meta = metadata("pod", f"service-{service}-7d4b9c-{i:06d}", service)
    since = [
        {"type": condition, "status": "True", "lastTransitionTime": "2026-11-20T09:13:01Z"}
        for condition in ("PodScheduled", "Ready")
    ]
    states = [{"name": "app", "ready": True, "restartCount": 0, "imageID": "sha256:" + "0" * 64, "started": True}] * 2
    return {
        "metadata": owned(meta, "ReplicaSet", f"service-{service}-7d4b9c"),
        "spec": pod_spec(service) | {"nodeName": f"node-{i % 500}"},
        "status": {"phase": "Running", "conditions": since, "containerStatuses": states, "podIP": "10.0.0.1"},
    }


if __name__ == "__main__":
    main()
