"""The options of each program: everything on loopback, nothing synced to disk, controllers that look once a second."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.control_plane.authority import Authority, KeyPair

SYNC_SECONDS = 1.0
"""Seconds between two looks of the HPA controller."""
AUDIT_LOG = "audit.log"
POD_READY_MILLISECONDS = 500
RESIZE_MILLISECONDS = 200


@dataclass(frozen=True)
class Ports:
    """Free ports of this machine."""

    etcd: int
    etcd_peers: int
    api: int
    controllers: int
    scheduler: int
    kwok: int


def etcd(folder: Path, ports: Ports) -> list[str]:
    clients, peers = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peers}"
    return [
        "--name=test",
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=test={peers}",
        "--log-level=warn",
    ]


AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "userGroups": ["system:serviceaccounts:forecaster"],
            "verbs": ["update", "patch", "delete"],
        },
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:forecaster"]},
        {"level": "None"},
    ],
}
"""Every answered request of our own accounts; changes with their bodies."""


@dataclass(frozen=True)
class Identities:
    """Certificate authorities, and the identities that they sign."""

    authority: Authority
    front_proxy: Authority
    server: KeyPair
    proxy_client: KeyPair
    tokens: KeyPair


def api_server(folder: Path, ports: Ports, who: Identities, service_range: str) -> list[str]:
    policy = folder / "audit-policy.yaml"
    policy.write_text(json.dumps(AUDIT_POLICY), encoding="utf-8")
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / AUDIT_LOG}",
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.api}",
        "--endpoint-reconciler-type=none",  # Endpoints refuse loopback addresses
        # In loopback: a ClusterIP is an address that a process of this machine can listen on.
        f"--service-cluster-ip-range={service_range}",
        f"--client-ca-file={who.authority.certificate}",
        f"--tls-cert-file={who.server.certificate}",
        f"--tls-private-key-file={who.server.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={who.tokens.certificate}",
        f"--service-account-signing-key-file={who.tokens.key}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--requestheader-client-ca-file={who.front_proxy.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={who.proxy_client.certificate}",
        f"--proxy-client-key-file={who.proxy_client.key}",
        "--feature-gates=HPAScaleToZero=true",
    ]


def controller_manager(ports: Ports, who: Identities, kubeconfig: Path) -> list[str]:
    return [
        *_component(kubeconfig, ports.controllers),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={who.tokens.key}",
        f"--root-ca-file={who.authority.certificate}",
        f"--cluster-signing-cert-file={who.authority.certificate}",
        f"--cluster-signing-key-file={who.authority.key}",
        f"--horizontal-pod-autoscaler-sync-period={SYNC_SECONDS:g}s",
        "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
        "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        "--feature-gates=HPAScaleToZero=true",
    ]


def scheduler(ports: Ports, kubeconfig: Path) -> list[str]:
    return _component(kubeconfig, ports.scheduler)


def _component(kubeconfig: Path, port: int) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--leader-elect=false",
    ]


def kwok(ports: Ports, stages: Path, serving: KeyPair, kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--config={stages}",
        "--manage-all-nodes=true",
        f"--server-address=127.0.0.1:{ports.kwok}",
        "--node-ip=127.0.0.1",
        f"--node-port={ports.kwok}",
        "--cidr=10.244.0.1/16",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--node-lease-duration-seconds=40",
    ]
