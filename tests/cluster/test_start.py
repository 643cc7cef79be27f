"""The start of the README, line by line: with kubectl alone and with Helm alone, and away again without a trace."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.control_plane.binaries import CORE, cache, why_not
from tests.support.control_plane.deployed import NAMESPACE, ROOT
from tests.support.control_plane.everything import differences, everything
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.packaging import tool
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own: what other tests leave is no part of the comparison."""
    if absent := why_not(*CORE):
        pytest.skip(absent)
    with ControlPlane(tmp_path_factory.mktemp("start"), services="127.133") as running:
        running.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        wait_until(lambda: running.api.has("ServiceAccount", "default", "shop"), goal="the account of the namespace")
        running.api.create(deployment("checkout", 1), "shop")
        running.api.create(external_hpa("checkout", target="1"), "shop")
        yield running


def lines_of(page: str, title: str) -> list[str]:
    """The commands of a section about a cluster, without what they say about themselves."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^ {4,}((?:kubectl|helm) .*?)(?: {2,}#.*)?$", section, re.MULTILINE)


def run(plane: ControlPlane, line: str) -> str:
    """A line as a user types it, in the folder of the project."""
    environment = {
        "PATH": f"{cache()}:{os.environ['PATH']}",
        "HOME": str(plane.folder),
        "KUBECONFIG": str(plane.kubeconfig),
    }
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("program", ["kubectl", "helm"])
def test_the_lines_of_the_readme_install_it_and_take_it_away(plane: ControlPlane, program: str) -> None:
    tool(program)
    before = everything(plane)
    lines = lines_of("README.md", "Run it in your cluster")
    install, annotate, *undo = [line for line in lines if is_for(line, program)]
    run(plane, install)
    wait_until(lambda: replicas(plane.api, "forecaster", NAMESPACE).ready == 1, goal="the pod")
    run(plane, annotate)
    assert plane.api.read("HorizontalPodAutoscaler", "checkout", "shop")["metadata"]["annotations"]
    for line in undo:
        run(plane, in_no_pod(line, plane))
    assert differences(before, everything(plane)) == {}


def is_for(line: str, program: str) -> bool:
    """Whether users who install by that program type this line."""
    return not line.startswith("helm") if program == "kubectl" else " -k " not in line


def in_no_pod(line: str, plane: ControlPlane) -> str:
    """Replace a command in a pod, which no test cluster runs, by the command with the same account."""
    if " exec " not in line:
        return line
    rights = plane.account("forecaster", NAMESPACE)
    return f"{ROOT}/.venv/bin/python -m {line.partition(' -- ')[2]} --kubeconfig={rights}"


def test_the_page_that_begins_installs_by_the_same_lines() -> None:
    forwards, *installs = reversed(lines_of("docs/start.md", "Let it run in your cluster"))
    assert "port-forward" in forwards
    assert len(installs) == 2
    assert set(installs) <= set(lines_of("README.md", "Run it in your cluster"))
