"""Answers about containers, as Prometheus gives them."""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import pytest

from forecaster.domain.signal import CPU, MEMORY
from forecaster.domain.workload import ContainerId, Resources, WorkloadId
from forecaster.sources.facts import InstantRow, container_block, container_of, facts_of
from forecaster.sources.pacing import Grid
from forecaster.sources.queries import Queries
from forecaster.sources.wire import answer_of
from tests.support.recommendations import NOON

MINUTES = timedelta(minutes=5)
WEB = WorkloadId("shop", "Deployment", "web")
APP, SETUP = ContainerId(WEB, "app"), ContainerId(WEB, "setup")
LABELS = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web", "container": "app"}


def row(value: float = 1.0, **labels: str) -> InstantRow:
    return InstantRow(LABELS | labels, value)


NOTHING: dict[str, list[InstantRow]] = {
    name: []
    for name in (
        "container_images",
        "init_containers",
        "container_requests",
        "container_limits",
        "oom_kills",
        "held_back",
    )
}


def test_a_container_is_named_by_its_labels() -> None:
    assert container_of(LABELS) == APP


@pytest.mark.parametrize("missing", ["namespace", "workload", "container"])
def test_a_series_without_a_name_is_nobodys(missing: str) -> None:
    assert container_of({key: value for key, value in LABELS.items() if key != missing}) is None


def test_requests_and_limits_are_those_of_the_container() -> None:
    facts = facts_of(
        NOTHING
        | {
            "container_requests": [row(0.5, resource="cpu"), row(1024.0, resource="memory")],
            "container_limits": [row(2048.0, resource="memory")],
        }
    )
    assert facts.resources[APP] == Resources(0.5, None, 1024.0, 2048.0)


def test_a_sidecar_is_no_init_container() -> None:
    rows = [row(container="setup", restart_policy=""), row(container="mesh", restart_policy="Always")]
    assert facts_of(NOTHING | {"init_containers": rows}).init == {SETUP}


def test_images_kills_and_throttling_are_kept() -> None:
    facts = facts_of(
        NOTHING | {"container_images": [row(image="web:2")], "oom_kills": [row(512.0)], "held_back": [row(0.2)]}
    )
    assert (facts.images[APP], facts.oom_limits[APP], facts.held_back[APP]) == ("web:2", 512.0, 0.2)


def test_usage_is_on_the_grid_and_doubles_count_once() -> None:
    times = [int((NOON + i * MINUTES).timestamp()) for i in range(2)]
    name = '{"namespace":"shop","workload_kind":"Deployment","workload":"web","container":"app"%s}'
    series = [
        f'{{"metric":{name % extra},"values":[[{times[0]},"{low}"],[{times[1]},"{high}"]]}}'
        for extra, low, high in (("", 1, 4), (',"node":"b"', 2, 3))
    ]
    body = f'{{"status":"success","data":{{"resultType":"matrix","result":[{",".join(series)}]}}}}'
    block = container_block(answer_of(body.encode()), Grid(NOON, MINUTES, 2))
    assert block.ids == (APP,)
    np.testing.assert_array_equal(block.values, [[2.0, 4.0]])


class TestQueries:
    def test_usage_is_that_of_the_hottest_pod(self) -> None:
        for signal in (CPU, MEMORY):
            query = Queries().container_usage(signal, MINUTES)
            assert query.startswith("max by (namespace, workload_kind, workload, container)")
            assert "[5m]" in query

    def test_a_kill_is_read_from_the_restart_and_the_limit_of_its_time(self) -> None:
        query = Queries().container_facts()["oom_kills"]
        assert "increase(kube_pod_container_status_restarts_total" in query
        assert "[1w:15m]" in query

    def test_every_placeholder_is_filled(self) -> None:
        assert not any(re.search(r"\$[a-z]", query) for query in Queries().container_facts().values())

    def test_one_may_be_replaced(self) -> None:
        assert Queries(oom_kills="my_kills").container_facts()["oom_kills"] == "my_kills"
