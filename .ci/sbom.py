"""A CycloneDX 1.6 document of what a lock installs, with the hashes that the lock holds: `sbom.py LOCK VERSION`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, Any]]:
    """Each pinned distribution; its files have one hash each, of which an installation takes one."""
    found: list[dict[str, Any]] = []
    for line in lock.splitlines():
        if pin := PIN.match(line):
            name, version = pin.groups()
            reference = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
            found.append({"type": "library", "bom-ref": reference, "purl": reference, "name": name, "version": version})
        for digest in HASH.findall(line):
            found[-1].setdefault("hashes", []).append({"alg": "SHA-256", "content": digest})
    return found


def document(lock: str, version: str) -> dict[str, Any]:
    """The whole; without time and serial number, so that two of one release are the same bytes."""
    product = {"type": "application", "name": "kube-forecaster", "version": version}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product},
        "components": components(lock),
    }


if __name__ == "__main__":
    json.dump(document(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]), sys.stdout, indent=1)
    sys.stdout.write("\n")
