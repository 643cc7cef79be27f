"""`forecaster doctor`: every fault has a check that names it and says what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.cli.doctor import verdict as verdict_of
from forecaster.sources.probe import probe
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.http_server import Reply, Server, matrix, page, vector, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.domain.report import Check
    from tests.support.http_server import HttpRequest

NOW = datetime(2024, 5, 6, 12, 0, 30, tzinfo=UTC)
WEB_LABELS = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web"}


class Cluster:
    """A Prometheus in good order, until a test breaks one of its facts."""

    def __init__(self, warnings: Sequence[str] = ()) -> None:
        self.warnings = warnings
        self.ahead = 0.0
        self.age = 20.0
        self.scrapes = 10
        self.history = timedelta(days=30)
        self.missing: tuple[str, ...] = ()

    def __call__(self, request: HttpRequest) -> Reply:
        if request.path.endswith("/status/buildinfo"):
            return Reply(body=b'{"status":"success","data":{"version":"3.15.0"}}')
        if "/status/" in request.path:
            return page(404, "not here")
        if request.path.endswith("/query_range"):
            return matrix()
        rows = self.rows(request.form["query"], float(request.form.get("time", 0)))
        return vector(*rows, warnings=self.warnings)

    def rows(self, query: str, at: float) -> list[tuple[dict[str, str], str]]:
        if query == "vector(time())":
            return [({}, str(NOW.timestamp() + self.ahead))]
        minute = NOW.replace(second=0, microsecond=0).timestamp()
        if any(metric in query for metric in self.missing) or minute - at > self.history.total_seconds():
            return []
        if query.startswith("max(timestamp("):
            return [({}, str(minute - self.age))]
        return [({}, str(self.scrapes)) if query.startswith("quantile(") else (WEB_LABELS, "1")]


def run_checks(cluster: Any, **queries: Any) -> dict[str, Check]:
    with Server(cluster) as server:
        settings = PrometheusSettings(url=server.url, retries=0)
        return {check.name: check for check in probe(settings, Queries(**queries), NOW)}


def bad(checks: dict[str, Check]) -> dict[str, Check]:
    return {name: check for name, check in checks.items() if not check.ok}


def test_in_good_order_everything_is_tried_and_nothing_is_wrong() -> None:
    checks = run_checks(Cluster())
    assert bad(checks) == {}
    assert checks.keys() >= {"address", "authentication", "clock", "version", "query cpu", "query replicas"}
    assert checks.keys() >= {"query requests", "sample age", "scrape interval", "history"}
    assert "3.15.0" in checks["version"].detail


def test_nobody_at_the_address() -> None:
    checks = {check.name: check for check in probe(PrometheusSettings(url="http://127.0.0.1:1"), Queries(), NOW)}
    assert checks.keys() == {"address"}
    assert "refused" in checks["address"].detail
    assert "prometheus.url" in checks["address"].remedy


def test_no_tls_at_the_address() -> None:
    with Server(lambda _: vector()) as server:
        url = server.url.replace("http:", "https:")
        (check,) = probe(PrometheusSettings(url=url, retries=0), Queries(), NOW)
    assert "prometheus.ca_file" in check.remedy


def test_something_else_at_the_address() -> None:
    checks = run_checks(lambda _: page(200, "<html>Grafana</html>"))
    assert checks.keys() == {"address"}
    assert "Grafana" in checks["address"].detail


def test_an_address_that_answers_with_nothing() -> None:
    checks = run_checks(lambda _: vector())
    assert "no value" in bad(checks)["address"].detail


def test_a_refused_identity() -> None:
    checks = run_checks(lambda _: page(401, "no"))
    assert checks["address"].ok
    assert "bearer_token_file" in bad(checks)["authentication"].remedy


@pytest.mark.parametrize(("ahead", "detail"), [(45.0, "45.0 s ahead"), (-300.0, "300.0 s behind")])
def test_clocks_that_differ(ahead: float, detail: str) -> None:
    cluster = Cluster()
    cluster.ahead = ahead
    failed = bad(run_checks(cluster))
    assert detail in failed["clock"].detail
    assert failed.keys() == {"clock"}


def test_a_clock_for_which_every_question_is_refused_is_one_line() -> None:
    now, ahead = datetime.now(UTC), timedelta(minutes=10)
    later = {"Date": format_datetime(now + ahead, usegmt=True)}
    answer = vector(({}, str((now + ahead).timestamp())))
    with Server(lambda _: replace(answer, headers={**answer.headers, **later})) as server:
        checks = probe(PrometheusSettings(url=server.url, retries=0), Queries(), now)
    assert [check.name for check in checks] == ["address", "authentication", "clock"]
    assert not checks[-1].ok


def test_a_server_that_answers_for_its_own_time_only_is_not_in_good_order() -> None:
    ready = Cluster()
    failed = bad(run_checks(lambda query: page(503, "busy") if "time" in query.form else ready(query)))
    assert {"query cpu", "query replicas", "sample age"} <= failed.keys()
    assert "clock" not in failed


def test_spans_that_are_not_answered() -> None:
    """History is read by spans alone: doctor was content, and every workload was held."""
    ready = Cluster()
    failed = bad(run_checks(lambda query: page(403, "no") if query.path.endswith("_range") else ready(query)))
    assert failed.keys() == {"history"}
    assert "spans are not answered: query 'cpu'" in failed["history"].detail
    assert "/api/v1/query_range" in failed["history"].remedy


def test_answers_of_which_a_part_is_missing() -> None:
    """Nothing is decided from them: doctor was content, and every workload was held."""
    failed = bad(run_checks(Cluster(warnings=["a store is down"])))
    assert {"query cpu", "query replicas", "query hpa_scale_targets"} <= failed.keys()
    assert "the answer is partial: a store is down" in failed["query cpu"].detail
    assert "mend what the server names" in failed["query cpu"].remedy


def test_no_cadvisor() -> None:
    cluster = Cluster()
    cluster.missing = ("container_cpu_usage_seconds_total",)
    failed = bad(run_checks(cluster))
    assert failed.keys() == {"query cpu", "sample age", "scrape interval", "history"}
    assert "cadvisor" in failed["query cpu"].remedy


def test_no_kube_state_metrics() -> None:
    cluster = Cluster()
    cluster.missing = ("kube_",)
    failed = bad(run_checks(cluster))
    assert "kube-state-metrics" in failed["query cpu"].remedy
    assert "query replicas" in failed


def test_an_empty_server_names_both_sides_for_usage_and_one_for_counts() -> None:
    cluster = Cluster()
    cluster.missing = ("container_", "kube_")
    checks = run_checks(cluster)
    assert [side in checks["query cpu"].remedy for side in ("cadvisor", "kube-state-metrics")] == [True, True]
    assert [side in checks["query replicas"].remedy for side in ("cadvisor", "kube-state-metrics")] == [False, True]
    assert checks["clusters"].detail == "not known: no series says when kube-system was created"


def test_the_verdict_names_what_failed() -> None:
    cluster = Cluster()
    assert verdict_of([*run_checks(cluster).values()]).startswith("Ready: ")
    cluster.age = 600.0
    assert verdict_of([*run_checks(cluster).values()]).endswith(" failed: sample age")


def test_no_recording_rules() -> None:
    cluster = Cluster()
    cluster.missing = ("forecaster:",)
    failed = bad(run_checks(cluster, preset="recorded"))
    assert "deploy/rules" in failed["query cpu"].remedy


def test_a_query_that_the_server_refuses_does_not_hide_the_others() -> None:
    cluster = Cluster()

    def refusing(request: HttpRequest) -> Reply:
        broken = "memory_working_set" in request.form.get("query", "")
        return verdict(422, "execution", "many-to-many matching not allowed") if broken else cluster(request)

    failed = bad(run_checks(refusing))
    assert failed.keys() == {"query memory"}
    assert "many-to-many" in failed["query memory"].detail


def test_no_hpa_is_worth_knowing_and_no_fault() -> None:
    cluster = Cluster()
    cluster.missing = ("kube_horizontalpodautoscaler",)
    checks = run_checks(cluster)
    assert bad(checks) == {}
    assert "no HorizontalPodAutoscaler" in checks["query hpa_scale_targets"].detail


def test_old_samples() -> None:
    cluster = Cluster()
    cluster.age = 600.0
    assert "10m old" in bad(run_checks(cluster))["sample age"].detail


def test_scrapes_too_far_apart_for_the_window() -> None:
    cluster = Cluster()
    cluster.scrapes = 5
    check = bad(run_checks(cluster))["scrape interval"]
    assert check.detail == "one sample every 2m, rates over 2m"
    assert check.remedy == "set queries.rate_window to 4m"


def test_a_short_history() -> None:
    cluster = Cluster()
    cluster.history = timedelta(days=1, hours=12)
    failed = bad(run_checks(cluster))
    assert failed.keys() == {"history"}
    assert "1d: 1, 2d: 0" in failed["history"].detail


def test_an_explicit_origin_of_requests_without_series_is_reported() -> None:
    cluster = Cluster()
    cluster.missing = ("istio_requests_total",)
    checks = run_checks(cluster, requests_from="istio")
    assert "no series" in checks["query requests"].detail
