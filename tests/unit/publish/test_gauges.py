from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from forecaster.domain.decision import Reason
from forecaster.domain.policy import Policy
from forecaster.publish.decision_history import AccuracyView, WorkloadHistory
from forecaster.publish.gauges import FAMILIES, Level, workload_gauges
from forecaster.publish.table import TableRow
from forecaster.publish.views import recommendation_view
from tests.support.published import offer_of
from tests.support.recommendations import NOON, recommendation, signal_view, workload_id

WEB = {"namespace": "shop", "kind": "Deployment", "workload": "web"}
CPU = {**WEB, "signal": "cpu"}


def row(mode: str = "publish", **changed: object) -> TableRow:
    one = replace(recommendation(), signals=(signal_view("cpu"),))
    past = WorkloadHistory(accuracy=(AccuracyView("cpu", 10.0, 0.8, 0.85, 0.12),))
    one = replace(one, **changed)  # type: ignore[arg-type]
    return TableRow(recommendation_view(one), offer_of(one, Policy.model_validate({"mode": mode})), past)


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def gauge(level: Level, family: str, labels: dict[str, str], *rows: TableRow) -> float | None:
    return samples(workload_gauges(rows or (row(),), level, NOON).decode()).get((family, frozenset(labels.items())))


def test_counts_say_what_there_is_and_what_there_should_be() -> None:
    assert gauge("counts", "forecaster_workload_replicas", WEB) == 3
    assert gauge("counts", "forecaster_workload_recommended_replicas", WEB) == 5
    assert gauge("counts", "forecaster_forecast_peak", {**CPU, "quantile": "0.9", "horizon": "480"}) == 1.75
    assert gauge("counts", "forecaster_workload_measured", CPU) == 1.234567
    assert gauge("counts", "forecaster_workload_sampled_timestamp_seconds", CPU) == 1772366400


def test_the_offer_has_the_names_of_the_external_metrics() -> None:
    assert gauge("counts", "forecaster_demand", CPU) == 1.75
    assert gauge("counts", "forecaster_replicas", WEB) == 5
    assert gauge("counts", "forecaster_floor", WEB) == 5


def test_a_workload_that_is_only_observed_has_nothing_to_scale_by() -> None:
    text = workload_gauges([row(mode="observe")], "all", NOON).decode()
    assert not any(
        line.startswith(("forecaster_demand", "forecaster_replicas", "forecaster_floor")) for line in text.splitlines()
    )
    assert "forecaster_forecast_peak" in text


def test_what_is_not_known_has_no_series() -> None:
    blind = replace(signal_view("cpu"), measured=None, measured_at=None, forecast=None)
    held = row(replicas=recommendation(replicas=None, reason=Reason.NO_DATA).replicas, signals=(blind,))
    text = workload_gauges([held], "all", NOON).decode()
    assert "forecaster_workload_recommended_replicas" not in text
    assert "forecaster_demand" not in text
    assert "forecaster_forecast_peak" not in text
    assert "forecaster_workload_measured" not in text
    assert "NaN" not in text


def test_all_adds_quantiles_by_horizon_verdict_and_error() -> None:
    forecast = "forecaster_forecast_peak"
    at = {**CPU, "horizon": "480"}
    assert gauge("all", forecast, {**at, "quantile": "0.1"}) == 1.1
    assert gauge("all", forecast, {**at, "quantile": "0.5"}) == 1.4
    assert gauge("all", forecast, {**at, "quantile": "0.95"}) == 1.9
    assert gauge("all", "forecaster_workload_verdict", {**WEB, "verdict": "scale", "reason": "forecast"}) == 1
    assert gauge("all", "forecaster_forecast_coverage_ratio", CPU) == 0.8
    assert gauge("all", "forecaster_forecast_coverage_aim_ratio", CPU) == 0.85
    assert gauge("all", "forecaster_forecast_error_ratio", CPU) == 0.12
    assert gauge("counts", forecast, {**at, "quantile": "0.5"}) is None


@pytest.mark.parametrize(("level", "series"), [("none", 0), ("counts", 8), ("all", 15)])
def test_a_level_bounds_the_series_of_a_workload_with_one_signal(level: Level, series: int) -> None:
    assert len(samples(workload_gauges([row()], level, NOON).decode())) == series


def test_a_family_is_one_block_however_many_workloads_there_are() -> None:
    rows = [row(id=workload_id(name)) for name in ("a", "b", "c")]
    text = workload_gauges(rows, "all", NOON).decode()
    assert [text.count(f"# TYPE {family} gauge") for family in FAMILIES] == [1] * len(FAMILIES)


def test_odd_names_are_escaped() -> None:
    odd = row(id=workload_id('a"b\\c\nd'))
    assert gauge("counts", "forecaster_workload_replicas", {**WEB, "workload": 'a"b\\c\nd'}, odd) == 3
