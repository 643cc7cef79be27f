"""KEDA itself beside a control plane: its operator and its metrics adapter, as processes outside the cluster."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from tests.support.control_plane.binaries import cache
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.plane import ControlPlane

PROGRAMS = ("keda-operator", "keda-adapter")


@contextmanager
def running_keda(cluster: ControlPlane) -> Iterator[None]:
    """KEDA reconciles every ScaledObject and owns the external metrics while the block lasts."""
    cluster.install(cache() / "keda-crds")
    cluster.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}})
    certificates, operator = _certificates(cluster), _start_operator(cluster)
    adapter = _start_adapter(cluster, certificates, operator)
    try:
        cluster.aggregate(adapter, cluster.authority.bundle)
        cluster.until_available()
        yield
    finally:
        # While the operator is there to take its finalizers off.
        cluster.uninstall(cache() / "keda-crds")
        cluster.api.delete("APIService", "v1beta1.external.metrics.k8s.io")
        for name in reversed(PROGRAMS):
            cluster.programs.stop(name)


def _certificates(cluster: ControlPlane) -> Path:
    """One certificate for operator and adapter, under the names that they look for."""
    folder = cluster.folder / "keda-certificates"
    folder.mkdir(exist_ok=True)
    names = ("localhost", "127.0.0.1", "aggregated-external.default.svc")
    pair = cluster.authority.issue("keda", *names, common_name="keda-operator")
    for source, name in (
        (cluster.authority.certificate, "ca.crt"),
        (pair.certificate, "tls.crt"),
        (pair.key, "tls.key"),
    ):
        shutil.copy(source, folder / name)
    return folder


def _environment(cluster: ControlPlane) -> dict[str, str]:
    return {
        "KUBECONFIG": str(cluster.kubeconfig),
        "WATCH_NAMESPACE": "",  # all; it has to be set
        "POD_NAMESPACE": "keda",
        "POD_NAME": "keda-operator",
        "KEDA_CLUSTER_OBJECT_NAMESPACE": "keda",
    }


def _start_operator(cluster: ControlPlane) -> int:
    """Start the operator, and return the port on which it sends values to the adapter."""
    metrics, probe, values = free_ports(3)
    cluster.programs.start(
        "keda-operator",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{probe}",
        f"--metrics-service-bind-address=127.0.0.1:{values}",
        f"--cert-dir={cluster.folder / 'keda-certificates'}",
        f"--ca-dir={cluster.authority.certificate.parent}",
        environment=_environment(cluster),
    )

    def ready() -> bool:
        cluster.programs.check()
        try:
            return httpx.get(f"http://127.0.0.1:{probe}/readyz", timeout=20).status_code == HTTPStatus.OK
        except httpx.TransportError:
            return False

    wait_until(ready, goal="KEDA's operator")
    return values


def _start_adapter(cluster: ControlPlane, certificates: Path, operator: int) -> int:
    """The port on which the API server asks it."""
    secure, plain = free_ports(2)
    cluster.programs.start(
        "keda-adapter",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--port={plain}",
        f"--metrics-service-address=127.0.0.1:{operator}",
        f"--client-ca-file={certificates / 'ca.crt'}",
        f"--tls-cert-file={certificates / 'tls.crt'}",
        f"--tls-private-key-file={certificates / 'tls.key'}",
        f"--cert-dir={certificates}",
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        f"--lister-kubeconfig={cluster.kubeconfig}",
        environment=_environment(cluster),
    )
    return secure
