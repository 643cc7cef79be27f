"""The base and each component as `kubectl kustomize` builds them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[1]
Document = dict[str, Any]


LAST = "cert-manager"
"""The component that marks what others bring: components are applied in their order."""


def components() -> list[str]:
    """The names of all components."""
    return sorted(folder.name for folder in (DEPLOY / "components").iterdir())


def kubectl() -> str:
    """Path of the kubectl that CI builds, or of the one on PATH."""
    cache = Path(os.environ.get("FORECASTER_CACHE") or Path.home() / ".cache" / "forecaster") / "bin"
    path = shutil.which("kubectl", path=str(cache)) or shutil.which("kubectl")
    if path is None:
        raise SystemExit("no kubectl: run .ci/control-plane, or put one on PATH; it has kustomize built in")
    return path


def built(*names: str) -> list[Document]:
    """The base with these components. The hash in the name of the settings is HASH."""
    with tempfile.TemporaryDirectory() as folder:
        parts = {
            "resources": [within("base", folder)],
            "components": [within(f"components/{name}", folder) for name in sorted(names, key=LAST.__eq__)],
        }
        head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(head | parts), encoding="utf-8")
        done = subprocess.run([kubectl(), "kustomize", folder], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"kubectl kustomize with {', '.join(names) or 'the base alone'}: {done.stderr.strip()}")
    return list(yaml.safe_load_all(without_hash(done.stdout)))


def without_hash(text: str) -> str:
    """Replace the hash in the name of the settings; two builders hash differently."""
    return re.sub(r"\bforecaster-settings-[a-z0-9]{10}\b", "forecaster-settings-HASH", text)


def within(part: str, folder: str) -> str:
    """A part of deploy/ as seen from a folder: kustomize takes relative paths only."""
    return os.path.relpath(DEPLOY / part, Path(folder).resolve())


def key_of(document: Document) -> str:
    """Kind, namespace and name of an object."""
    metadata = document["metadata"]
    return f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
