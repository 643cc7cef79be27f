"""Containers and their risks survive the way through the table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forecaster.domain.decision import Reason, Resize
from forecaster.domain.workload import ContainerSize, Resources, Risk, Target, TargetType
from tests.support.published import table_of
from tests.support.recommendations import GIB, recommendation

if TYPE_CHECKING:
    from pathlib import Path

NOW, WANTED = Resources(1.0, None, GIB, GIB), Resources(0.5, None, GIB, GIB)


def test_sizes_of_containers_come_back_as_they_were(tmp_path: Path) -> None:
    app = ContainerSize("app", NOW, WANTED, Risk(0.05, None, 1.5), None, "500m")
    target = Target("cpu", TargetType.UTILIZATION, 0.8)
    row = replace(recommendation(), resources=Resize(WANTED, Reason.SIZED, "app: 500m", (app,), (target,)))
    table = table_of(tmp_path / "table", row)
    assert table.recommendation(table.entries[0]).resources == row.resources
