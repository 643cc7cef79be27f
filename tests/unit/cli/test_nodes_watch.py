from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from typer.testing import CliRunner

from forecaster.app import telemetry
from forecaster.app.capacity_buffers import BufferWriter, largest
from forecaster.app.demo import settings_for, staged
from forecaster.cli import app
from forecaster.cli.nodes import NodeWatch, metrics_app
from forecaster.cli.snapshot import CycleSnapshot, Observer
from forecaster.config.settings import CycleSettings
from forecaster.cycle.node_forecast import NodeForecast
from forecaster.kube.client import ApiError
from forecaster.vertical.cluster_rules.node import Node
from forecaster.vertical.cluster_rules.resource_list import parsed
from forecaster.vertical.nodes.forecast import PoolForecast
from forecaster.vertical.nodes.headroom import Headroom
from forecaster.vertical.nodes.pools import pools_of
from tests.support import objects as given
from tests.support.asgi import Client
from tests.support.builders import NOON
from tests.support.faulty_proxy import FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from forecaster.kube.client import ApiClient

SETTINGS = CycleSettings()
APP = given.container("reports", {"cpu": "2", "memory": "2Gi"})


class Watched:
    """A watch over the nodes of the recorded load, with a clock that the test advances."""

    def __init__(self, observer: Observer, begin: datetime, prometheus: FaultyProxy) -> None:
        self.now, self.prometheus = begin + SETTINGS.delay, prometheus
        self.watch = NodeWatch(observer, SETTINGS, 0.95, 30, telemetry.logger(), clock=lambda: self.now)
        self.client = Client(metrics_app(self.watch))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    pods = [given.pod("data", f"reports-{i}", "n1", APP, owner=("ReplicaSet", "reports-7d9f")) for i in range(5)]
    path = given.written(
        tmp_path / "cluster.json",
        given.deployment("data", "reports", APP),
        given.replica_set("data", "reports"),
        given.node("n1", "16", "64Gi"),
        *pods,
    )
    with staged() as stage, FaultyProxy(stage.url) as proxy:
        settings = settings_for(proxy.url)
        impatient = settings.model_copy(update={"prometheus": settings.prometheus.model_copy(update={"retries": 0})})
        yield Watched(Observer(impatient, stage.begin, [path], None), stage.begin, proxy)


class Broken(Observer):
    """An observer that can no longer read the cluster."""

    def __init__(self) -> None:
        pass

    def snapshot(self, now: datetime) -> CycleSnapshot:
        raise RuntimeError("no sight")


def test_prometheus_reads_the_forecast_and_after_some_failures_nothing(watched: Watched) -> None:
    assert watched.client.get("/metrics").text == ""
    watched.watch.tick()
    assert "forecaster_node_pool_nodes_needed" in watched.client.get("/metrics").text

    watched.watch.observer = Broken()
    watched.now += timedelta(minutes=1)
    watched.watch.tick()
    assert "forecaster_node_pool_nodes_needed" in watched.client.get("/metrics").text
    watched.now += 3 * SETTINGS.interval
    assert watched.client.get("/metrics").text == ""


def test_while_prometheus_is_away_the_last_forecast_is_not_renewed_and_grows_stale(
    watched: Watched,
) -> None:
    """History that ends makes a forecast all the same, of a load that nobody has seen."""
    watched.watch.tick()
    before, watched.prometheus.away = watched.client.get("/metrics").text, True
    for shown in (before, before, ""):
        watched.now += SETTINGS.interval
        watched.watch.tick()
        assert watched.client.get("/metrics").text == shown
    watched.prometheus.mended()
    watched.watch.tick()
    assert "forecaster_node_pool_nodes_needed" in watched.client.get("/metrics").text


class FakeApi:
    """An API server that keeps the replicas of applied buffers, or refuses every document."""

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        self.refuses = False

    def apply(self, path: str, document: dict[str, Any], _kind: type) -> dict[str, Any]:
        if self.refuses:
            raise ApiError(f"PATCH {path}: 409", 409)
        if document["kind"] == "CapacityBuffer":
            self.written[path] = document["spec"]["replicas"]
        return document


