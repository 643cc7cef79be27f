"""`deploy/base` in a cluster, with the real processes in place of its pods.

The manifests are applied as they are. Pods of kwok give the Services their endpoints; a Service's address lies in
loopback, so the process that such a pod would run can listen there, with the rights of the account that it would have.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from forecaster.app.child import SERVING, ServingProcess
from forecaster.publish.new_pods import new_pods_path
from forecaster.serving.options import Address, SecureOptions, ServingOptions
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.control_plane.plane import ControlPlane

ROOT = Path(__file__).parents[3]
NAMESPACE = SERVICE = "forecaster"
EXTERNAL = "v1beta1.external.metrics.k8s.io"


class Deployed:
    """`deploy/base`, another kustomization, or an earlier installation by other means (None), in a cluster."""

    def __init__(
        self, cluster: ControlPlane, folder: Path, *, table: Path, kustomization: Path | None = ROOT / "deploy" / "base"
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self.table = table
        self.stale_after_seconds: float | None = 12 * 3600.0
        """Recorded days are played in the past of the real clock: a table of the future is not served."""
        if kustomization:
            cluster.kubectl("apply", "-k", str(kustomization))
        self._until_bound()
        self.address = Address(self._cluster_ip(), 443)
        _skip_where_forbidden(self.address)

    def account(self, name: str) -> Path:
        """A kubeconfig with a token of one of its service accounts."""
        return self.cluster.account(name, NAMESPACE)

    def run_certificates(self, *options: str) -> str:
        """Run the command of the Job, with its own arguments and its own rights."""
        job = self.cluster.api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/forecaster-certificates")
        container = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
        rights = f"--kubeconfig={self.account('forecaster-certificates')}"
        command = [sys.executable, "-m", "forecaster", *container["args"], rights, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def mounted_certificates(self) -> tuple[Path, Path]:
        """The Secret as a pod would see it, replaced as a kubelet replaces it."""
        data = self.cluster.api.read("Secret", "forecaster-certificates", NAMESPACE)["data"]
        files = self.folder / "tls.crt", self.folder / "tls.key"
        for file in files:
            fresh = file.with_suffix(".new")
            fresh.write_bytes(base64.b64decode(data[file.name]))
            os.replace(fresh, file)  # noqa: PTH105  as kubelets do it
        return files

    def serve(self, *program: str) -> Iterator[ServingProcess]:
        """The serving process on the address of the Service, or a `program` that is one by another clock."""
        certificate, key = self.mounted_certificates()
        secure = SecureOptions(
            certificate=str(certificate),
            key=str(key),
            kubeconfig=str(self.account("forecaster")),
            service=f"{NAMESPACE}/{SERVICE}",
        )
        process = ServingProcess(
            self.table,
            Address("127.0.0.1", 0),
            secure_address=self.address,
            options=ServingOptions(
                secure=secure,
                stale_after_seconds=self.stale_after_seconds,
                new_pods=str(new_pods_path(self.table)),
            ),
            program=program or SERVING,
        )
        process.start()
        try:
            wait_until(lambda: _ready(process), goal="the serving process")
            yield process
        finally:
            process.stop()

    @contextmanager
    def run(self, **settings: object) -> Iterator[subprocess.Popen[bytes]]:
        """Run the command of the Deployment's container, with its settings and those that differ outside a pod."""
        deployment = self.cluster.api.read("Deployment", SERVICE, NAMESPACE)["spec"]["template"]["spec"]
        (volume,) = [each["configMap"] for each in deployment["volumes"] if "configMap" in each]
        mounted = self.folder / "settings"
        mounted.mkdir()
        for name, text in self.cluster.api.read("ConfigMap", volume["name"], NAMESPACE)["data"].items():
            (mounted / name).write_text(text)
        (mounted / "90-here.yaml").write_text(json.dumps(self._here(settings)))  # JSON is YAML
        subcommand, *_ = deployment["containers"][0]["args"]
        command = [sys.executable, "-m", "forecaster", subcommand, "--config", str(mounted)]
        with (self.folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                yield process
            finally:
                process.terminate()

    def _here(self, settings: Mapping[str, object]) -> dict[str, object]:
        certificate, key = self.mounted_certificates()
        secure = {
            "host": self.address.host,
            "port": self.address.port,
            "certificate_file": str(certificate),
            "key_file": str(key),
            "kubeconfig": str(self.account("forecaster")),
        }
        serving = {"host": "127.0.0.1", "port": 0, "secure": secure}
        return {"serving": serving, "state": {"directory": str(self.folder / "state")}, **settings}

    def remove(self) -> None:
        """First the APIService, as the docs say: a group that nobody answers is in everybody's way."""
        self.cluster.api.delete("APIService", EXTERNAL)

    def _until_bound(self) -> None:
        """Wait for all rights of the manifests; a Job and a pod would retry later, we start their programs at once."""
        may, me, job = self.cluster.until_allowed, f"{NAMESPACE}/{SERVICE}", f"{NAMESPACE}/forecaster-certificates"
        may(me, "create", "tokenreviews.authentication.k8s.io")
        may(me, "create", "subjectaccessreviews.authorization.k8s.io")
        may(me, "get", "configmaps", namespace="kube-system", name="extension-apiserver-authentication")
        may(me, "get", "apiservices.apiregistration.k8s.io", name=EXTERNAL)
        for verb in ("get", "patch"):
            may(job, verb, "secrets", namespace=NAMESPACE, name="forecaster-certificates")
            may(job, verb, "apiservices.apiregistration.k8s.io", name=EXTERNAL)
            may(job, verb, "mutatingwebhookconfigurations.admissionregistration.k8s.io", name="forecaster-initial")
        may(
            "kube-system/horizontal-pod-autoscaler",
            "list",
            "forecaster_demand.external.metrics.k8s.io",
            namespace="shop",
        )

    def _cluster_ip(self) -> str:
        return str(self.cluster.api.read("Service", SERVICE, NAMESPACE)["spec"]["clusterIP"])


def _ready(process: ServingProcess) -> bool:
    """Whether the pod's probe would succeed: there is a table, and the senders of the API server are known."""
    return httpx.get(f"http://{process.address}/readyz", timeout=PATIENCE).status_code == HTTPStatus.OK


def _skip_where_forbidden(address: Address) -> None:
    try:
        socket.create_server(address).close()
    except PermissionError:
        pytest.skip(f"only root may listen on {address}: run this as root or lower net.ipv4.ip_unprivileged_port_start")
