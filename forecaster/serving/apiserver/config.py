"""Where the API server is and who we are there: the pod's own account, or a kubeconfig file."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class AccessError(Exception):
    """There is no way to the API server; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """One API server and our credentials there. Files are read again at each use: both token and CA are rotated."""

    host: str
    port: int
    ca_file: Path | None = None
    ca_data: str = ""
    token_file: Path | None = None
    token: str = ""
    certificate: tuple[Path, Path] | None = None

    def context(self) -> ssl.SSLContext:
        """What its certificate is verified with."""
        context = ssl.create_default_context(cafile=self.ca_file, cadata=self.ca_data or None)
        if self.certificate:
            context.load_cert_chain(*self.certificate)
        return context

    def headers(self) -> dict[str, str]:
        """What we show."""
        token = self.token_file.read_text(encoding="ascii").strip() if self.token_file else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def in_cluster(account: Path = ACCOUNT) -> Access:
    """The pod's own service account.

    Raises:
        AccessError: this is no pod with an account.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (account / "token").exists():
        raise AccessError(
            "this process does not run in a pod with a service account; give serving.secure.kubeconfig, or leave "
            "serving.secure out"
        )
    return Access(host, int(port), ca_file=account / "ca.crt", token_file=account / "token")


def from_kubeconfig(path: Path) -> Access:
    """The current context of a kubeconfig file. Commands that make tokens (`exec`) are not run.

    Raises:
        AccessError: the file cannot be read or does not say what is needed.
    """
    import yaml  # noqa: PLC0415  outside a cluster only; it would cost the others start-up time

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(document, "contexts", document["current-context"])["context"]
        cluster = _named(document, "clusters", context["cluster"])["cluster"]
        user = _named(document, "users", context["user"])["user"]
        return _access(cluster, user, path.parent)
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, StopIteration) as error:
        raise AccessError(f"kubeconfig {path}: {type(error).__name__} {error}; name a file of kind Config") from error


def _named(document: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    return next(cast("dict[str, Any]", one) for one in document[section] if one["name"] == name)


def _access(cluster: dict[str, Any], user: dict[str, Any], folder: Path) -> Access:
    server = urlsplit(cluster["server"])
    if server.scheme != "https" or not server.hostname:
        raise ValueError(f"server {cluster['server']!r} is not https")
    ca_file, token_file = cluster.get("certificate-authority"), user.get("tokenFile")
    return Access(
        server.hostname,
        server.port or 443,
        ca_file=folder / ca_file if ca_file else None,
        ca_data=_decoded(cluster.get("certificate-authority-data", "")),
        token_file=folder / token_file if token_file else None,
        token=user.get("token", ""),
        certificate=_certificate(user, folder),
    )


def _certificate(user: dict[str, Any], folder: Path) -> tuple[Path, Path] | None:
    if "client-certificate" in user:
        return folder / user["client-certificate"], folder / user["client-key"]
    if "client-certificate-data" in user:
        return _in_memory(user["client-certificate-data"]), _in_memory(user["client-key-data"])
    return None


def _in_memory(data: str) -> Path:
    """The ssl module reads certificates from files only; this one has no name on any disk."""
    descriptor = os.memfd_create("certificate")
    os.write(descriptor, base64.b64decode(data))
    return Path(f"/proc/self/fd/{descriptor}")


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode("ascii")
