from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.serving.node_load import NodeLoad, Snapshot
from tests.support.asgi import Client
from tests.support.recommendations import NOON

LOAD = {
    "timestamp": 1,
    "window": {"duration": "15m", "start": 0, "end": 1},
    "source": "forecaster",
    "data": {"NodeMetricsMap": {"n1": {"metrics": []}, "n2": {"metrics": []}}},
}


class Served:
    """A load with a clock that the story turns."""

    def __init__(self) -> None:
        self.now = NOON
        self.load = NodeLoad(lambda: self.now, timedelta(minutes=3))
        self.client = Client(self.load.app())

    def get(self, path: str) -> tuple[int, str]:
        answer = self.client.get(path)
        return answer.status_code, answer.text


@pytest.fixture
def served() -> Served:
    return Served()


def test_before_the_first_look_there_is_no_answer(served: Served) -> None:
    assert served.get("/watcher")[0] == 503
    assert served.get("/watcher/health")[0] == 503
    assert served.get("/healthz") == (200, "ok\n")


def test_every_node_or_one(served: Served) -> None:
    served.load.replace(Snapshot(NOON, LOAD, "forecaster_node_pool_nodes 2\n"))
    assert served.client.get("/watcher").json() == LOAD
    assert set(served.client.get("/watcher?host=n1").json()["data"]["NodeMetricsMap"]) == {"n1"}
    assert served.get("/watcher?host=n3")[0] == 404
    assert served.get("/metrics") == (200, "forecaster_node_pool_nodes 2\n")


def test_an_old_forecast_is_no_answer(served: Served) -> None:
    served.load.replace(Snapshot(NOON, LOAD, "x 1\n"))
    served.now = NOON + timedelta(minutes=3, seconds=1)
    assert served.get("/watcher")[0] == 503
    assert served.get("/metrics") == (200, "")
