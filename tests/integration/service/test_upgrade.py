"""Files of the first release are read by the present code, and files of a later one are refused in words."""

from __future__ import annotations

import sqlite3
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.cycle.observed import VERSION, Observed
from forecaster.domain.signal import CPU
from forecaster.errors import StoreError
from forecaster.publish.reader import TableReader
from forecaster.store.history import HistorySettings, HistoryStore
from forecaster.store.ledger import SqlLedger
from forecaster.store.snapshot import SNAPSHOT_MAGIC, Snapshots
from forecaster.store.state import CHECKSUM, ObservedFile
from tests.support.builders import NOON, after, workload_id
from tests.support.composed import composed, published, recorded_cluster, table_path, tick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.composed import Cluster

FIRST = Path(__file__).parents[2] / "data" / "state-0.1.0.tar.gz"
"""State directory of 0.1.0 after three cycles before `NOON`, of the two workloads of `recorded_cluster`."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    # Not `extractall(filter=...)`: Python 3.11 has it from 3.11.4 on only, and Debian 12 comes with 3.11.2.
    with tarfile.open(FIRST) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:
                (folder / Path(member.name).name).write_bytes(content.read())
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with recorded_cluster() as running:
        yield running


def test_a_service_goes_on_from_the_state_of_the_first_release(
    cluster: Cluster, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with composed(cluster, state) as service:
        restored = service.cycle.decider.observed.state.rows
        tick(service, after(1))
    log = capsys.readouterr().out
    assert restored == 2
    assert "state_refused" not in log, log
    table = published(state)
    assert {entry.name: table.view(entry).replicas.recommended is not None for entry in table.entries} == {
        "web": True,
        "cart": True,
    }


def test_decisions_of_the_first_release_are_remembered(state: Path) -> None:
    ledger = SqlLedger(f"sqlite:///{state / 'ledger.sqlite'}", keep=after(60 * 24) - NOON)
    try:
        assert ledger.changes_of([workload_id("web")], after(-60))[workload_id("web")]
    finally:
        ledger.close()


def test_what_is_written_today_has_all_that_the_first_release_reads(state: Path) -> None:
    """During a rollout both versions read each other's state; a nightly test runs the first release on it."""
    before = PersistedState.read(state / "observed.json")
    ObservedFile(state / "observed.json", restored(state)).save()
    now = PersistedState.read(state / "observed.json")
    assert now.version == before.version
    assert before.state.keys() <= now.state.keys()
    assert before.gates.keys() <= now.gates.keys()
    for name in before.state.keys() - {"changes", "changes_at"}:  # these are empty today
        assert (now.state[name].type, now.state[name].shape) == (before.state[name].type, before.state[name].shape)


class PersistedColumns(msgspec.Struct):
    """A column as the first release describes it."""

    type: str
    shape: tuple[int, ...]


class PersistedState(msgspec.Struct):
    """Parts of the state that the first release reads."""

    version: int
    state: dict[str, PersistedColumns]
    gates: dict[str, PersistedColumns] = {}

    @classmethod
    def read(cls, file: Path) -> PersistedState:
        return msgspec.json.decode(file.read_bytes()[CHECKSUM.size :], type=cls)


def restored(state: Path) -> Observed:
    observed = Observed()
    assert ObservedFile(state / "observed.json", observed).load()
    return observed


class TestALaterRelease:
    def test_has_another_snapshot(self, state: Path) -> None:
        file = state / "history.snapshot"
        file.write_bytes(file.read_bytes().replace(SNAPSHOT_MAGIC, b"fcRings9", 1))
        with pytest.raises(StoreError, match="not a snapshot of this version; starting without it"):
            Snapshots(file, HistoryStore((CPU,), HistorySettings(), now=NOON)).load()

    def test_has_another_state(self, state: Path) -> None:
        file = state / "observed.json"
        later = file.read_bytes()[CHECKSUM.size :].replace(b'"version":%d' % VERSION, b'"version":99', 1)
        file.write_bytes(CHECKSUM.pack(zlib.crc32(later)) + later)
        with pytest.raises(StoreError, match=f"version 99, and not {VERSION}.*judging anew"):
            ObservedFile(file, Observed()).load()

    def test_has_another_table(self, state: Path) -> None:
        file = table_path(state)
        file.write_bytes(b"fcTable9" + file.read_bytes()[8:])
        reader = TableReader(file, lambda: after(3))
        reader.refresh()
        assert "not a table of this version" in reader.fault

    def test_has_another_database(self, state: Path) -> None:
        with sqlite3.connect(state / "ledger.sqlite") as connection:
            connection.execute("UPDATE alembic_version SET version_num = 'later'")
        connection.close()
        ledger = SqlLedger(f"sqlite:///{state / 'ledger.sqlite'}", keep=after(60 * 24) - NOON)
        with pytest.raises(StoreError, match="later"):
            ledger.latest()
        ledger.close()
