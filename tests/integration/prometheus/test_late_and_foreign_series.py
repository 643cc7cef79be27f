"""Series that come late, twice, under other names, or from another cluster, in the real Prometheus.

Ten pods with three cores in all and an HPA at 60 % of 500m: exactly the ten pods that there are.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import cramjam
import httpx
import numpy as np
import pytest

from forecaster.cycle.completeness import ARRIVE_LATE, Completeness
from forecaster.domain.decision import Hold, Reason
from forecaster.domain.signal import CPU, REQUESTS
from forecaster.domain.workload import WorkloadId
from forecaster.publish.remote_write import SeriesSample, write_request
from forecaster.sources.probe import probe
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.integration.prometheus.test_completeness import web
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named, stored_values
from tests.support.prometheus import RealPrometheus, Span, fill
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from forecaster.domain.report import Check
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
WEB = WorkloadId("shop", "Deployment", "web")


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def scraped(name: str) -> World:
    """A world of twenty minutes, scraped every quarter of a minute."""
    world = World(name, START.timestamp(), interval=15.0, scrapes=80)
    web(world)
    return world


def labelled(spans: Iterable[Span], **labels: str) -> list[Span]:
    """Return the series of `spans` with further labels."""
    more = "".join(f'{name}="{value}",' for name, value in labels.items())
    return [replace(span, head=span.head.replace("{", "{" + more, 1)) for span in spans]


def copied() -> list[Span]:
    """Two replicas of Prometheus in one store, two jobs that scrape the mesh, two kube-state-metrics."""
    world = scraped("copied")
    mesh = {"destination_workload": "web", "destination_workload_namespace": "shop", "reporter": "destination"}
    for job in ("mesh", "pods"):
        world.counter("istio_requests_total", 4.0, job=job, instance="10.0.0.1:15020", **mesh)
    both = [span for number in "01" for span in labelled(world.spans, prometheus_replica=number)]
    state_metrics = [span for span in both if span.head.startswith("kube_")]
    rest = [span for span in both if not span.head.startswith("kube_")]
    return [*rest, *(span for name in "ab" for span in labelled(state_metrics, instance=f"ksm-{name}"))]


def clusters() -> list[Span]:
    """Two clusters with a web each; api is in one of them only."""
    spans = []
    for number, name in enumerate("ab"):
        world = scraped("clusters")
        world.gauge("kube_deployment_created", 1e9 + number, namespace="shop", deployment="web")
        world.gauge("kube_namespace_created", 1e9 + number, namespace="kube-system")
        if name == "a":
            world.deployed("shop", "api", pods=2, cores=0.4)
            world.gauge("kube_deployment_created", 1e9, namespace="shop", deployment="api")
        spans += labelled(world.spans, k8s=name)
    return spans


def exported() -> list[Span]:
    """kube-state-metrics without `honor_labels`: namespace and pod are its own."""
    spans = []
    for span in scraped("exported").spans:
        head = span.head
        if head.startswith("kube_"):
            head = re.sub(r'\b(namespace|pod)="', r'exported_\1="', head)
            head = head.replace("{", '{namespace="monitoring",pod="ksm-0",', 1)
        spans.append(replace(span, head=head))
    return spans


def old() -> list[Span]:
    world = scraped("old")
    world.gauge("kube_state_metrics_build_info", 1, version="v2.4.2")
    return world.spans


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("foreign") / "data"
    fill(data, [*copied(), *clusters(), *exported(), *old(), *scraped("plain").spans], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture
def cycles() -> Iterator[Callable[..., CycleOnFakes]]:
    """A cycle that reads the series with these labels."""
    with ExitStack() as sources:

        def on(url: str, requests_from: str = "none", **labels: str) -> CycleOnFakes:
            queries = Queries(labels=labels, requests_from=requests_from)
            source = PrometheusSource(PrometheusSettings(url=url, retries=0), queries)
            sources.enter_context(closing(source))
            stage = CycleOnFakes(start=at(5), learns_first=False)
            stage.cycle.source = source
            return stage

        yield on


def doctor(server: RealPrometheus, now: datetime, **labels: str) -> dict[str, Check]:
    checks = probe(PrometheusSettings(url=server.url), Queries(labels=labels, requests_from="none"), now)
    return {check.name: check for check in checks}


class TestCopies:
    def test_are_counted_once(self, server: RealPrometheus, cycles: Callable[..., CycleOnFakes]) -> None:
        stage = cycles(server.url, "istio", cluster="copied")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 9)][-1]
        assert not outcome.report.failures
        web = named(outcome, "web")
        assert (web.replicas_now, web.recommended_replicas) == (10, 10)
        assert web.resources_now.cpu_request == 0.5
        assert stored_values(stage.history, CPU, WEB)[-1] == pytest.approx(3.0, rel=0.02)
        assert stored_values(stage.history, REQUESTS, WEB)[-1] == pytest.approx(4.0, rel=0.02)

    def test_are_told_by_the_doctor(self, server: RealPrometheus) -> None:
        check = doctor(server, at(12), cluster="copied")["copies"]
        assert check.ok
        assert "10 pods are reported more than once, by instance" in check.detail
        assert "10 pods are reported more than once, by prometheus_replica" in check.detail

    def test_of_nothing_are_none(self, server: RealPrometheus) -> None:
        assert doctor(server, at(12), cluster="plain")["copies"].detail == "no duplicate series"


class TestClusters:
    def test_what_is_told_as_two_objects_is_held_and_the_rest_is_decided(
        self, server: RealPrometheus, cycles: Callable[..., CycleOnFakes]
    ) -> None:
        """The pods of both share their names here; with other names the sum would be six cores."""
        stage = cycles(server.url, cluster="clusters")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 9)][-1]
        held = named(outcome, "web").replicas
        assert isinstance(held, Hold)
        assert "queries.labels" in held.message
        assert any("1 workload held, Deployment shop/web among them" in failure for failure in outcome.report.failures)
        api = named(outcome, "api").replicas
        assert "queries.labels" not in api.message

    def test_a_label_that_tells_them_apart_is_the_remedy(
        self, server: RealPrometheus, cycles: Callable[..., CycleOnFakes]
    ) -> None:
        stage = cycles(server.url, cluster="clusters", k8s="b")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 9)][-1]
        assert not outcome.report.failures
        assert named(outcome, "web").recommended_replicas == 10

    def test_the_doctor_says_so(self, server: RealPrometheus) -> None:
        check = doctor(server, at(12), cluster="clusters")["clusters"]
        assert not check.ok
        assert check.detail == "2 clusters; 1 workload reported as several objects, shop/web among them"
        assert "queries.labels" in check.remedy
        assert doctor(server, at(12), cluster="clusters", k8s="a")["clusters"].ok


class TestWithoutHonorLabels:
    def test_nothing_is_decided_about_names_that_are_not_theirs(
        self, server: RealPrometheus, cycles: Callable[..., CycleOnFakes]
    ) -> None:
        stage = cycles(server.url, cluster="exported")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 9)][-1]
        assert {type(recommendation.replicas) for recommendation in outcome.recommendations} == {Hold}
        assert any("honor_labels: true" in failure for failure in outcome.report.failures)

    def test_the_doctor_says_so(self, server: RealPrometheus) -> None:
        check = doctor(server, at(12), cluster="exported")["honor_labels"]
        assert (check.ok, check.detail) == (False, "10 pods have the label exported_pod")
        assert "honor_labels: true" in check.remedy


class TestOldStateMetrics:
    def test_holds_what_has_an_hpa(self, server: RealPrometheus, cycles: Callable[..., CycleOnFakes]) -> None:
        stage = cycles(server.url, cluster="old")
        outcome = [stage.cycle.run(at(minute)) for minute in range(6, 9)][-1]
        held = named(outcome, "web").replicas
        assert isinstance(held, Hold)
        assert held.reason is Reason.SOURCE_DOWN
        assert "fractional targets" in held.message

    def test_the_doctor_says_so(self, server: RealPrometheus) -> None:
        check = doctor(server, at(12), cluster="old")["kube-state-metrics"]
        assert not check.ok
        assert check.detail.startswith("v2.4.2; targets of HPAs with a fraction are missing")


LAG = 60.0
"""Seconds after which a sample has arrived by remote write."""


class Receiver:
    """A store that takes the samples of a world as they arrive."""

    def __init__(self, server: RealPrometheus, world: World) -> None:
        self.server, self.world = server, world
        self._until = 0.0

    def arrive(self, until: datetime) -> None:
        """Write everything up to an instant that was not written yet."""
        new = [
            SeriesSample(_labels(span.head), float(value), datetime.fromtimestamp(time, UTC))
            for span in self.world
            for time, value in zip(span.times.tolist(), span.values.tolist(), strict=True)
            if self._until < time <= until.timestamp()
        ]
        self._until = until.timestamp()
        body = bytes(cramjam.snappy.compress_raw(write_request(sorted(new, key=lambda sample: sample.at))))
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        answer = httpx.post(f"{self.server.url}/api/v1/write", content=body, headers=headers, timeout=PATIENCE)
        assert answer.is_success, answer.text


def _labels(head: str) -> tuple[tuple[str, str], ...]:
    name, _, rest = head.partition("{")
    return tuple(sorted([("__name__", name), *re.findall(r'(\w+)="([^"]*)"', rest)]))


@pytest.fixture
def receiver(prometheus_binaries: Binaries, tmp_path: Path) -> Iterator[Receiver]:
    options = ["--web.enable-remote-write-receiver"]
    with RealPrometheus(prometheus_binaries, tmp_path / "data", options=options) as running:
        yield Receiver(running, scraped("late"))


class TestLateSamples:
    """In a minute of remote write the window of two minutes is half empty five seconds after the minute."""

    def test_half_of_the_truth_is_never_acted_on_nor_learned(
        self, receiver: Receiver, cycles: Callable[..., CycleOnFakes]
    ) -> None:
        stage = cycles(receiver.server.url, cluster="late")
        outcomes = {}
        for minute in range(8, 19):
            receiver.arrive(at(minute) - timedelta(seconds=LAG))
            outcomes[minute] = stage.cycle.run(at(minute))
        assert {named(outcome, "web").recommended_replicas for outcome in outcomes.values()} == {10}
        assert {outcome.report.incomplete["cpu", "uncovered-window"] for outcome in list(outcomes.values())[1:]} == {1}
        known = np.array(stored_values(stage.history, CPU, WEB)[-10:])
        np.testing.assert_allclose(known[~np.isnan(known)], 3.0, rtol=0.02)
        assert np.count_nonzero(~np.isnan(known)) >= 8
        assert f"cpu: {ARRIVE_LATE}" in outcomes[18].report.failures

    def test_nor_after_a_restart_that_goes_on_from_a_snapshot(
        self, receiver: Receiver, cycles: Callable[..., CycleOnFakes]
    ) -> None:
        """The doctor's first question is about one minute, which shows four samples of each pod: eight are usual."""
        stage = cycles(receiver.server.url, cluster="late")
        for minute in range(8, 12):
            receiver.arrive(at(minute) - timedelta(seconds=LAG))
            stage.cycle.run(at(minute))
        stage.cycle.completeness = Completeness()
        for minute in range(12, 16):
            receiver.arrive(at(minute) - timedelta(seconds=LAG))
            outcome = stage.cycle.run(at(minute))
            assert outcome.report.incomplete["cpu", "uncovered-window"] == 1
        known = np.array(stored_values(stage.history, CPU, WEB)[-10:])
        np.testing.assert_allclose(known[~np.isnan(known)], 3.0, rtol=0.02)

    def test_a_start_that_is_late_enough_sees_all_of_it(
        self, receiver: Receiver, cycles: Callable[..., CycleOnFakes]
    ) -> None:
        """With `cycle.delay: 65s` the cycle of a minute starts when its samples are there."""
        stage = cycles(receiver.server.url, cluster="late")
        for minute in range(8, 14):
            receiver.arrive(at(minute))
            outcome = stage.cycle.run(at(minute))
        assert not outcome.report.failures
        assert named(outcome, "web").signals[0].measured == pytest.approx(3.0, rel=0.02)

    def test_the_doctor_measures_it(self, receiver: Receiver) -> None:
        receiver.arrive(at(12) - timedelta(seconds=LAG))
        check = doctor(receiver.server, at(12), cluster="late")["sample lag"]
        assert not check.ok
        late = int(re.search(r"delay (\d+) s", check.detail)[1])  # type: ignore[index]
        assert LAG - 15 <= late <= LAG
        assert check.remedy.startswith("set cycle.delay to 1m")

    def test_without_lag_there_is_nothing_to_say(self, receiver: Receiver) -> None:
        receiver.arrive(at(12))
        assert doctor(receiver.server, at(12), cluster="late")["sample lag"].ok
