"""A table that cannot be written: the process that serves the old one says so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from forecaster.app.child import ServingProcess
from forecaster.app.serve import table_path
from forecaster.serving.options import Address
from tests.support.builders import NOON, after
from tests.support.composed import composed, recorded_cluster, tick
from tests.support.full_disk import full_disk
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


@contextmanager
def lost(directory: Path) -> Iterator[None]:
    """Nothing can be written to the directory or removed from it, as on a file system that has become read-only."""
    aside = directory.rename(directory.with_name("aside"))
    directory.touch()
    yield
    directory.unlink()
    aside.rename(directory)


@pytest.mark.parametrize("harm", [lambda _directory: full_disk(), lost], ids=["full", "lost"])
def test_the_serving_process_counts_tables_that_could_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: Callable[[Path], AbstractContextManager[None]]
) -> None:
    state = tmp_path / "state"
    serving = ServingProcess(table_path(state), Address("127.0.0.1", 0))

    def counts(outcome: str, count: int) -> bool:
        metrics = httpx.get(f"http://{serving.address}/metrics", timeout=PATIENCE).text
        return f'forecaster_serving_table_writes_total{{outcome="{outcome}"}} {count}.0' in metrics

    with recorded_cluster() as cluster, composed(cluster, state, tell=serving.tell) as service:
        serving.start()
        try:
            tick(service, NOON)
            wait_until(lambda: counts("written", 1), goal="the first table")
            with harm(state):
                tick(service, after(1))
            wait_until(lambda: counts("failed", 1), goal="word of the second table")
        finally:
            serving.stop()
    assert "table_not_written" in capsys.readouterr().out
