"""Incomplete data in the real Prometheus: half-empty windows after an outage, pods without samples.

Ten pods with three cores in all, 300m each, and an HPA at 60 % of 500m: exactly the ten pods that there are.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.builders import policy
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named, stored_values
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from forecaster.cycle.run import Outcome
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
WEB = WorkloadId("shop", "Deployment", "web")
BACK = 11
"""The minute after noon in which the first scrape after the outage is."""


def web(cluster: World, *, measured: int = 10) -> None:
    """Add ten ready pods, of which so many have samples of cAdvisor."""
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


def with_hpa(cluster: World, ready: NDArray[np.float64]) -> None:
    """Add the web with so many ready pods [scrape], ten of them asked for."""
    who = {"namespace": "shop", "deployment": "web"}
    cluster.gauge("kube_deployment_spec_replicas", 10, **who)
    cluster.levels("kube_deployment_status_replicas_ready", ready, **who)
    cluster.replicaset("shop", "web-5d8f", "Deployment", "web")
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "web"}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
    cluster.gauge("kube_horizontalpodautoscaler_info", 1, **scales, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_min_replicas", 2, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 50, **hpa)
    target = {"metric_name": "cpu", "metric_target_type": "utilization"}
    cluster.gauge("kube_horizontalpodautoscaler_spec_target_metric", 60, **target, **hpa)


def pod(
    cluster: World, name: str, cores: NDArray[np.float64], ready: NDArray[np.bool_], *, unseen: object = False
) -> None:
    """A pod that is there where its usage [scrape] is a number; cAdvisor has no samples of it where it is unseen."""
    there = np.where(np.isnan(cores), np.nan, 1.0)
    who = {"namespace": "shop", "pod": name}
    app = who | {"container": "app"}
    owner = {"owner_kind": "ReplicaSet", "owner_name": "web-5d8f", "owner_is_controller": "true"}
    cluster.levels("kube_pod_owner", there, **who, **owner)
    cluster.levels("kube_pod_container_info", there, image="app", **app)
    cluster.levels("kube_pod_status_phase", there, phase="Running", **who)
    cluster.levels("kube_pod_status_ready", np.where(ready, there, 0.0 * there), condition="true", **who)
    cluster.levels("kube_pod_container_resource_requests", 0.5 * there, resource="cpu", **app)
    measured = np.where(unseen, np.nan, cores)
    cluster.total("container_cpu_usage_seconds_total", measured, id=f"/kubepods/{name}/app", **app)
    cluster.levels("container_memory_working_set_bytes", 1000.0 * there, id=f"/kubepods/{name}/app", **app)


SURGE, READY, GONE = 9, 11, 12
"""Minutes in which three new pods are created, in which they are ready, and in which three old ones are gone."""


def rollout(cluster: World) -> None:
    """Ten pods with three cores in all; a surge of three that use a core each for two minutes before they are ready."""
    minute = (cluster.times - NOON.timestamp()) / 60
    share = np.where(minute < READY, 0.3, np.where(minute < GONE, 3 / 13, 0.3))
    for number in range(10):
        leaves = number < 3
        pod(cluster, f"old-{number}", np.where(leaves & (minute >= GONE), np.nan, share), minute > -1)
    for number in range(3):
        cores = np.where(minute < SURGE, np.nan, np.where(minute < READY, 1.0, share))
        pod(cluster, f"new-{number}", cores, minute >= READY)
    with_hpa(cluster, np.where((minute >= READY) & (minute < GONE), 13.0, 10.0))


def crash_loop(cluster: World) -> None:
    """Ten pods with three cores in all, and one of a new template that uses a core and is never ready."""
    minute = (cluster.times - NOON.timestamp()) / 60
    for number in range(10):
        pod(cluster, f"old-{number}", np.full(cluster.scrapes, 0.3), minute > -1)
    pod(cluster, "new", np.where(minute < SURGE, np.nan, 1.0), minute < -1)
    with_hpa(cluster, np.full(cluster.scrapes, 10.0))


def scaled_out(cluster: World) -> None:
    """Demand of ten pods' worth doubles; ten more pods that start within seconds come to its help in minute 11."""
    minute = (cluster.times - NOON.timestamp()) / 60
    load = np.where(minute < SURGE, 3.0, 6.0)
    for number in range(20):
        cores = np.where(minute < READY, load / 10, load / 20)
        cores = np.where((number >= 10) & (minute < READY), np.nan, cores)
        pod(cluster, f"web-{number}", cores, minute > -1)
    with_hpa(cluster, np.where(minute < READY, 10.0, 20.0))


def losing(cluster: World, pods: int) -> None:
    """Ten pods with three cores in all, of which so many have no samples from minute 11 on."""
    minute = (cluster.times - NOON.timestamp()) / 60
    for number in range(10):
        silent = (number < pods) & (minute >= READY)
        pod(cluster, f"web-{number}", np.full(cluster.scrapes, 0.3), minute > -1, unseen=silent)
    with_hpa(cluster, np.full(cluster.scrapes, 10.0))


LOST = (1, 2, 3, 5)
AT_ONCE = Policies(policy(tolerance=0.0, scale_down_stabilization=timedelta(), gate=False))
"""Policies that ask for a pod less in the minute in which a sum is a pod's worth less."""


def scraped(name: str, **away: tuple[float, float]) -> World:
    """A world of twenty minutes, scraped every quarter of a minute."""
    return World(name, START.timestamp(), interval=15.0, scrapes=80, **away)


