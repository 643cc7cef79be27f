"""Dashboards and alerts on a real Prometheus that scrapes a running service: no panel is empty."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import yaml
from requests import get

from deploy.generate.grafana import BOARDS, queries_of
from forecaster.app.child import ServingProcess
from forecaster.app.serve import table_path
from forecaster.domain.window import MINUTE
from forecaster.serving.options import Address, ServingOptions
from tests.support.builders import NOON, hpa, workload
from tests.support.composed import composed, recorded_cluster, tick
from tests.support.prometheus import RealPrometheus
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.app.service import Service
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

RULES = Path(__file__).parents[3] / "deploy" / "rules" / "forecaster-alerts.yaml"
SCRAPED = 24
"""Two rounds of scoring, of which each takes a tenth of the workloads, after the first forecasts are over."""
CYCLES = 70
"""Then an hour is over, and decisions are compared with the HPA alone."""
FOR_EVER = timedelta(days=36_500).total_seconds()
CHOSEN = {"namespace": "shop", "workload": "web", "signal": "cpu", "__rate_interval": "1m", "datasource": "x"}
WITHOUT_VALUE = {"forecaster:seasonal_gates:ratio", "forecaster:incomplete_workloads:ratio"}
"""Recorded series without a value: fewer than five gates are open, and no workload is incomplete."""
FIRING = {"ForecasterAtMaximum", "ForecasterTableStale"}
"""Alerts that fire; ForecasterTableStale because the clock of this service stands at some noon."""
SCRAPING = """\
global: {{scrape_interval: 250ms}}
scrape_configs:
  - job_name: forecaster
    static_configs: [{{targets: ["{address}"]}}]
"""


@pytest.fixture(scope="module")
def scraped(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    """A Prometheus that has seen some cycles of a service; one of its workloads is at its maximum."""
    folder = tmp_path_factory.mktemp("monitoring")
    large = workload("web", autoscaler=replace(hpa(), max_replicas=40))
    full = workload("cart", replicas=2, autoscaler=replace(hpa(), name="cart-hpa", max_replicas=2))
    given: dict[str, Any] = {
        "serving": {"workload_metrics": "all"},
        "prices": {"core_hour": 1.0, "gib_hour": 0.1, "currency": "EUR"},
    }
    with (
        recorded_cluster([large, full]) as cluster,
        composed(cluster, folder / "state", **given) as service,
    ):
        tick(service, NOON)
        serving = ServingProcess(
            table_path(folder / "state"), Address("127.0.0.1", 0), options=ServingOptions(stale_after_seconds=FOR_EVER)
        )
        serving.start()
        try:
            config = SCRAPING.format(address=str(serving.address))
            with RealPrometheus(prometheus_binaries, folder / "data", config=config) as server:
                go_on(service, server)
                yield server
        finally:
            serving.stop()


def go_on(service: Service, server: RealPrometheus) -> None:
    """Run some cycles and have the first and the last ones scraped; a table has the metrics of the cycle before it."""
    for minute in range(1, CYCLES + 1):
        before = (NOON + (minute - 1) * MINUTE).timestamp()
        tick(service, NOON + minute * MINUTE)
        if SCRAPED < minute < CYCLES - 1:
            continue
        wait_until(
            lambda before=before: values(server, "forecaster_evaluation_timestamp_seconds") == [before],
            goal="a scrape",
            timeout=60,
        )


def api_data(server: RealPrometheus, path: str, **query: str) -> Any:
    return get(f"{server.url}/api/v1/{path}?{urlencode(query)}", timeout=30).json()["data"]


def values(server: RealPrometheus, expr: str) -> list[float]:
    return [float(row["value"][1]) for row in api_data(server, "query", query=expr)["result"]]


def expressions() -> list[tuple[str, str]]:
    return [
        (f"{board.title}: {panel.title}: {legend}", expr)
        for board in BOARDS
        for panel in board.panels
        for legend, expr in panel.queries.items()
    ]


def filled_in(expr: str) -> str:
    return re.sub(r"\$(\w+)", lambda match: CHOSEN[match[1]], expr)


def test_every_panel_shows_numbers(scraped: RealPrometheus) -> None:
    empty = [name for name, expr in expressions() if not [v for v in values(scraped, filled_in(expr)) if v == v]]  # noqa: PLR0124  NaN
    assert empty == []


def test_demand_is_drawn_in_the_unit_of_the_signal_that_is_chosen(scraped: RealPrometheus) -> None:
    (panel,) = [panel for board in BOARDS for panel in board.panels if panel.by_signal]
    answered = {unit for _, expr, unit in queries_of(panel) if values(scraped, filled_in(expr))}
    assert answered == {panel.by_signal[CHOSEN["signal"]]}


def test_every_choice_of_a_reader_has_values(scraped: RealPrometheus) -> None:
    for name, query in (variable for board in BOARDS for variable in board.variables.items()):
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", filled_in(query)).groups()  # type: ignore[union-attr]
        assert CHOSEN[name] in api_data(scraped, f"label/{label}/values", **{"match[]": selector})


def test_no_metric_is_unknown(scraped: RealPrometheus) -> None:
    """Neither a panel nor an alert reads an unknown series: series that have no samples yet are declared."""
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    read = {name for _, expr in expressions() for name in metrics_of(expr)} | {n for e in rules for n in metrics_of(e)}
    known = set(api_data(scraped, "label/__name__/values")) | set(api_data(scraped, "metadata"))
    documented = (RULES.parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    assert {name for name in read if name not in known and f"`{name}" not in documented} == set()


def metrics_of(expr: str) -> set[str]:
    return set(re.findall(r"\b(?:forecaster|process)_\w+", re.sub(r'"[^"]*"', "", expr)))


def test_every_recorded_series_has_a_value_and_every_alert_is_understood(scraped: RealPrometheus) -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    results = {rule.get("record") or rule["alert"]: values(scraped, rule["expr"]) for rule in rules}
    assert {name for name, numbers in results.items() if ":" in name and not numbers} == WITHOUT_VALUE
    assert results["ForecasterAtMaximum"] == [1.0]
    assert {name for name, numbers in results.items() if ":" not in name and numbers} == FIRING
