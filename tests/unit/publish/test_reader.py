from __future__ import annotations

import asyncio
import gc
import zlib
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from forecaster.errors import StoreError
from forecaster.publish.reader import TableReader, watching
from forecaster.publish.table import TABLE_MAGIC, TABLE_PREFIX
from tests.support.full_disk import full_disk
from tests.support.recommendations import NOON, recommendation, workload_id
from tests.support.tables import publish

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    record = msgspec.to_builtins(table.view(entry))
    assert record["replicas"] == {
        "now": 3,
        "recommended": 5,
        "verdict": "up",
        "reason": "forecast",
        "message": "the forecast asks for 5, the measured demand for 4",
    }
    assert record["at"] == "2026-03-01T12:00:00Z"
    assert record["signals"][0]["unit"] == "cores"


def test_while_holding_the_recommended_count_is_null_and_never_zero(path: Path) -> None:
    table = read(publish(path, recommendation(replicas=None))).table
    assert table is not None
    record = msgspec.to_builtins(table.view(table.entries[0]))
    assert record["replicas"]["recommended"] is None
    assert record["replicas"]["message"] == "no samples for 20 min"


def test_before_the_first_table_there_is_none_and_a_reason(path: Path) -> None:
    reader = read(path)
    assert reader.table is None
    assert "no table has been published" in reader.fault


def test_a_table_that_may_not_be_read_is_not_one_that_was_never_published(path: Path) -> None:
    path.write_bytes(b"")
    assert "cannot be read: Not a directory" in read(path / "table").fault


def test_a_replaced_table_is_seen_and_the_old_one_stays_readable(path: Path) -> None:
    reader = read(publish(path))
    old = reader.table
    publish(path, recommendation(workload_id("api")))
    reader.refresh()
    assert reader.table is not None
    assert old is not None
    assert reader.table.named("shop", "web") == []
    assert old.view(old.entries[0]).name == "web"


def test_a_replaced_table_that_is_read_no_more_is_closed_at_once(path: Path) -> None:
    """Otherwise its file keeps its place on the disk until the next full collection of garbage, perhaps days later."""
    reader = read(publish(path))
    gc.disable()
    try:
        for _ in range(3):
            assert reader.table is not None
            assert reader.table.entries[0].name == "web"
            publish(path)
            reader.refresh()
        assert f"{path} (deleted)" not in set(open_files())
    finally:
        gc.enable()


def open_files() -> Iterator[str]:
    """Files that this process has open, by name."""
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one by which this folder is read
            yield str(link.readlink())


def replace_with(path: Path, content: bytes) -> None:
    """Replace a table as every table is replaced: by renaming."""
    new = path.with_name("new")
    new.write_bytes(content)
    new.replace(path)


DAMAGES = {
    "truncated": (lambda content: content[:-10], "it is torn"),
    "flipped": (lambda content: content[:-10] + b"0" + content[-9:], "it is damaged"),
    "flipped in the header": (lambda content: content[:40] + b"0" + content[41:], "it is damaged"),
    "another version": (lambda content: b"fcTable2" + content[8:], "not a table of this version"),
    "foreign": (lambda content: b"PNG!" + content, "not a table of this version"),
    "empty": (lambda _content: b"", "not a table of this version"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_leaves_the_last_good_table_and_says_why(path: Path, damage: str) -> None:
    reader = read(publish(path))
    good, (damaged, why) = reader.table, DAMAGES[damage]
    replace_with(path, damaged(path.read_bytes()))
    reader.refresh()
    assert reader.table is good
    assert reader.failures == 1
    assert "cannot be served" in reader.fault
    assert why in reader.fault


def test_a_file_that_is_cut_in_place_takes_no_number_with_it(path: Path) -> None:
    reader = read(publish(path, mode="publish"))
    path.write_bytes(path.read_bytes()[:100])
    reader.refresh()
    assert reader.table is not None
    (entry,) = reader.table.named("shop", "web")
    offer = reader.table.published(entry)
    assert offer is not None
    assert offer.replicas is not None
    assert offer.replicas.value == 5


def test_a_table_of_a_later_instant_is_refused(path: Path) -> None:
    """The table would count as fresh until that instant, whatever happens to the cycles before."""
    reader = TableReader(publish(path), lambda: NOON)
    reader.refresh()
    good = reader.table
    publish(path, at=NOON + timedelta(hours=6))
    reader.refresh()
    assert reader.table is good
    assert "it is of 2026-03-01 18:00:00 UTC, which is still to come" in reader.fault


def header_of(columns: dict[str, Any], rows: int = 1) -> bytes:
    meta = {"published_at": "2026-03-01T12:00:00Z", "interval_seconds": 60.0, "version": "1"}
    return msgspec.json.encode({"meta": meta, "rows": rows, "signals": [], "columns": columns})


@pytest.mark.parametrize(
    ("header", "why"),
    [
        pytest.param(b'{"meta": 1}', "its header is not understood", id="another header"),
        pytest.param(header_of({"current": ["q", 1, 0, 8, 0]}), "lies outside of the file", id="nothing there"),
        pytest.param(header_of({"current": ["q", 1, -8, 8, 0]}), "lies outside of the file", id="before the columns"),
        pytest.param(header_of({"current": ["q", 1, 0, 0, 0]}, rows=9), "has other rows", id="too few rows"),
        pytest.param(header_of({"current": ["€", 1, 0, 0, 0]}), "of an unknown kind", id="an unknown kind"),
    ],
)
def test_a_sound_file_with_a_header_that_lies_is_refused(path: Path, header: bytes, why: str) -> None:
    path.write_bytes(
        TABLE_PREFIX.pack(TABLE_MAGIC, zlib.crc32(header), len(header), TABLE_PREFIX.size + len(header)) + header
    )
    assert why in read(path).fault


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


def test_a_look_that_finds_no_memory_is_not_the_last(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, looks = TableReader(publish(path)), []

    def refresh() -> None:
        looks.append(reader)
        if len(looks) == 2:
            raise MemoryError
        TableReader.refresh(reader)

    monkeypatch.setattr(reader, "refresh", refresh)
    monkeypatch.setattr("forecaster.publish.reader.TABLE_POLL_SECONDS", 0.001)

    async def served() -> None:
        async with asyncio.timeout(10), watching(reader):
            while len(looks) < 4:  # noqa: ASYNC110  a thread counts
                await asyncio.sleep(0.001)

    asyncio.run(served())
