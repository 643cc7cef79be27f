"""`forecaster release` and `resume` go to the cluster in which the service acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.kube.config import ClientConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("command", ["release", "resume"])
def test_the_kubeconfig_of_the_settings_is_used(command: str, tmp_path: Path) -> None:
    settings, acting = tmp_path / "settings.yaml", tmp_path / "acting"
    settings.write_text(f"acting: {{kubeconfig: {acting}}}")
    result = CliRunner(env={"KUBECONFIG": str(tmp_path / "another")}).invoke(app, [command, "--config", str(settings)])
    assert isinstance(result.exception, ClientConfigError)
    assert str(acting) in str(result.exception)
