from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.report import ScoreSums
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import Gauges, TableFile
from forecaster.serving.metrics import FAMILIES, TableGauges
from tests.support.decided_records import record_publisher
from tests.support.recommendations import NOON, recommendation, signal_view, workload_id

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.publish.reader import PublishedTable, TableEntry

WEB = {"namespace": "shop", "kind": "Deployment", "workload": "web"}
CPU = {**WEB, "signal": "cpu"}


def row(**changed: Any) -> Recommendation:
    return replace(replace(recommendation(), signals=(signal_view("cpu"),)), **changed)


def table(folder: Path, level: Gauges, *rows: Recommendation, mode: str = "publish") -> PublishedTable:
    history = DecisionHistory()
    history.restore(NOON, (), [(workload_id(), "cpu", ScoreSums(10.0, 8.0, 8.5, 1.2, 10.0))])
    file = TableFile(folder / "table", interval=timedelta(minutes=1), version="1", gauges=level, history=history)
    record_publisher(file, Policies(Policy.model_validate({"mode": mode}))).publish(NOON, rows or [row()])
    reader = TableReader(file.path)
    reader.refresh()
    assert reader.table is not None
    return reader.table


def text_of(table: PublishedTable) -> str:
    async def whole() -> bytes:
        gauges = TableGauges()
        return b"".join([piece async for piece in gauges.pieces(table)])

    return asyncio.run(whole()).decode()


def test_the_text_of_a_large_fleet_is_made_on_when_the_scrape_that_asked_for_it_has_given_up(tmp_path: Path) -> None:
    served = table(tmp_path, "counts", *(row(id=workload_id(f"web-{i}")) for i in range(120)))
    made, entry, begun = [], served.entry, asyncio.Event()

    def counted(number: int) -> TableEntry:
        made.append(number)
        begun.set()
        return entry(number)

    async def scraped_again() -> int:
        gauges = TableGauges()
        scrape = asyncio.ensure_future(anext(gauges.pieces(served)))
        await begun.wait()
        scrape.cancel()
        return len([piece async for piece in gauges.pieces(served)])

    served.entry = counted  # type: ignore[method-assign]
    assert asyncio.run(scraped_again()) > 0
    assert made == list(range(120))


def samples(table: PublishedTable) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text_of(table))
        for sample in family.samples
    }


def gauge(table: PublishedTable, family: str, labels: dict[str, str]) -> float | None:
    return samples(table).get((family, frozenset(labels.items())))


def test_counts_say_what_there_is_and_what_there_should_be(tmp_path: Path) -> None:
    served = table(tmp_path, "counts")
    assert gauge(served, "forecaster_workload_replicas", WEB) == 3
    assert gauge(served, "forecaster_workload_recommended_replicas", WEB) == 5
    assert gauge(served, "forecaster_forecast_peak", {**CPU, "quantile": "0.9"}) == 1.75
    assert gauge(served, "forecaster_forecast_lead_seconds", WEB) == 180
    assert gauge(served, "forecaster_workload_measured", CPU) == 1.234567
    assert gauge(served, "forecaster_workload_sampled_timestamp_seconds", CPU) == 1772366400


def test_the_offer_has_the_names_of_the_external_metrics(tmp_path: Path) -> None:
    served = table(tmp_path, "counts")
    assert gauge(served, "forecaster_demand", CPU) == 1.75
    assert gauge(served, "forecaster_replicas", WEB) == 5
    assert gauge(served, "forecaster_floor", WEB) == 5


def test_a_workload_that_is_only_observed_has_nothing_to_scale_by(tmp_path: Path) -> None:
    text = text_of(table(tmp_path, "all", mode="observe"))
    offer = ("forecaster_demand", "forecaster_replicas", "forecaster_floor")
    assert not [line for line in text.splitlines() if line.startswith(offer)]
    assert "forecaster_forecast_peak" in text


def test_what_is_not_known_has_no_series(tmp_path: Path) -> None:
    blind = replace(signal_view("cpu"), measured=None, measured_at=None, forecast=None, forecast_replicas=None)
    held = row(replicas=recommendation(replicas=None, reason=Reason.NO_DATA).replicas, signals=(blind,))
    text = text_of(table(tmp_path, "all", held))
    assert "forecaster_workload_recommended_replicas" not in text
    assert "forecaster_demand" not in text
    assert "forecaster_forecast_peak" not in text
    assert "forecaster_workload_measured" not in text
    assert "NaN" not in text.replace("nan", "NaN")


def test_all_adds_quantiles_verdict_and_error(tmp_path: Path) -> None:
    served = table(tmp_path, "all")
    assert gauge(served, "forecaster_forecast_peak", {**CPU, "quantile": "0.1"}) == 1.1
    assert gauge(served, "forecaster_forecast_peak", {**CPU, "quantile": "0.5"}) == 1.4
    assert gauge(served, "forecaster_forecast_peak", {**CPU, "quantile": "0.95"}) == 1.9
    assert gauge(served, "forecaster_workload_verdict", {**WEB, "verdict": "up", "reason": "forecast"}) == 1
    assert gauge(served, "forecaster_forecast_coverage_ratio", CPU) == 0.8
    assert gauge(served, "forecaster_forecast_coverage_aim_ratio", CPU) == 0.85
    assert gauge(served, "forecaster_forecast_error_ratio", CPU) == 0.12


@pytest.mark.parametrize(("level", "series"), [("none", 0), ("counts", 9), ("all", 16)])
def test_a_level_bounds_the_series_of_a_workload_with_one_signal(tmp_path: Path, level: Gauges, series: int) -> None:
    assert len(samples(table(tmp_path, level))) == series


def test_a_family_is_one_block_however_many_workloads_there_are(tmp_path: Path) -> None:
    rows = [row(id=workload_id(name)) for name in ("api", "other", "web")]
    text = text_of(table(tmp_path, "all", *rows))
    assert [text.count(f"# TYPE {family} gauge") for family in FAMILIES] == [1] * len(FAMILIES)
    assert text.count("forecaster_demand{") == 3


def test_odd_names_are_escaped(tmp_path: Path) -> None:
    odd = row(id=workload_id('a"b\\c\nd'))
    served = table(tmp_path, "counts", odd)
    assert gauge(served, "forecaster_workload_replicas", {**WEB, "workload": 'a"b\\c\nd'}) == 3


def test_the_text_is_made_once_a_table(tmp_path: Path) -> None:
    async def twice(served: PublishedTable) -> tuple[int, int]:
        gauges = TableGauges()
        first = [piece async for piece in gauges.pieces(served)]
        served.columns["current"] = []
        return len(b"".join(first)), len(b"".join([piece async for piece in gauges.pieces(served)]))

    first, second = asyncio.run(twice(table(tmp_path, "counts")))
    assert first == second > 0
