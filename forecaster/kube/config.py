"""ClientConfig: where the API server is, and the credentials of one account there.

A pod's own account is two variables and two files. A kubeconfig file is read by the official client in a process of
its own (`load`): exec plug-ins, auth providers and proxies are its business, and its 22 MB stay out of all others
(docs/decisions/0004-kubeconfig-in-a-process-of-its-own.md).
"""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

import msgspec

from forecaster.errors import ForecasterError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LOAD_SECONDS = 30.0
"""An exec plug-in that asks a cloud for a token takes one or two seconds; one that waits for a person never ends."""
REASON_MAX = 600
"""Most characters of a loader's or plug-in's message that are shown."""


class ClientConfigError(ForecasterError):
    """There is no way to the API server; the text says what to do."""


class ClientConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """One API server and the credentials of one account. Texts are PEM; files may be rotated."""

    server: str
    """https://HOST[:PORT][/PREFIX]"""
    ca_file: str = ""
    ca: str = ""
    token_file: str = ""
    authorization: str = ""
    """A whole header, e.g. `Bearer TOKEN`; used where there is no `token_file`."""
    certificate_file: str = ""
    key_file: str = ""
    certificate: str = ""
    key: str = ""
    tls_server_name: str = ""
    verify: bool = True
    proxy: str = ""
    expires: float | None = None
    """Seconds since 1970; None: not known."""

    def __repr__(self) -> str:
        return f"ClientConfig({self.server!r})"

    def headers(self) -> dict[str, str]:
        """The header with the credentials, the token file read at each call; empty for a client certificate.

        Raises:
            OSError: the token file cannot be read.
            ClientConfigError: what it holds is no token.
        """
        value = self.authorization
        if self.token_file:
            value = f"Bearer {Path(self.token_file).read_text(encoding='utf-8', errors='replace').strip()}"
        if not (value.isascii() and value.isprintable()):
            where = self.token_file or "the client configuration"
            raise ClientConfigError(f"the token of {where} is not one line of ASCII; write it anew")
        return {"Authorization": value} if value else {}

    def tls_context(self) -> ssl.SSLContext:
        """Return the context to verify the server's certificate, with the client's own; reads the files each time."""
        context = ssl.create_default_context(cafile=self.ca_file or None, cadata=self.ca or None)
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file or None)
        elif self.certificate:
            with _file_of(self.certificate) as certificate, _file_of(self.key) as key:
                context.load_cert_chain(certificate, key)
        return context


def client_config_source(kubeconfig: Path | str | None) -> Callable[[], ClientConfig]:
    """Return a function that reads the configuration at each call: a kubeconfig file, or the pod's own without one."""
    return partial(from_kubeconfig, [Path(kubeconfig)]) if kubeconfig else in_cluster


def sought_config_source(kubeconfig: Path | None, context: str = "") -> Callable[[], ClientConfig]:
    """Find the cluster as kubectl does: a given file, $KUBECONFIG, ~/.kube/config, the pod's own account.

    Raises:
        ClientConfigError: none of them is there.
    """
    listed, home = os.environ.get("KUBECONFIG", ""), os.environ.get("HOME", "")
    usual = Path(home, ".kube", "config")
    sought = [Path(name) for name in listed.split(os.pathsep) if name] if listed else [usual] if home else []
    files = [kubeconfig] if kubeconfig else [path for path in sought if os.access(path, os.F_OK)]
    if files:
        return partial(from_kubeconfig, files, context)
    if is_pod() and not context:
        return in_cluster
    where = f"KUBECONFIG={listed} names no file" if listed else f"KUBECONFIG is not set, {usual} is not there"
    pod = "a pod's account has no contexts" if is_pod() else "this is no pod with an account"
    raise ClientConfigError(f"no cluster is named: {where}, {pod}; name a file by --kubeconfig")


def is_pod(account: Path = ACCOUNT) -> bool:
    """Whether this process runs in a pod with an account of its own."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def in_cluster(account: Path = ACCOUNT) -> ClientConfig:
    """The pod's own service account; never through a proxy, since the address is one of the cluster's network.

    Raises:
        ClientConfigError: this is no pod with an account.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (account / "token").exists():
        raise ClientConfigError(
            "this process does not run in a pod with a service account; name a kubeconfig file in "
            "kubernetes.kubeconfig, acting.kubeconfig or serving.secure.kubeconfig"
        )
    bracketed = f"[{host}]" if ":" in host else host
    return ClientConfig(
        f"https://{bracketed}:{port}", ca_file=str(account / "ca.crt"), token_file=str(account / "token")
    )


def from_kubeconfig(files: Sequence[Path], context: str = "", timeout: float = LOAD_SECONDS) -> ClientConfig:
    """Return a context of kubeconfig files, the current one if empty, with fresh credentials by exec plug-ins.

    Raises:
        ClientConfigError: the files, or a plug-in in them, do not give what is needed.
    """
    names = [str(file) for file in files]
    file = os.pathsep.join(names)
    if find_spec("kubernetes") is None:
        raise ClientConfigError(
            f"kubeconfig {file}: reading it needs the extra: pip install 'kube-forecaster[kubeconfig]'"
        )
    status, output, reason = _run([sys.executable, "-m", "forecaster.kube.load", context, *names], timeout)
    if status is None:
        raise ClientConfigError(f"kubeconfig {file}: no credentials after {timeout:g} s; run its exec plug-in by hand")
    if status != 0:
        raise ClientConfigError(f"kubeconfig {file}: {' '.join(reason.split())[-REASON_MAX:]}")
    config = msgspec.json.decode(output, type=ClientConfig)
    if urlsplit(config.server).scheme != "https":
        raise ClientConfigError(f"kubeconfig {file}: server {config.server!r} is not https; credentials need TLS")
    return config


def _run(command: list[str], timeout: float) -> tuple[int | None, bytes, str]:
    """Exit status, output and errors of a command; no status where it was killed, with its children, for its time."""
    with subprocess.Popen(  # noqa: S603  our own interpreter and module
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        try:
            output, errors = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None, b"", ""
        return child.returncode, output, errors.decode("utf-8", "replace")


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """A path with this content for the ssl module, which reads files only.

    On Linux it has no name on any disk; elsewhere it is a file that its owner alone may read, for a moment.
    """
    if sys.platform != "linux":
        with NamedTemporaryFile("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, text.encode("ascii"))
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
