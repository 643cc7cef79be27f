"""The official client's reading of kubeconfig files: `python -m forecaster.kube.load CONTEXT FILE...`.

A process of its own: the official package takes 22 MB and 0.2 s to import, writes certificates of the file to temporary
files, and waits for exec plug-ins without limit. All of that ends with this process.
"""

from __future__ import annotations

import copy
import logging
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader

from forecaster.kube.config import ClientConfig, ClientConfigError

EXPECTED = (OSError, yaml.YAMLError, ConfigException, LookupError, TypeError, ValueError, AttributeError)
"""Errors of the official loader for malformed files."""


def main(arguments: Sequence[str]) -> int:
    """Print the ClientConfig of a context (empty: the current one) from files; exit status 0.

    Or 1 with the reason on standard error.
    """
    logging.basicConfig(level=logging.ERROR, format="%(message)s")  # the loader logs why a plug-in failed
    context, *files = arguments
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = load([Path(file) for file in files], Path(folder), context)
    except ClientConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(config))
    return 0


def load(files: Sequence[Path], folder: Path, context: str = "") -> ClientConfig:
    """Return a context of the files, the current one if empty; runs exec plug-in and auth provider.

    Of several files the first counts that has an entry, as kubectl has it. `folder` is for temporary files.

    Raises:
        ClientConfigError: a file cannot be read, or they do not say what is needed.
    """
    configuration = Configuration()
    try:
        loader = _loader(files, folder, context)
        loader.load_and_set(configuration)
        config = _config(configuration, getattr(loader, "expiry", None), folder)
    except FileNotFoundError as error:
        raise ClientConfigError(f"there is no file {error.filename}") from error
    except EXPECTED as error:
        raise ClientConfigError(f"{type(error).__name__} {error}; name a file of kind Config") from error
    if not config.authorization and not (config.certificate or config.certificate_file):
        raise ClientConfigError("its user gives no token and no certificate; try `kubectl auth whoami` with it")
    return config


def _loader(files: Sequence[Path], folder: Path, context: str) -> Any:
    """The official loader, given our own nodes: the names that its merger makes hold whole entries, keys included."""
    documents = {file: _document(file) for file in files}
    before = copy.deepcopy(documents)

    def persist() -> None:
        with suppress(OSError):  # a refreshed token that cannot be written is still good for now
            for file, document in documents.items():
                if document != before[file]:
                    _replace(file.resolve(), yaml.safe_dump(document, sort_keys=False))

    merged = _merged(documents)
    return KubeConfigLoader(  # type: ignore[no-untyped-call]  # it has no types
        ConfigNode("kube-config", merged),  # type: ignore[no-untyped-call]
        active_context=_chosen(context or merged["current-context"], [entry["name"] for entry in merged["contexts"]]),
        config_base_path=None,  # relative names are of each entry's own file
        config_persister=persist,
        temp_file_path=str(folder),
    )


def _replace(file: Path, text: str) -> None:
    """Put a text in the place of a file's, which stays where the disk is full or we are ended. Raises OSError."""
    part = file.with_name(f".{file.name}.part")
    part.touch(stat.S_IRUSR | stat.S_IWUSR)
    try:
        part.write_text(text, encoding="utf-8")
        shutil.copymode(file, part)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _chosen(context: str, known: Sequence[str]) -> str:
    if not known:
        raise ConfigException("it has no contexts")
    if context not in known:
        missing = f"there is no context {context!r}" if context else "no current-context is set"
        raise ClientConfigError(f"{missing}; --context or `kubectl config use-context` take one of {', '.join(known)}")
    return context


def _merged(documents: Mapping[Path, Mapping[str, Any]]) -> dict[str, Any]:
    """One document of all: of entries with the same name, and of the current context, the first."""
    stated = [document["current-context"] for document in documents.values() if document.get("current-context")]
    merged: dict[str, Any] = {"current-context": next(iter(stated), "")}
    for kind in ("clusters", "contexts", "users"):
        entries: dict[str, ConfigNode] = {}
        for file, document in documents.items():
            for entry in document.get(kind) or []:
                entries.setdefault(entry["name"], ConfigNode(f"kube-config/{kind}", entry, str(file)))  # type: ignore[no-untyped-call]
        merged[kind] = list(entries.values())
    return merged


def _document(file: Path) -> dict[str, Any]:
    document = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if not isinstance(document, dict):
        raise ConfigException(f"{file} holds no mapping")
    return document


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
