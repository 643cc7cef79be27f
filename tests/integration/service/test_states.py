"""Mode and state of a forecast are the same two words on the fleet, on a workload's page, in JSON, text and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.publish.reader import TableReader
from forecaster.publish.table import pictures_path
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.builders import after, workload
from tests.support.composed import composed, recorded_cluster, table_path, tick

if TYPE_CHECKING:
    from pathlib import Path

STORIES = {
    "acting": ({"mode": "publish"}, "acting", "acting"),
    "observe": ({"mode": "observe"}, "observing", "acting"),
    "ungated": ({"mode": "publish", "horizontal": {"gate": False}}, "acting", ""),
}
"""Policy, state on the pages, and state of the gate, which knows no mode; "" without a gate."""


@pytest.mark.parametrize(("policy", "state", "gate"), STORIES.values(), ids=STORIES)
def test_every_face_says_the_same_word(tmp_path: Path, policy: dict[str, object], state: str, gate: str) -> None:
    with recorded_cluster([workload("web")]) as cluster, composed(cluster, tmp_path, policy=policy) as service:
        for minute in range(3):
            tick(service, after(minute))
    reader = TableReader(table_path(tmp_path), lambda: after(2))
    reader.refresh()
    client = Client(create_app(reader, pictures=TableReader(pictures_path(table_path(tmp_path)))))
    fleet = client.get("/dashboard/fleet").json()
    page = client.get("/dashboard/workloads/shop/Deployment/web").json()
    answer = client.get("/api/v1/recommendations/shop/web").json()["recommendation"]
    assert [fleet["states"][code] for code in fleet["state"]] == [state]
    assert [fleet["modes"][code] for code in fleet["mode"]] == [policy["mode"]]
    for recommendation in (page["recommendation"], answer):
        assert (recommendation["mode"], recommendation["forecast"]["state"]) == (policy["mode"], state)
    assert any(f"forecast {state}" in line for line in page["lines"])
    assert client.get("/dashboard/health").json()["states"] == ([[gate, "model", 1]] if gate else [])
    assert (f'forecaster_gates{{forecaster="model",state="{gate}"}} 1.0' in client.get("/metrics").text) == bool(gate)
