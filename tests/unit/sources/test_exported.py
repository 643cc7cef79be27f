"""Exports come in any order, at any resolution, and are refused in one sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU, MEMORY, REQUESTS
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceRefused
from forecaster.sources.exported import Exported, read_export

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, text: str) -> Exported:
    path = folder / "demand.csv"
    path.write_text(text, encoding="utf-8")
    return read_export(path)


def test_a_sample_describes_the_minute_that_it_begins(tmp_path: Path) -> None:
    export = read(tmp_path, "timestamp,value\n2026-03-01T12:01:00Z,2\n2026-03-01T12:00:00Z,1\n")
    assert export.start == datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
    assert export.values[CPU].tolist() == [[1.0, 2.0]]
    assert export.ids == (WorkloadId("default", "Deployment", "series"),)


def test_a_coarser_sample_describes_every_minute_of_its_time(tmp_path: Path) -> None:
    export = read(tmp_path, "timestamp,value\n2026-03-01T12:00:00Z,1\n2026-03-01T12:02:00Z,3\n")
    assert export.values[CPU].tolist() == [[1.0, 1.0, 3.0, 3.0]]


def test_a_sample_that_is_missing_is_a_gap(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-01T12:0{minute}:00Z,{minute}\n" for minute in (0, 1, 2, 4))
    values = read(tmp_path, "timestamp,value\n" + rows).values[CPU]
    assert np.isnan(values[0, 3])
    assert values[0, 4] == 4.0


def test_workloads_and_signals_have_columns_of_their_own(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        "timestamp,workload,signal,value\n"
        "2026-03-01T12:00:00Z,shop/web,cpu,1\n2026-03-01T12:00:00Z,shop/web,requests,50\n"
        "2026-03-01T12:00:00Z,shop/api,cpu,2\n",
    )
    assert [str(id_) for id_ in export.ids] == ["shop/api", "shop/web"]
    assert export.values[CPU].tolist() == [[2.0], [1.0]]
    assert np.isnan(export.values[REQUESTS][0, 0])


def test_a_column_a_workload_is_read_as_grafana_exports_it(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        'Time,"{namespace=""shop"", workload=""web""}",shop/api\n2026-03-01 12:00:00,1,\n2026-03-01 12:01:00,2,5\n',
    )
    assert [str(id_) for id_ in export.ids] == ["shop/api", "shop/web"]
    assert export.values[CPU][1].tolist() == [1.0, 2.0]
    assert np.isnan(export.values[CPU][0, 0])


def test_of_two_names_for_one_thing_the_plainer_one_is_read(tmp_path: Path) -> None:
    text = "time,timestamp,value,series_id,workload\n12:00,2026-03-01T12:00:00Z,2,17,shop/web\n"
    assert read(tmp_path, text).ids == (WorkloadId("shop", "Deployment", "web"),)


def test_heads_may_be_capitalized_as_spreadsheets_write_them(tmp_path: Path) -> None:
    export = read(tmp_path, "Timestamp, Workload, Signal, Value\n2026-03-01T12:00:00Z, shop/web, memory, 7\n")
    assert (export.ids, export.values[MEMORY].tolist()) == ((WorkloadId("shop", "Deployment", "web"),), [[7.0]])


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="two columns are called 'shop/web'; add up those of"):
        read(tmp_path, "sep=,\nTime,shop/web,shop/web\n2026-03-01T12:00:00Z,1,2\n")


def test_a_namespace_has_a_column_of_its_own(tmp_path: Path) -> None:
    at = "2026-03-01T12:00:00Z"
    export = read(tmp_path, f"timestamp,namespace,workload,value\n{at},shop,web,1\n{at},test,web,2\n{at},a,b/c,3\n")
    assert [str(id_) for id_ in export.ids] == ["b/c", "shop/web", "test/web"]
    assert export.values[CPU].tolist() == [[3.0], [1.0], [2.0]]


def test_parquet_is_read_too(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "demand.parquet"
    at = pandas.date_range("2026-03-01T12:00:00Z", periods=3, freq="min")
    pandas.DataFrame({"series_id": "web", "timestamp": at, "value": [1.0, 2.0, 3.0]}).to_parquet(path)
    assert read_export(path).values[CPU].tolist() == [[1.0, 2.0, 3.0]]


def test_parquet_may_have_its_instants_as_index_and_any_name(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    at = pandas.date_range("2026-03-01T12:00:00Z", periods=2, freq="min")
    pandas.DataFrame({"shop/web": [1.0, 2.0]}, index=at).to_parquet(tmp_path / "DEMAND.PARQUET")
    exported = read_export(tmp_path / "DEMAND.PARQUET")
    assert (exported.ids, exported.values[CPU].tolist()) == ((WorkloadId("shop", "Deployment", "web"),), [[1.0, 2.0]])


@pytest.mark.parametrize("fraction", [1, 10**3, 10**6, 10**9], ids=["seconds", "ms", "us", "ns"])
def test_instants_may_be_numbers_since_1970(tmp_path: Path, fraction: int) -> None:
    export = read(tmp_path, f"timestamp,value\n{1772366400 * fraction},1\n{1772366460 * fraction},2\n")
    assert export.start.isoformat() == "2026-03-01T12:01:00+00:00"
    assert export.values[CPU].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("first", ["2026-03-01T12:00:00.5Z", "2026-03-01 12:00:00 UTC", "2026/03/01 13:00:00+01:00"])
def test_instants_may_be_written_in_several_ways(tmp_path: Path, first: str) -> None:
    exported = read(tmp_path, f"timestamp,value\n{first},1\n2026-03-01T12:01:00Z,2\n")
    assert exported.start == datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


def test_of_several_samples_in_a_minute_the_mean_counts_and_a_row_that_came_twice_once(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-01T12:0{i // 4}:{i % 4 * 15:02}Z,{i}\n" for i in (0, 1, 2, 3, 3, 4, 5, 6, 7))
    assert read(tmp_path, "timestamp,value\n" + rows).values[CPU].tolist() == [[1.5, 5.5]]


@pytest.mark.parametrize("first_line", ["", "\ufeffsep=;\n"], ids=["by a European spreadsheet", "by Grafana for Excel"])
def test_columns_may_be_parted_by_other_signs(tmp_path: Path, first_line: str) -> None:
    rows = "timestamp;workload;value\n2026-03-01T12:00:00Z;shop/web;1.5\n2026-03-01T12:01:00Z;shop/web;2.5\n"
    assert read(tmp_path, first_line + rows).values[CPU].tolist() == [[1.5, 2.5]]


def test_the_names_that_a_panel_has_are_read_again(tmp_path: Path) -> None:
    text = "timestamp,workload,value\n2026-03-01T12:00:00Z,payments/StatefulSet/ledger,1\n"
    assert read(tmp_path, text).ids == (WorkloadId("payments", "StatefulSet", "ledger"),)


def test_instants_may_be_of_several_time_zones_as_where_clocks_change(tmp_path: Path) -> None:
    export = read(tmp_path, "timestamp,value\n2026-03-29T01:59:00+01:00,1\n2026-03-29T03:00:00+02:00,2\n")
    assert export.values[CPU].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("timestamp\n2026-03-01T12:00:00Z\n", "no column 'value'"),
        ("at,web\n2026-03-01T12:00:00Z,1\n", "no column 'timestamp' among at, web; use one row a sample"),
        ("time,web\n2026-03-01T12:00:00Z,1.5 cores\n", "'web' holds '1.5 cores', which is no number; use one row"),
        ("timestamp,value\n", "no sample"),
        ("Time,shop/web\n", "no sample"),
        ("timestamp,value\nyesterday,1\n", "no instant"),
        ("timestamp,value\n2026-03-01T12:00:00Z,-1\n", "-1 is no demand"),
        ("timestamp,value\n2026-03-01T12:00:00Z,much\n", "much is no demand"),
        ("time,a,b\n2026-03-01T12:00:00Z,,1\n2026-03-01T12:01:00Z,inf,2\n", "inf is no demand"),
        ("timestamp,value\n2026-03-01T12:00:00Z,1\n,2\n", "a sample has no timestamp"),
        ("timestamp,workload,value\n1970-01-01T00:00:00Z,a,1\n2026-03-01T12:00:00Z,b,2\n", "1970-01-01 to 2026-03-01"),
        ("timestamp,workload,value\n2026-03-01T12:00:00Z,,1\n", "a sample has no workload"),
        ("timestamp,signal,value\n2026-03-01T12:00:00Z,disk,1\n", "signal 'disk' is not known"),
        ("timestamp,value\n2026-03-01T12:00:00Z,1\n2026-03-01T12:00:00Z,2\n", "two values at 2026-03-01T12:00:00Z"),
        ("timestamp,value\n01/03/2026 12:00,1\n01/03/2026 12:01,2\n", "not ISO8601 format.*; use 2026-03-01"),
        ("timestamp,value\n2026-03-01T12:00:00Z,1\n2026-03-03T12:00:00Z,2\n", "says too little"),
    ],
)
def test_what_is_no_demand_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SourceRefused, match=reason):
        read(tmp_path, text)


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match=r"not a readable CSV") as refused:
        read(tmp_path, "kind: HorizontalPodAutoscaler\nmetadata: x\nspec: {a, b, c}\n")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match=r"absent\.csv"):
        read_export(tmp_path / "absent.csv")
