"""Paths of the programs of the control plane; `.ci/control-plane` puts them there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

CORE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl")


def find(name: str) -> Path | None:
    """Find a program in the folder KUBEBUILDER_ASSETS or the project's cache; not on PATH, which has any version."""
    for folder in (os.environ.get("KUBEBUILDER_ASSETS"), cache()):
        path = shutil.which(name, path=str(folder)) if folder else None
        if path:
            return Path(path)
    return None


def cache() -> Path:
    """The folder into which the scripts of CI build."""
    return Path(os.environ.get("FORECASTER_CACHE") or Path.home() / ".cache" / "forecaster") / "bin"


def why_not(*names: str) -> str:
    """Say why a control plane with these programs cannot run here, and the remedy; empty when it can."""
    if os.uname().sysname != "Linux":
        return "the test control plane needs Linux: its processes end with the test by a Linux call"
    absent = [name for name in names if find(name) is None]
    if not absent:
        return ""
    remedy = "run .ci/control-plane" if shutil.which("go") else "install Go, then run .ci/control-plane"
    return f"no {', '.join(absent)}: {remedy}, or set KUBEBUILDER_ASSETS to a folder that has them"
