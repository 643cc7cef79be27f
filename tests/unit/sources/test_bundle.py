"""Export bundles: what is written is read again, and nothing of a foreign file runs or fills memory."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.errors import SourceRefused, StoreError
from forecaster.sources.bundle import FORMAT, Bundle, Manifest, read_bundle, write_bundle

if TYPE_CHECKING:
    from pathlib import Path

WEB = Workload(
    WorkloadId("shop", "Deployment", "web"),
    3,
    3,
    Resources(cpu_request=0.5),
    Autoscaler("web", 2, 9, (Target("cpu", TargetType.UTILIZATION, 0.7),)),
)


def bundle() -> Bundle:
    manifest = Manifest(
        format=FORMAT,
        version="1",
        origin="measured",
        start=datetime(2026, 3, 1, tzinfo=UTC),
        minutes=4,
        signals=("cpu",),
        workloads=(WEB,),
        settings={"policy": {"horizontal": {"quantile": 0.95}}},
    )
    return Bundle(manifest, {CPU: np.array([[1, np.nan, 2, 3]], np.float32)}, [{"name": "web"}], [{"at": "x"}])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "week.zip", bundle())
    return tmp_path / "week.zip"


def with_member(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path) as old:
        members = {member: old.read(member) for member in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for member, text in {**members, name: content}.items():
            new.writestr(member, text)
    return path


def array(values: np.ndarray, *, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=pickled)
    return file.getvalue()


def test_what_is_written_is_read_again(path: Path) -> None:
    restored = read_bundle(path)
    assert restored.manifest == bundle().manifest
    np.testing.assert_array_equal(restored.values[CPU], bundle().values[CPU])
    assert (restored.decisions, restored.changes) == ([{"name": "web"}], [{"at": "x"}])
    assert not list(path.parent.glob("*.part"))


def test_it_is_zip_json_and_arrays_that_others_can_read(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("manifest.json"))["workloads"][0]["autoscaler"]["max_replicas"] == 9
        assert np.load(io.BytesIO(archive.read("history/cpu.npy"))).shape == (1, 4)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("manifest.json", b"{}", "not an export bundle"),
        ("decisions.json", b"nonsense", "not an export bundle"),
        ("history/cpu.npy", b"", "not an export bundle"),
        ("history/cpu.npy", b"\x93NUMPY\x01\x00\x76\x00" + b"(" * 118, "not an export bundle"),
        ("history/cpu.npy", array(np.zeros((9, 4), np.float32)), "the manifest says float32"),
        ("history/cpu.npy", array(np.array([[1, "a"]], object), pickled=True), "the manifest says float32"),
    ],
)
def test_a_damaged_or_forged_bundle_is_refused(path: Path, name: str, content: bytes, fault: str) -> None:
    with pytest.raises(SourceRefused, match=fault):
        read_bundle(with_member(path, name, content))


def test_a_bundle_of_another_format_says_so(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    with pytest.raises(SourceRefused, match="of format 'forecaster-export/9'"):
        read_bundle(
            with_member(path, "manifest.json", json.dumps({**manifest, "format": "forecaster-export/9"}).encode())
        )


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("minutes", 10**12, "1 to 1000000 minutes"),
        ("minutes", 0, "1 to 1000000 minutes"),
        ("start", "2026-03-01T00:00:00", "from an instant with a time zone"),
        ("start", "0001-01-01T00:00:00Z", "from an instant with a time zone"),
        ("start", "9999-12-31T23:00:00Z", "from an instant with a time zone"),
    ],
)
def test_a_span_that_no_export_has_is_refused(path: Path, field: str, value: object, fault: str) -> None:
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    with pytest.raises(SourceRefused, match=fault):
        read_bundle(with_member(path, "manifest.json", json.dumps({**manifest, field: value}).encode()))


def test_a_bundle_with_a_password_is_refused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(SourceRefused, match="is encrypted"):
        read_bundle(path)


def test_what_is_no_demand_is_a_gap(path: Path) -> None:
    values = array(np.array([[-1, np.inf, np.nan, 3]], np.float32))
    demand = read_bundle(with_member(path, "history/cpu.npy", values)).values[CPU]
    np.testing.assert_array_equal(demand, np.array([[np.nan, np.nan, np.nan, 3]], np.float32))


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("timestamp,value\n")
    with pytest.raises(SourceRefused, match="not an export bundle"):
        read_bundle(tmp_path / "a.zip")


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        write_bundle(tmp_path / "none" / "week.zip", bundle())
