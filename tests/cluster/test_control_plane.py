"""The fixture of the control plane, on which the other tests of this folder rest."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.control_plane.plane import ControlPlane


def test_pods_become_ready(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.api.create(deployment("web", 3), namespace)
    wait_until(lambda: replicas(control_plane.api, "web", namespace).ready == 3, goal="three ready pods")


def test_kubectl_sees_the_nodes(control_plane: ControlPlane) -> None:
    assert control_plane.kubectl("get", "nodes", "-o", "name").split() == ["node/kwok-0", "node/kwok-1"]


def test_a_token_is_its_account_and_may_do_nothing(control_plane: ControlPlane, namespace: str) -> None:
    with (
        closing(control_plane.client(token=control_plane.token("default", namespace))) as somebody,
        pytest.raises(RefusedError, match=f"system:serviceaccount:{namespace}:default"),
    ):
        somebody.get("/api/v1/nodes")


def test_a_dry_run_refuses_what_the_api_server_would_refuse(control_plane: ControlPlane, namespace: str) -> None:
    wrong = deployment("web", 1)
    wrong["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "two"}}
    with pytest.raises(RefusedError, match="quantities must match"):
        control_plane.api.create(wrong, namespace, dry_run=True)


def test_it_ends_with_the_test_process_however_that_dies(tmp_path: Path) -> None:
    absent = why_not(*CORE)
    if absent:
        pytest.skip(absent)
    parent = textwrap.dedent(f"""
        import pathlib, time
        from tests.support.control_plane.processes import Programs
        programs = Programs(pathlib.Path({str(tmp_path)!r}))
        programs.start("etcd", "--data-dir=data", "--listen-client-urls=http://127.0.0.1:0",
            "--advertise-client-urls=http://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0")
        print(programs.pid("etcd"), flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as test:
        assert test.stdout
        child = int(test.stdout.readline())
        test.kill()
    wait_until(lambda: not running(child), goal="the end of etcd")


def running(pid: int) -> bool:
    """Whether there is such a process, other than a dead one that nobody has asked after."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
