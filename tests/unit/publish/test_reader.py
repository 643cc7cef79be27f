from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.errors import StoreError
from forecaster.publish.reader import TableReader
from forecaster.publish.table import MAGIC, PREFIX
from tests.support.full_disk import full_disk
from tests.support.recommendations import recommendation, workload_id
from tests.support.tables import publish

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def read(path: Path) -> TableReader:
    reader = TableReader(path)
    reader.refresh()
    return reader


def test_what_is_published_is_read(path: Path) -> None:
    table = read(publish(path)).table
    assert table is not None
    (entry,) = table.named("shop", "web")
    record = msgspec.json.decode(table.record(entry))
    assert record["replicas"] == {
        "now": 3,
        "recommended": 5,
        "verdict": "scale",
        "reason": "forecast",
        "message": "peak at 12:10",
    }
    assert record["at"] == "2026-03-01T12:00:00Z"
    assert record["signals"][0]["unit"] == "cores"


def test_while_holding_the_recommended_count_is_null_and_never_zero(path: Path) -> None:
    table = read(publish(path, recommendation(replicas=None))).table
    assert table is not None
    record = msgspec.json.decode(table.record(table.entries[0]))
    assert record["replicas"]["recommended"] is None
    assert record["replicas"]["message"] == "no samples for 20 min"


def test_before_the_first_table_there_is_none_and_a_reason(path: Path) -> None:
    reader = read(path)
    assert reader.table is None
    assert "no table has been published" in reader.fault


def test_a_replaced_table_is_seen_and_the_old_one_stays_readable(path: Path) -> None:
    reader = read(publish(path))
    old = reader.table
    publish(path, recommendation(workload_id("api")))
    reader.refresh()
    assert reader.table is not None
    assert old is not None
    assert reader.table.named("shop", "web") == []
    assert b'"name":"web"' in bytes(old.record(old.entries[0]))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty"])
def test_a_damaged_file_leaves_the_last_good_table(path: Path, damage: str) -> None:
    reader = read(publish(path))
    good, content = reader.table, path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[:-10],
            "flipped": content[:-10] + b"0" + content[-9:],
            "foreign": b"PNG!" + content,
            "empty": b"",
        }[damage]
    )
    reader.refresh()
    assert reader.table is good
    assert reader.failures == 1
    assert "cannot be served" in reader.fault


def test_a_sound_file_with_another_header_is_refused(path: Path) -> None:
    header = b'{"meta": 1}'
    path.write_bytes(PREFIX.pack(MAGIC, zlib.crc32(header), len(header)) + header)
    assert "its header is not understood" in read(path).fault


def test_a_damaged_file_is_reported_once_and_a_good_one_heals_it(path: Path) -> None:
    path.write_bytes(b"garbage")
    reader = read(path)
    reader.refresh()
    assert reader.failures == 1
    publish(path)
    reader.refresh()
    assert reader.fault == ""


def test_a_table_that_disappears_goes_on_being_served(path: Path) -> None:
    reader = read(publish(path))
    path.unlink()
    reader.refresh()
    assert reader.table is not None
    assert "is gone" in reader.fault


def test_a_directory_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="missing/table: cannot be published"):
        publish(tmp_path / "missing" / "table")


def test_on_a_full_disk_the_old_table_stays(path: Path) -> None:
    reader = read(publish(path))
    with full_disk(), pytest.raises(StoreError, match="the old one is still served"):
        publish(path, recommendation(workload_id("api")))
    reader.refresh()
    assert reader.table is not None
    assert reader.table.named("shop", "web") != []
    assert list(path.parent.iterdir()) == [path]
