"""`probe` against the real Prometheus: its own questions are PromQL too."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.sources.probe import probe
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from tests.integration.conftest import FilledWeek
    from tests.support.prometheus import Binaries

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]


def test_a_filled_week_is_in_good_order(filled_week: FilledWeek, prometheus_binaries: Binaries) -> None:
    with RealPrometheus(prometheus_binaries, filled_week.data) as server:
        checks = probe(PrometheusSettings(url=server.url), Queries(), filled_week.week.now)
    details = {check.name: check.detail for check in checks}
    # The week may have been filled minutes ago, and its `now` is the clock that is compared.
    assert {check.name for check in checks if not check.ok} <= {"clock"}
    assert details["query cpu"] == details["query replicas"] == "33 series"
    assert details["query requests"] == "33 workloads from istio"
    assert details["scrape interval"] == "one sample every 1m, rates over 2m"
    assert details["sample age"] == "the latest sample is 53s old"
    assert prometheus_binaries.version.split("+")[0] in details["version"]
    assert "2d: 33" in details["history"]


def test_an_empty_prometheus_is_told_what_it_lacks(
    prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory, filled_week: FilledWeek
) -> None:
    (data := tmp_path_factory.mktemp("empty") / "data").mkdir()
    now = filled_week.week.now + timedelta(seconds=1)
    with RealPrometheus(prometheus_binaries, data) as server:
        checks = {check.name: check for check in probe(PrometheusSettings(url=server.url), Queries(), now)}
    assert "kube-state-metrics" in checks["query cpu"].remedy
    assert not checks["sample age"].ok
    assert not checks["history"].ok
