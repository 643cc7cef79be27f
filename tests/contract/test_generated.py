"""Generated files of deploy/ are up to date."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from deploy.generate.kustomized import DEPLOY
from tests.support.control_plane.binaries import find


def test_the_chart_and_the_roles_are_those_of_their_sources() -> None:
    if not (find("kubectl") or shutil.which("kubectl")):
        pytest.skip("no kubectl: run .ci/control-plane")
    command = [sys.executable, "-m", "deploy.generate", "--check"]
    done = subprocess.run(command, cwd=DEPLOY.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
