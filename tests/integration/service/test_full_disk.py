"""A table that cannot be written: the process that serves the old one says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from forecaster.app.child import ServingProcess
from forecaster.app.serve import table_path
from forecaster.serving.options import Address
from tests.support.builders import NOON, after
from tests.support.composed import composed, recorded_cluster, tick
from tests.support.full_disk import full_disk
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_serving_process_counts_tables_that_could_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serving = ServingProcess(table_path(tmp_path), Address("127.0.0.1", 0))

    def counts(outcome: str, count: int) -> bool:
        metrics = httpx.get(f"http://{serving.address}/metrics", timeout=PATIENCE).text
        return f'forecaster_serving_table_writes_total{{outcome="{outcome}"}} {count}.0' in metrics

    with recorded_cluster() as cluster, composed(cluster, tmp_path, tell=serving.tell) as service:
        serving.start()
        try:
            tick(service, NOON)
            wait_until(lambda: counts("written", 1), what="the first table")
            with full_disk():
                tick(service, after(1))
            wait_until(lambda: counts("failed", 1), what="word of the second table")
        finally:
            serving.stop()
    assert "table_not_written" in capsys.readouterr().out
