"""Two shards of a cluster's series behind a real Thanos, one of them in two replicas: decided as from one Prometheus.

The west tells the objects of the web and of the api, and the usage of most of their pods, in two replicas that scrape
three seconds apart. The east has the other pods of the web, the HPA of the api, and all of the cart.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.decision import Hold, Reason
from forecaster.domain.signal import CPU, MEMORY
from forecaster.domain.window import MINUTE
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named
from tests.support.prometheus import RealPrometheus, fill
from tests.support.stores import find_store
from tests.support.thanos import Querier, Sidecar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from pathlib import Path

    from forecaster.cycle.run import Outcome
    from forecaster.domain.signal import Signal
    from tests.support.prometheus import Binaries, Span

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
LAST = NOON + 19 * MINUTE
"""The last minute that both replicas have scraped."""
PODS, WESTERN = 10, 6
"""Pods of web, and how many of them the west scrapes."""


def in_the_west() -> World:
    world = World("prod", START.timestamp(), interval=15.0, scrapes=80)
    for name, pods in (("web", PODS), ("api", 3)):
        world.deployment("shop", name, replicas=pods)
        world.replicaset("shop", f"{name}-5d8f", "Deployment", name)
    for number in range(PODS):
        pod(world, "web", number, measured=number < WESTERN)
    for number in range(3):
        pod(world, "api", number)
    hpa(world, "web")
    return world


def in_the_east() -> World:
    world = World("prod", START.timestamp(), interval=15.0, scrapes=80)
    for number in range(WESTERN, PODS):
        world.container("shop", f"web-5d8f-{number}", "app", cores=0.3, stated=False)
    hpa(world, "api")
    world.deployment("shop", "cart", replicas=2)
    world.replicaset("shop", "cart-5d8f", "Deployment", "cart")
    for number in range(2):
        pod(world, "cart", number)
    return world


def pod(world: World, name: str, number: int, *, measured: bool = True) -> None:
    """Add a pod as kube-state-metrics reports it, and its usage where the same Prometheus scrapes it."""
    pod_name = f"{name}-5d8f-{number}"
    app = {"namespace": "shop", "pod": pod_name, "container": "app"}
    world.owner("shop", pod_name, "ReplicaSet", f"{name}-5d8f")
    world.gauge("kube_pod_status_phase", 1, namespace="shop", pod=pod_name, phase="Running")
    world.gauge("kube_pod_container_info", 1, image="app", **app)
    world.gauge("kube_pod_container_resource_requests", 0.5, resource="cpu", **app)
    if measured:
        world.container("shop", pod_name, "app", cores=0.3, stated=False)


def hpa(world: World, name: str) -> None:
    """Add an HPA at 60 % of the CPU that pods request."""
    labels = {"namespace": "shop", "horizontalpodautoscaler": name}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": name}
    world.gauge("kube_horizontalpodautoscaler_info", 1, **scales, **labels)
    world.gauge("kube_horizontalpodautoscaler_spec_min_replicas", 2, **labels)
    world.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 50, **labels)
    target = {"metric_name": "cpu", "metric_target_type": "utilization"}
    world.gauge("kube_horizontalpodautoscaler_spec_target_metric", 60, **target, **labels)


def scraped_later(spans: World) -> Iterator[Span]:
    """Spans of the other replica, which scrapes three seconds later."""
    return (replace(span, times=span.times + 3.0) for span in spans)


@dataclass(frozen=True)
class Fleet:
    alone: RealPrometheus
    """A server that scrapes all."""
    east: Sidecar
    deduplicated: Querier
    """Leaves out a store that is silent, without a word."""
    strict: Querier
    """Asks each store always, and knows of no replicas."""
    refusing: Querier
    """Asks each store always; a partial answer is an error."""


@pytest.fixture(scope="module")
def fleet(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    thanos = find_store("thanos", "THANOS_BIN")
    if thanos is None:
        pytest.skip("no thanos: run FORECASTER_STORES=1 .ci/stores, or set THANOS_BIN to its folder")
    folder = tmp_path_factory.mktemp("thanos")
    west, east = in_the_west(), in_the_east()
    spans = {"alone": [*west, *east], "west-a": list(west), "west-b": list(scraped_later(west)), "east": list(east)}
    with ExitStack() as parts:
        running = {
            name: parts.enter_context(filled(folder, name, scraped, prometheus_binaries))
            for name, scraped in spans.items()
        }
        stores = [
            parts.enter_context(Sidecar(thanos, server.url, folder))
            for name, server in running.items()
            if name != "alone"
        ]
        options = {
            "deduplicated": Querier(
                thanos, stores, folder, "--query.replica-label=replica", "--query.auto-downsampling"
            ),
            "strict": Querier(thanos, stores, folder, strict=True),
            "refusing": Querier(thanos, stores, folder, "--no-query.partial-response", strict=True),
        }
        for querier in options.values():
            parts.enter_context(querier).until(len(stores))
        yield Fleet(running["alone"], stores[-1], **options)


def filled(folder: Path, name: str, spans: list[Span], binaries: Binaries) -> RealPrometheus:
    data = folder / name
    fill(data, spans, binaries)
    shard, _, replica = name.partition("-")
    config = f"global: {{external_labels: {{shard: {shard}, replica: {replica or 'a'}}}}}\n"
    return RealPrometheus(binaries, data, config=config)


def source_of(server: RealPrometheus | Querier) -> PrometheusSource:
    return PrometheusSource(PrometheusSettings(url=server.url, retries=0), Queries(requests_from="none"))


def stage_of(source: PrometheusSource) -> CycleOnFakes:
    stage = CycleOnFakes(start=at(5), learns_first=False)
    stage.cycle.source = source
    return stage


def at(minute: int) -> datetime:
    return NOON + minute * MINUTE


def decided(outcome: Outcome) -> dict[str, object]:
    return {
        recommendation.id.name: (recommendation.replicas, recommendation.resources_now, recommendation.replicas_now)
        for recommendation in outcome.recommendations
    }


@pytest.mark.parametrize("kind", ["deduplicated", "strict", "refusing"])
class TestWhileAllStoresAnswer:
    def test_it_is_decided_as_from_one_prometheus(self, fleet: Fleet, kind: str) -> None:
        outcomes = []
        for server in (fleet.alone, getattr(fleet, kind)):
            with closing(source_of(server)) as source:
                stage = stage_of(source)
                outcomes.append([stage.cycle.run(at(minute)) for minute in range(6, 12)])
        for expected, actual in zip(*outcomes, strict=True):
            assert decided(actual) == decided(expected)
            assert not actual.report.failures
        assert named(outcomes[1][-1], "web").recommended_replicas == PODS

    @pytest.mark.parametrize("step", [MINUTE, 5 * MINUTE])
    @pytest.mark.parametrize("signal", [CPU, MEMORY])
    def test_values_are_those_of_one_prometheus(self, fleet: Fleet, kind: str, signal: Signal, step: timedelta) -> None:
        """From minute 20 on values are looked back for, and a replica that scrapes later knows a little more."""
        with closing(source_of(fleet.alone)) as alone, closing(source_of(getattr(fleet, kind))) as source:
            answers = [list(reader.history(signal, at(5), at(30), step)) for reader in (alone, source)]
        for expected, actual in zip(*answers, strict=True):
            assert (actual.ids, actual.partial) == (expected.ids, "")
            scraped = [expected.start + i * step <= LAST for i in range(expected.values.shape[1])]
            np.testing.assert_allclose(actual.values[:, scraped], expected.values[:, scraped], rtol=1e-6)
            np.testing.assert_allclose(actual.values, expected.values, rtol=0.1)
            if expected.made_of and actual.made_of:
                np.testing.assert_array_equal(actual.made_of.pods[:, scraped], expected.made_of.pods[:, scraped])


@contextmanager
def after_a_while(server: Querier, fleet: Fleet) -> Iterator[tuple[Outcome, Outcome]]:
    """The last cycle in which the east was there, and one some minutes after it has gone."""
    with closing(source_of(server)) as source:
        stage = stage_of(source)
        before = [stage.cycle.run(at(minute)) for minute in range(6, 9)][-1]
        assert named(before, "web").recommended_replicas == PODS
        fleet.east.stop()
        try:
            server.until(2)
            yield before, [stage.cycle.run(at(minute)) for minute in range(9, 18)][-1]
        finally:
            fleet.east.start()
            for querier in (fleet.deduplicated, fleet.strict, fleet.refusing):
                querier.until(3)


class TestAStoreThatIsSilent:
    def test_is_held_where_the_answer_says_that_it_is_partial(self, fleet: Fleet) -> None:
        with after_a_while(fleet.strict, fleet) as (before, after):
            web, api, cart = (named(after, name) for name in ("web", "api", "cart"))
        assert web.recommended_replicas == PODS
        assert "the server's answer was partial" in web.replicas.message
        assert api.recommended_replicas == named(before, "api").recommended_replicas
        assert isinstance(cart.replicas, Hold)
        assert cart.replicas.reason is Reason.SOURCE_DOWN
        assert "the answer that lists workloads is partial" in cart.replicas.message
        assert any(
            "query 'hpa_scale_targets'" in failure and "is partial" in failure for failure in after.report.failures
        )

    def test_holds_all_where_a_partial_answer_is_an_error(self, fleet: Fleet) -> None:
        with after_a_while(fleet.refusing, fleet) as (_, after):
            held = [recommendation.replicas for recommendation in after.recommendations]
        assert len(held) == 3
        assert {decision.reason for decision in held if isinstance(decision, Hold)} == {Reason.SOURCE_DOWN}

    def test_that_is_left_out_without_a_word_is_missed_by_its_pods(self, fleet: Fleet) -> None:
        """The workload of the silent store looks like a deleted one: docs/prometheus.md says what to do."""
        with after_a_while(fleet.deduplicated, fleet) as (_, after):
            web = named(after, "web")
        assert {recommendation.id.name for recommendation in after.recommendations} == {"web", "api"}
        assert web.recommended_replicas == PODS
        assert f"{WESTERN} of {PODS} ready pods have samples" in web.replicas.message