def worlds() -> Iterator[World]:
    whole = scraped("outage", away=(480.0, 660.0))
    web(whole)
    yield whole
    silent = scraped("silent")
    web(silent, measured=6)
    yield silent
    for build in (rollout, crash_loop, scaled_out):
        world = scraped(build.__name__)
        build(world)
        yield world
    for pods in LOST:
        world = World(f"losing-{pods}", START.timestamp(), interval=30.0, scrapes=40)
        losing(world, pods)
        yield world


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("completeness") / "data"
    fill(data, [span for world in worlds() for span in world], prometheus_binaries)
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
        for source in self._opened:
            source.close()


def at(minute: int) -> datetime:
    return NOON + minute * MINUTE


def measured(outcome: Outcome) -> float:
    value = named(outcome, "web").signals[0].measured
    assert value is not None
    return value


class TestOutageOfPrometheus:
    """Prometheus is away from minute 8 to minute 11: the first scrape afterwards is at 11:07."""

    def test_the_count_never_falls_while_windows_fill_again(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("outage")
        counts = {minute: named(stage.cycle.run(at(minute)), "web").recommended_replicas for minute in range(6, 19)}
        assert set(counts.values()) == {10}, counts

    def test_half_a_window_is_a_lower_bound_in_report_and_explanation(
        self, cycles: Callable[[str], CycleOnFakes]
    ) -> None:
        """A service that starts a minute after the return knows nothing else than the half."""
        stage = cycles("outage")
        outcomes = {minute: stage.cycle.run(at(minute)) for minute in range(6, 14)}
        half = outcomes[BACK + 1]
        assert half.report.incomplete["cpu", "uncovered-window"] == 1
        (failure,) = half.report.failures
        assert re.fullmatch("cpu of shop/web: samples cover 5.% of the window of its rate", failure)
        assert not outcomes[BACK + 3 - 1].report.failures

    def test_what_is_learned_has_a_gap_and_no_sag(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("outage")
        for minute in range(6, 19):
            stage.cycle.run(at(minute))
        known = np.array(stored_values(stage.history, CPU, WEB)[-13:])
        np.testing.assert_allclose(known[~np.isnan(known)], 3.0, rtol=0.02)
        assert np.count_nonzero(~np.isnan(known)) >= 7


class TestPodsWithoutSamples:
    """Four of ten ready pods have no samples of cAdvisor: 1.8 of 3 cores."""

    def test_the_count_stays_and_the_sentence_says_why(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("silent")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 12)][-1]
        web = named(outcome, "web")
        assert web.recommended_replicas == 10
        assert measured(outcome) == pytest.approx(1.8, rel=0.01)
        assert "6 of 10 ready pods have samples" in web.replicas.message
        assert outcome.report.incomplete["cpu", "silent-pods"] == 1

    def test_nothing_of_it_is_learned(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("silent")
        for minute in range(6, 12):
            stage.cycle.run(at(minute))
        window = stage.history.window(CPU, MINUTE)
        assert np.isnan(window.values[:, -6:]).all()


class TestSamplesThatEnd:
    @pytest.mark.parametrize("pods", LOST)
    def test_the_count_does_not_fall_while_windows_run_empty(
        self, cycles: Callable[[str], CycleOnFakes], pods: int
    ) -> None:
        """Losing two pods of ten takes at first a tenth off the sum, which would ask for nine pods."""
        stage = cycles(f"losing-{pods}")
        stage.cycle.policies = AT_ONCE
        counts = {minute: named(stage.cycle.run(at(minute)), "web").recommended_replicas for minute in range(6, 16)}
        assert set(counts.values()) == {10}, counts


class TestStart:
    """CPU that pods use to start is no demand."""

    @pytest.mark.parametrize("world", ["rollout", "crash_loop"])
    def test_the_count_does_not_rise(self, cycles: Callable[[str], CycleOnFakes], world: str) -> None:
        stage = cycles(world)
        counts = {minute: named(stage.cycle.run(at(minute)), "web").recommended_replicas for minute in range(7, 20)}
        assert set(counts.values()) == {10}, counts

    def test_pods_past_their_start_are_measured_alone(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("rollout")
        amounts = [measured(stage.cycle.run(at(minute))) for minute in range(7, 20)]
        assert max(amounts) == pytest.approx(3.0, rel=0.02)
        assert amounts[-1] == pytest.approx(3.0, rel=0.02)

    def test_what_all_pods_use_is_learned_from(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        """Warm-up is taken out of history where it is learned from; these pods leave nothing to learn it by."""
        stage = cycles("rollout")
        for minute in range(7, 20):
            stage.cycle.run(at(minute))
        known = np.array(stored_values(stage.history, CPU, WEB)[-13:])
        assert np.nanmax(known) > 4.0

    def test_new_pods_that_take_their_share_do_not_lower_the_count(self, cycles: Callable[[str], CycleOnFakes]) -> None:
        stage = cycles("scaled_out")
        outcomes = {minute: stage.cycle.run(at(minute)) for minute in range(7, 20)}
        counts = {minute: named(outcome, "web").recommended_replicas for minute, outcome in outcomes.items()}
        assert [counts[minute] for minute in range(READY, 20)] == [20] * 9, counts
        assert outcomes[READY + 1].report.incomplete["cpu", "starting-pods"] == 1
        assert measured(outcomes[19]) == pytest.approx(6.0, rel=0.02)


def test_minutes_are_asked_again_a_bounded_number_of_times(cycles: Callable[[str], CycleOnFakes]) -> None:
    stage = cycles("silent")
    source = stage.cycle.source
    questions: list[tuple[datetime, timedelta]] = []
    before = source.history
    source.history = lambda signal, start, end, step: (  # type: ignore[method-assign]
        questions.append((start, step)) or before(signal, start, end, step)
    )
    for minute in range(6, 19):
        stage.cycle.run(at(minute))
    again = [start for start, step in questions if step == MINUTE and start >= at(6)]
    assert 0 < len(again) <= 16