BUFFER = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/capacity/capacitybuffers/forecaster-headroom-{}?fieldManager={}"


class TestBuffers:
    """Each pool has a buffer that rises at once, falls after ten minutes, and is renewed at each look."""

    @pytest.fixture
    def api(self) -> FakeApi:
        return FakeApi()

    @pytest.fixture
    def writer(self, api: FakeApi) -> BufferWriter:
        return BufferWriter(cast("ApiClient", api), "capacity", telemetry.logger())

    def after(self, writer: BufferWriter, *replicas_at: tuple[int, float]) -> None:
        for replicas, at in replicas_at:
            writer.renew(forecast_at(at, Headroom("spot", replicas, 0.5, 2.0**30, None, "")))

    @pytest.mark.parametrize(
        ("replicas_at", "written"),
        [
            ([(3, 0)], 3),
            ([(3, 0), (5, 1)], 5),
            ([(5, 0), (3, 9)], 5),
            ([(5, 0), (3, 10)], 3),
            ([(5, 0), (3, 9), (0, 12)], 3),
            ([(0, 0)], 0),
            ([(9, 300), (3, 0)], 3),
        ],
        ids=["first", "rises", "stays", "falls", "falls to the largest since", "none", "a clock that was ahead"],
    )
    def test_a_buffer_is_the_largest_of_the_last_ten_minutes(
        self, api: FakeApi, writer: BufferWriter, replicas_at: list[tuple[int, float]], written: int
    ) -> None:
        self.after(writer, *replicas_at)
        assert api.written == {BUFFER.format("spot", "forecaster-nodes"): written}

    def test_larger_placeholders_count_by_their_cores(self) -> None:
        few, many = Headroom("spot", 2, 4.0, 2.0**30, None, ""), Headroom("spot", 5, 0.5, 2.0**30, None, "")
        assert largest([few, many]) is few

    def test_a_buffer_that_is_refused_is_logged_once_and_written_when_it_can_be(
        self, api: FakeApi, writer: BufferWriter, capsys: pytest.CaptureFixture[str]
    ) -> None:
        api.refuses = True
        self.after(writer, (3, 0), (3, 1))
        assert (api.written, capsys.readouterr().out.count("buffer_not_renewed")) == ({}, 1)
        api.refuses = False
        self.after(writer, (3, 2))
        assert list(api.written.values()) == [3]

    def test_a_look_writes_buffers_and_a_failed_look_leaves_them(self, watched: Watched, api: FakeApi) -> None:
        watched.watch.buffers = BufferWriter(cast("ApiClient", api), "capacity", telemetry.logger())
        watched.watch.tick()
        assert len(api.written) == 1
        api.written = {}
        watched.watch.observer = Broken()
        watched.watch.tick()
        assert api.written == {}


def forecast_at(minute: float, *headrooms: Headroom) -> NodeForecast:
    """A forecast at this minute after noon, with these headrooms and a node in each of their pools."""
    nodes = [
        Node("n1", parsed({"cpu": "4", "memory": "16Gi"}), {"karpenter.sh/nodepool": headroom.pool})
        for headroom in headrooms
    ]
    ahead = tuple(PoolForecast(pool, (), 0.0, 0.0, 0.0, 0.0, (), ()) for pool in pools_of(nodes))
    return NodeForecast(NOON + timedelta(minutes=minute), 0.95, ahead, headrooms, ())


def test_an_instant_of_the_past_cannot_be_served() -> None:
    """Left without a word, the present would be served in its place."""
    for past in (["--at", "2026-03-01T12:00:00Z"], ["--demo", "--objects", __file__]):
        shown = CliRunner().invoke(app, ["nodes", "--serve", ":0", *past])
        assert shown.exit_code == 2
        assert "goes on from the present minute" in " ".join(shown.output.split())
