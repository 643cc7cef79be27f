"""A Prometheus behind a password, by five lines of values: what the pod would run ends in recommendations.

No kubelet runs here: the container's command is run as rendered, with its variables, and its volumes laid out as files.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from deploy.generate.chart import CHART
from forecaster.app.serve import table_path
from forecaster.publish.reader import TableReader
from tests.support.cluster_week import fill_week
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.plane import ControlPlane
from tests.support.packaging import helm, tool
from tests.support.ports import free_ports
from tests.support.prometheus import RealPrometheus, find_binaries
from tests.support.waiting import end, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


NAMESPACE = "guarded"
PASSWORD = "of-a-secret"
USERS = "basic_auth_users: {scraper: $2b$04$2hx7tIRu1Drf.EaBuDWDoeqMIRwUhfTKCiLIoPTE1dfiBRbS.KZ5K}\n"
"""The password as bcrypt has it."""
FIVE_LINES = """\
image: {repository: registry.example/forecaster, tag: 0.1.0}
prometheus:
  url: %s
  username: scraper
  existingSecret: prometheus-login
"""


class GuardedPrometheus(RealPrometheus):
    """A Prometheus that refuses every request without the password."""

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", auth=("scraper", PASSWORD)).is_success
        except httpx.TransportError:
            return False


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own: objects of other installations would be in the way of this one."""
    if absent := why_not(*CORE):
        pytest.skip(absent)
    with ControlPlane(tmp_path_factory.mktemp("guarded"), services="127.132") as running:
        yield running


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RealPrometheus]:
    tool("helm")
    if not (binaries := find_binaries()):
        pytest.skip("no Prometheus: run .ci/prometheus")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    fill_week(tmp_path / "data", now, binaries)
    users = tmp_path / "web.yaml"
    users.write_text(USERS, encoding="utf-8")
    with GuardedPrometheus(binaries, tmp_path / "data", options=[f"--web.config.file={users}"]) as running:
        yield running


def test_five_lines_of_values_and_a_secret_end_in_recommendations(
    plane: ControlPlane, guarded: RealPrometheus, tmp_path: Path
) -> None:
    plane.kubectl("create", "namespace", NAMESPACE)
    login = f"--from-literal=password={PASSWORD}"
    plane.kubectl("create", "secret", "generic", "prometheus-login", login, f"--namespace={NAMESPACE}")
    where = (f"--kubeconfig={plane.kubeconfig}", f"--namespace={NAMESPACE}")
    done = helm("install", "forecaster", str(CHART), *where, "-f-", given=yaml.safe_load(FIVE_LINES % guarded.url))
    assert done.returncode == 0, done.stderr
    assert httpx.get(f"{guarded.url}/api/v1/query?query=up").status_code == httpx.codes.UNAUTHORIZED

    runs = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/forecaster-certificates"
    certificates = plane.api.get(runs)["spec"]["jobTemplate"]
    made = subprocess.run(
        [*command_of(certificates), f"--kubeconfig={plane.account('forecaster-certificates', NAMESPACE)}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    deployment = plane.api.read("Deployment", "forecaster", NAMESPACE)
    with in_place_of_the_pod(deployment, plane, tmp_path / "root") as state:
        reader = TableReader(table_path(state))
        reader.refresh()
        assert reader.table
        views = [reader.table.view(entry) for entry in reader.table.entries]
    assert len(views) >= 30
    assert sum(view.replicas.recommended is not None for view in views) >= 10


def command_of(template: Any) -> list[str]:
    """The command of a pod's first container, by this Python."""
    (container, *_) = template["spec"]["template"]["spec"]["containers"]
    return [sys.executable, "-m", "forecaster", *container["args"]]


@contextmanager
def in_place_of_the_pod(deployment: Any, plane: ControlPlane, root: Path) -> Iterator[Path]:
    """Run the container's command on its volumes below `root`; give the folder of its state."""
    pod = deployment["spec"]["template"]["spec"]
    (container, *_) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    folders = {mount["mountPath"]: root / mount["mountPath"][1:] for mount in container["volumeMounts"]}
    for mount in container["volumeMounts"]:
        folders[mount["mountPath"]].mkdir(parents=True)
        for name, content in content_of(volumes[mount["name"]], plane).items():
            (folders[mount["mountPath"]] / name).write_bytes(moved(content, root))
    http, https = free_ports(2)
    environment = os.environ | {
        "FORECASTER__SERVING__PORT": str(http),
        "FORECASTER__SERVING__SECURE__PORT": str(https),
        "FORECASTER__SERVING__SECURE__KUBECONFIG": str(plane.account("forecaster", NAMESPACE)),
        **{variable["name"]: variable["value"] for variable in container["env"] if "value" in variable},
    }
    command = [moved(word.encode(), root).decode() for word in command_of(deployment)]
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stderr=log)
    try:
        wait_until(lambda: is_ready(http), goal="the first table")
        yield root / "var/lib/forecaster"
    finally:
        end(process)


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False


def content_of(volume: Any, plane: ControlPlane) -> dict[str, bytes]:
    """Files of a volume, as a kubelet makes them of a Secret or a ConfigMap."""
    if secret := volume.get("secret"):
        data = plane.api.read("Secret", secret["secretName"], NAMESPACE)["data"]
        return {name: base64.b64decode(value) for name, value in data.items()}
    if settings := volume.get("configMap"):
        data = plane.api.read("ConfigMap", settings["name"], NAMESPACE)["data"]
        return {name: value.encode() for name, value in data.items()}
    return {}


def moved(text: bytes, root: Path) -> bytes:
    """Paths of the container as paths below `root`."""
    for path in (b"/etc/forecaster", b"/var/lib/forecaster"):
        text = text.replace(path, str(root).encode() + path)
    return text
