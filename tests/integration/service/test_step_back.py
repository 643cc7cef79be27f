"""The way back: what today's program wrote is opened by the first release, which is taken from the history here."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from forecaster.store.ledger import SqlLedger
from tests.support.builders import NOON, after, workload_id
from tests.support.composed import composed, published, recorded_cluster, tick

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).parents[3]
FIRST = "9f10bbf5ed2bc6536e9cba36a02bff3039497c5e"
"""The commit of 0.1.0 from which `tests/data/state-0.1.0.tar.gz` is."""

GOES_ON = """
import json, sys
from pathlib import Path
from tests.support.builders import after
from tests.support.composed import composed, published, recorded_cluster, tick

def counts():
    table = published(state)
    return {entry.name: table.published(entry).replicas.value for entry in table.entries}

state = Path(sys.argv[1])
with recorded_cluster() as cluster:
    before = counts()
    with composed(cluster, state) as service:
        restored = service.cycle.decider.observed.state.rows
        tick(service, after(1))
print(json.dumps({"before": before, "restored": restored, "after": counts()}))
"""
"""Program that reads the table that is there, goes on for a minute, and prints what the first release made of it."""


@pytest.fixture
def first_release(tmp_path: Path, *, long: bool) -> Path:
    """Files of the first release, without the paths of today's."""
    if not long:
        pytest.skip("`./dev test --long` goes back to the first release")
    packed = subprocess.run(["git", "archive", FIRST], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone is without the history that {FIRST[:7]} is in")
    folder = tmp_path / "first"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def gone_on(release: Path, state: Path) -> tuple[dict[str, Any], str]:
    """Return what the other program prints, and its log."""
    command = [sys.executable, "-c", GOES_ON, str(state)]
    environment = {**os.environ, "PYTHONPATH": str(release)}
    done = subprocess.run(command, cwd=release, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    *log, printed = done.stdout.strip().splitlines()
    return json.loads(printed), "\n".join(log)


def test_the_first_release_goes_on_from_the_state_of_today_and_today_from_its(
    first_release: Path, tmp_path: Path
) -> None:
    state, key = tmp_path / "state", tmp_path / "key"
    key.write_text("k" * 64)  # the first release knows no signatures
    signed = {"directory": str(state), "key_file": str(key)}
    with recorded_cluster() as cluster:
        with composed(cluster, state, state=signed) as service:
            for minute in (-2, -1, 0):
                tick(service, after(minute))
        table = published(state)
        offers = {entry.name: table.published(entry) for entry in table.entries}
        decided = {name: offer and offer.replicas and offer.replicas.value for name, offer in offers.items()}
        assert None not in decided.values()

        printed, log = gone_on(first_release, state)

        assert printed == {"before": decided, "restored": 2, "after": decided}
        assert "not_restored" not in log
        # The tables of the ledger are newer: refused in words, left as they are, and nothing else waits for them.
        assert "version 2 of the tables, and this forecaster knows 1; install the forecaster that made it" in log
        with composed(cluster, state, state=signed) as service:
            assert service.cycle.decider.observed.state.rows == 2
            tick(service, after(2))
    ledger = SqlLedger(f"sqlite:///{state / 'ledger.sqlite'}", keep=after(60 * 24) - NOON)
    assert ledger.changes_of([workload_id("web")], after(-60))[workload_id("web")]
    ledger.close()
