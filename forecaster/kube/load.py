"""The official client's reading of a kubeconfig file: `python -m forecaster.kube.load FILE` prints a ClientConfig.

A process of its own: the official package takes 22 MB and 0.2 s to import, writes certificates of the file to temporary
files, and waits for exec plug-ins without limit. All of that ends with this process.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader

from forecaster.kube.config import ClientConfig, ClientConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

EXPECTED = (OSError, yaml.YAMLError, ConfigException, LookupError, TypeError, ValueError, AttributeError)
"""What the official loader raises for files that are not as they should be."""


def main(arguments: Sequence[str]) -> int:
    """Exit status 0 with a ClientConfig on standard output, or 1 with the reason on standard error."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")  # the loader logs why a plug-in failed
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = load(Path(arguments[0]), Path(folder))
    except ClientConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(found))
    return 0


def load(file: Path, folder: Path) -> ClientConfig:
    """The file's current context, exec plug-in and auth provider carried out; `folder` is for temporary files.

    Raises:
        ClientConfigError: the file cannot be read or does not say what is needed.
    """
    configuration = Configuration()
    try:
        loader = _loader(file, folder)
        loader.load_and_set(configuration)
        found = _config(configuration, getattr(loader, "expiry", None), folder)
    except EXPECTED as error:
        raise ClientConfigError(f"{type(error).__name__} {error}") from error
    if not found.authorization and not (found.certificate or found.certificate_file):
        raise ClientConfigError("its user gives no token and no certificate; try `kubectl auth whoami` with it")
    return found


def _loader(file: Path, folder: Path) -> Any:
    """The official loader, given a dictionary: the names that it makes from files hold whole entries, keys included."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))

    def persist() -> None:
        with suppress(OSError):  # a refreshed token that cannot be written is still good for now
            file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    return KubeConfigLoader(  # type: ignore[no-untyped-call]  # it has no types
        document, config_base_path=str(file.parent), config_persister=persist, temp_file_path=str(folder)
    )


def _config(configuration: Any, expiry: Any, folder: Path) -> ClientConfig:
    ca_file, ca = _file_or_text(configuration.ssl_ca_cert, folder)
    certificate_file, certificate = _file_or_text(configuration.cert_file, folder)
    key_file, key = _file_or_text(configuration.key_file, folder)
    bypass = should_bypass_proxies(configuration.host, configuration.no_proxy or "")
    return ClientConfig(
        server=configuration.host,
        ca_file=ca_file,
        ca=ca,
        authorization=configuration.api_key.get("BearerToken", "").strip(),
        certificate_file=certificate_file,
        key_file=key_file,
        certificate=certificate,
        key=key,
        tls_server_name=configuration.tls_server_name or "",
        verify=configuration.verify_ssl,
        proxy="" if bypass else configuration.proxy or "",
        expires=expiry.timestamp() if expiry else None,
    )


def _file_or_text(path: str | None, folder: Path) -> tuple[str, str]:
    """A file of the user's as its path, one that the loader made from the kubeconfig as its text."""
    if not path:
        return "", ""
    if Path(path).is_relative_to(folder):
        return "", Path(path).read_text(encoding="ascii")
    return str(Path(path).absolute()), ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
