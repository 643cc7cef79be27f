from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.app import telemetry
from forecaster.app.demo import settings_for, staged
from forecaster.cli.look import Look, Observer
from forecaster.cli.nodes import NodeWatch
from forecaster.config.settings import CycleSettings
from tests.support import objects as given
from tests.support.asgi import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

SETTINGS = CycleSettings()
APP = given.container("reports", {"cpu": "2", "memory": "2Gi"})


class Watched:
    """A watch on the recorded load, with a clock that the story turns."""

    def __init__(self, observer: Observer, begin: datetime) -> None:
        self.now = begin + SETTINGS.delay
        self.watch = NodeWatch(observer, SETTINGS, 0.95, 30, telemetry.logger(), clock=lambda: self.now)
        self.client = Client(self.watch.load.app())


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
    with staged() as stage:
        yield Watched(Observer(settings_for(stage.url), stage.begin, [path], None), stage.begin)


class Broken(Observer):
    """Sees nothing any more."""

    def __init__(self) -> None:
        pass

    def look(self, now: datetime) -> Look:
        raise RuntimeError("no sight")


def test_a_scheduler_reads_the_forecast_and_after_some_failures_nothing(watched: Watched) -> None:
    watched.watch.tick()
    (node,) = watched.client.get("/watcher").json()["data"]["NodeMetricsMap"].items()
    assert node[0] == "n1"
    assert 0 < next(one["value"] for one in node[1]["metrics"] if one["type"] == "CPU") < 100
    assert "forecaster_node_pool_nodes_needed" in watched.client.get("/metrics").text

    watched.watch.observer = Broken()
    watched.now += timedelta(minutes=1)
    watched.watch.tick()
    assert watched.client.get("/watcher").status_code == 200
    watched.now += 3 * SETTINGS.interval
    assert watched.client.get("/watcher").status_code == 503
