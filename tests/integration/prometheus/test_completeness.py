"""What is not all there, in the real Prometheus: half-empty windows after an outage, pods without samples.

Ten pods with three cores in all, 300m each, and an HPA at 60 % of 500m: exactly the ten pods that there are.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, kept, named
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.cycle.run import Outcome
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
WEB = WorkloadId("shop", "Deployment", "web")
BACK = 11
"""The minute after noon in which the first scrape after the outage is."""


def web(cluster: World, *, measured: int = 10) -> None:
    """Ten ready pods, of which so many have samples of cAdvisor."""
    cluster.deployment("shop", "web", replicas=10)
    cluster.replicaset("shop", "web-5d8f", "Deployment", "web")
    for pod in (f"web-5d8f-{number}" for number in range(measured)):
        cluster.pod("shop", pod, "ReplicaSet", "web-5d8f", cores=0.3)
        who = {"namespace": "shop", "pod": pod, "container": "app", "resource": "cpu"}
        cluster.gauge("kube_pod_container_resource_requests", 0.5, **who)
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "web"}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
    cluster.gauge("kube_horizontalpodautoscaler_info", 1, **scales, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_min_replicas", 2, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 50, **hpa)
    target = {"metric_name": "cpu", "metric_target_type": "utilization"}
    cluster.gauge("kube_horizontalpodautoscaler_spec_target_metric", 60, **target, **hpa)


def scraped(name: str, **away: tuple[float, float]) -> World:
    """Twenty minutes, scraped every quarter of a minute."""
    return World(name, START.timestamp(), interval=15.0, scrapes=80, **away)


def worlds() -> Iterator[World]:
    whole = scraped("outage", away=(480.0, 660.0))
    web(whole)
    yield whole
    silent = scraped("silent")
    web(silent, measured=6)
    yield silent


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("completeness") / "data"
    fill(data, [span for one in worlds() for span in one], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture
def cycles(server: RealPrometheus) -> Iterator[Callable[[str], CycleOnFakes]]:
    """A cycle that reads one of the worlds, at any minute after noon."""
    with closing(_Sources(server.url)) as sources:
        yield sources.cycle


class _Sources:
    def __init__(self, url: str) -> None:
        self._url, self._opened = url, list[PrometheusSource]()

    def cycle(self, world: str) -> CycleOnFakes:
        settings = PrometheusSettings(url=self._url, retries=0)
        source = PrometheusSource(settings, Queries(labels={"cluster": world}, requests_from="none"))
        self._opened.append(source)
        stage = CycleOnFakes(start=NOON + 5 * MINUTE, learns_first=False)
        stage.cycle.source = source
        return stage

    def close(self) -> None:
        for one in self._opened:
            one.close()


def at(minute: int) -> datetime:
    return NOON + minute * MINUTE


def measured(outcome: Outcome) -> float:
    value = named(outcome, "web").signals[0].measured
    assert value is not None
    return value


class TestOutageOfPrometheus:
    """Away from minute 8 to minute 11: the first scrape afterwards is at 11:07."""

    def test_the_count_never_falls_while_windows_fill_again(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("outage")
        counts = {minute: named(stage.cycle.run(at(minute)), "web").wanted_replicas for minute in range(6, 19)}
        assert set(counts.values()) == {10}, counts

    def test_half_a_window_is_a_lower_bound_in_report_and_explanation(
        self, cycles: Callable[[str], CycleOnFakes]
    ) -> None:
        """A service that starts a minute after the return knows nothing else than the half."""
        stage = cycles("outage")
        outcomes = {minute: stage.cycle.run(at(minute)) for minute in range(6, 14)}
        half = outcomes[BACK + 1]
        assert half.report.incomplete["cpu", "uncovered-window"] == 1
        (said,) = half.report.failures
        assert re.fullmatch("cpu of shop/web: samples cover 5.% of the window of its rate", said)
        assert not outcomes[BACK + 3 - 1].report.failures

    def test_what_is_learned_has_a_gap_and_no_sag(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("outage")
        for minute in range(6, 19):
            stage.cycle.run(at(minute))
        known = np.array(kept(stage.history, CPU, WEB)[-13:])
        np.testing.assert_allclose(known[~np.isnan(known)], 3.0, rtol=0.02)
        assert np.count_nonzero(~np.isnan(known)) >= 7


class TestPodsWithoutSamples:
    """Four of ten ready pods have no samples of cAdvisor: 1.8 of 3 cores."""

    def test_the_count_stays_and_the_sentence_says_why(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("silent")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 12)][-1]
        one = named(outcome, "web")
        assert one.wanted_replicas == 10
        assert measured(outcome) == pytest.approx(1.8, rel=0.01)
        assert "6 of 10 ready pods have samples" in one.replicas.message
        assert outcome.report.incomplete["cpu", "silent-pods"] == 1

    def test_nothing_of_it_is_learned(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("silent")
        for minute in range(6, 12):
            stage.cycle.run(at(minute))
        window = stage.history.window(CPU, MINUTE)
        assert np.isnan(window.values[:, -6:]).all()


def test_minutes_are_asked_again_a_bounded_number_of_times(cycles: Callable[[str], CycleOnFakes]) -> None:
    stage = cycles("silent")
    source = stage.cycle.source
    asked: list[tuple[datetime, timedelta]] = []
    before = source.history
    source.history = lambda signal, start, end, step: (  # type: ignore[method-assign]
        asked.append((start, step)) or before(signal, start, end, step)
    )
    for minute in range(6, 19):
        stage.cycle.run(at(minute))
    again = [start for start, step in asked if step == MINUTE and start >= at(6)]
    assert 0 < len(again) <= 16
