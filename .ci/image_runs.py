"""Run what is in the image, from inside, as a user that it does not know: `image_runs.py FOLDER`, its state there."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path
from zoneinfo import ZoneInfo

import forecaster

HOME = Path(sys.prefix)
PROGRAM = str(HOME / "bin" / "forecaster")
NEEDS_AN_EXTRA = {"forecaster.app.notebook", "forecaster.kube.load", "forecaster.sources.exported"}
NEEDS_ALEMBIC = {"forecaster.store.migrations.env"}
TOOLS = {"cyclonedx-bom", "hatchling", "pip"}
MAX_SECONDS = 60


def missing_modules() -> set[str]:
    """Modules of ours that cannot be imported: something was removed that they need."""
    found = set()
    for module in pkgutil.walk_packages(forecaster.__path__, "forecaster."):
        if module.name.endswith("__main__") or module.name in NEEDS_ALEMBIC:
            continue
        try:
            importlib.import_module(module.name)
        except Exception as error:  # noqa: BLE001  # each is a finding, whatever it raised
            found.add(module.name)
            if module.name not in NEEDS_AN_EXTRA:
                print(f"{module.name}: {error!r}", file=sys.stderr)
    return found


def writes() -> bool:
    """Whether a file of the image can be made or changed."""
    try:
        (HOME / "share" / "written").touch()
    except OSError:
        return False
    return True


def check_system() -> None:
    """What the program takes from the system is there, and no shell."""
    assert shutil.which("sh", path="/bin:/usr/bin") is None, "there is a shell"
    assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 100, "no certificate authorities"
    assert socket.getaddrinfo("localhost", 443), "no name is resolved"
    assert ZoneInfo("Europe/Berlin").key, "no time zones"


def said(*arguments: str) -> str:
    """Return what a command of ours prints."""
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def livez(state: Path) -> str:
    """Start the service without any Prometheus, and return its answer to the kubelet."""
    settings = state / "settings.yaml"
    port = 18080
    serving = {"host": "127.0.0.1", "port": port}
    stated = {"prometheus": {"url": "http://127.0.0.1:9"}, "serving": serving, "state": {"directory": str(state)}}
    settings.write_text(json.dumps(stated), encoding="utf-8")
    service = subprocess.Popen([PROGRAM, "run", "--config", str(settings)], stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(MAX_SECONDS * 5):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=5) as answer:
                    return str(answer.read().decode())
            except OSError:
                time.sleep(0.2)
    finally:
        service.terminate()
        _, log = service.communicate(timeout=30)
    raise SystemExit(f"the service does not answer:\n{log}")


def recorded_in(state: Path) -> int:
    """How many tables the ledger has that the service made."""
    (ledger,) = state.glob("*.sqlite")
    with closing(sqlite3.connect(ledger)) as database:
        return int(database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0])


def main(state: Path) -> None:
    """Check the user, the root, the system, the modules, the SBOM, the commands and the service."""
    assert os.getuid() not in {0, 65532}, "run this as a user that the image does not know"
    assert not writes(), "the root is not read-only"
    check_system()
    broken = missing_modules()
    assert broken == NEEDS_AN_EXTRA, sorted(broken ^ NEEDS_AN_EXTRA)
    installed = {one.metadata["Name"].lower(): one.version for one in distributions()}
    bill = json.loads((HOME / "share" / "sbom.cdx.json").read_text(encoding="utf-8"))["components"]
    assert {one["name"].lower(): one["version"] for one in bill} == installed, "the SBOM is not what is installed"
    assert TOOLS.isdisjoint(installed), sorted(TOOLS & installed.keys())
    version = said("--version").strip()
    recommendations = json.loads(said("demo", "--once", "-o", "json"))["recommendations"]
    assert len(recommendations) >= 10, recommendations
    said_of_life = livez(state)
    print(
        f"image: {version} as user {os.getuid()} on a read-only root: /livez says {said_of_life!r}, "
        f"{recorded_in(state)} tables in its ledger, {len(recommendations)} recommendations of the demo, "
        f"{len(bill)} components in its SBOM"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
