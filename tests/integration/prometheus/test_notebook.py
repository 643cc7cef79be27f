"""A notebook on a week of a real Prometheus: one line of it is another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from forecaster.config.settings import parse
from notebooks.render import HERE, executed
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import FilledWeek
    from tests.support.prometheus import Binaries


@pytest.mark.prometheus
@pytest.mark.slow
def test_looking_at_a_workload_of_a_real_prometheus(
    prometheus_binaries: Binaries, filled_week: FilledWeek, tmp_path: Path
) -> None:
    source = (HERE / "2_look.py").read_text(encoding="utf-8")
    with RealPrometheus(prometheus_binaries, filled_week.data) as server:
        line = f'panel = measured("{server.url}", "cpu", days=6)'
        (tmp_path / "2_look.py").write_text(source.replace('panel = recorded("cpu")', line), encoding="utf-8")
        notebook = executed(tmp_path / "2_look.py")
    assert line in notebook.cells[1].source
    parse(yaml.safe_load(notebook.cells[-1].outputs[-1].text), "the last cell")
    shown = "".join(output.data["text/html"] for output in notebook.cells[1].outputs)
    assert "Panel of 33 series" in shown
