"""The embedded endpoint speaks the protocol of Prometheus, and only the queries it was given."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import requests

from forecaster.domain.signal import CPU as CPU_SIGNAL
from forecaster.domain.signal import MEMORY, PODS, REQUESTS, Signal
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import MINUTE, RecordedFleet, Recording
from forecaster.sources.settings import PrometheusSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
WEB = WorkloadId("shop", "Deployment", "web")
DB = WorkloadId("data", "StatefulSet", "db")
NAN = float("nan")

RECORDING = Recording(
    start=START,
    workloads=(
        Workload(
            WEB,
            2,
            2,
            Resources(cpu_request=0.5, memory_limit=2.0**30),
            Autoscaler("web", 2, 9, (Target("cpu", TargetType.UTILIZATION, 0.7),)),
        ),
        Workload(DB, 1, 1),
    ),
    values={
        CPU_SIGNAL: np.array([np.arange(20.0), [1.0, NAN, 3.0, NAN, *[NAN] * 16]]),
        MEMORY: np.array([1e6 * np.arange(20.0), np.full(20, NAN)]),
        REQUESTS: np.array([10.0 * np.arange(20.0), np.full(20, NAN)]),
        PODS: np.array([np.full(20, 2.0), np.full(20, 1.0)]),
    },
)


@pytest.fixture
def fleet() -> RecordedFleet:
    return RECORDING.fleet(START)


@pytest.fixture
def endpoint(fleet: RecordedFleet) -> Iterator[EmbeddedPrometheus]:
    with EmbeddedPrometheus(RECORDING, Queries(), fleet) as running:
        yield running


@pytest.fixture
def source(endpoint: EmbeddedPrometheus) -> Iterator[PrometheusSource]:
    opened = PrometheusSource(PrometheusSettings(url=endpoint.url, retries=0), Queries())
    yield opened
    opened.close()


def at(minute: int) -> datetime:
    return START + minute * MINUTE


def row(source: PrometheusSource, signal: Signal, first: int, last: int, step: int = 1) -> list[float]:
    (block,) = source.history(signal, at(first), at(last), step * MINUTE)
    assert block.ids[0] == WEB
    return list(block.values[0].tolist())


def test_a_rate_is_the_mean_over_its_window(source: PrometheusSource) -> None:
    """The window is two minutes for one-minute points, five for five-minute points."""
    assert row(source, CPU_SIGNAL, 1, 3) == [0.5, 1.5, 2.5]
    assert row(source, CPU_SIGNAL, 5, 15, step=5) == [3.0, 8.0, 13.0]


def test_a_level_is_the_newest_minute(source: PrometheusSource) -> None:
    assert row(source, MEMORY, 5, 15, step=5) == [5e6, 10e6, 15e6]


def test_the_request_rate_is_found_like_in_any_cluster(source: PrometheusSource) -> None:
    assert row(source, REQUESTS, 1, 2) == [5.0, 15.0]


def test_gaps_are_gaps(source: PrometheusSource) -> None:
    (block,) = source.history(CPU_SIGNAL, at(0), at(6), MINUTE)
    assert block.ids[1] == DB
    np.testing.assert_array_equal(block.values[1], [1.0, 1.0, 3.0, 3.0, NAN, NAN, NAN])


def test_beyond_the_recording_nobody_is_known(source: PrometheusSource) -> None:
    assert source.latest(CPU_SIGNAL, at(20)).ids == ()
    assert source.latest(CPU_SIGNAL, at(-1)).ids == ()


def test_the_inventory_is_the_fleet_of_this_moment(source: PrometheusSource, fleet: RecordedFleet) -> None:
    fleet.scale(WEB, 7, ready_replicas=3, at=at(5))
    inventory = source.inventory(at(5))
    assert inventory.faults == ()
    assert inventory.workloads == tuple(sorted(fleet.workloads(), key=lambda workload: workload.id))
    assert (fleet[WEB].replicas, fleet[WEB].ready_replicas) == (7, 3)


def test_ready_pods_follow_the_recording_until_somebody_scales(source: PrometheusSource, fleet: RecordedFleet) -> None:
    fleet.scale(WEB, 4, at=at(3))
    fleet.scale(WEB, 6, at=at(5))
    assert row(source, PODS, 1, 6) == [2.0, 2.0, 4.0, 4.0, 6.0, 6.0]


def test_namespaces_narrow_what_is_served(fleet: RecordedFleet) -> None:
    queries = Queries(namespaces="data")
    with EmbeddedPrometheus(RECORDING, queries, fleet) as endpoint:
        source = PrometheusSource(PrometheusSettings(url=endpoint.url), queries)
        assert source.latest(CPU_SIGNAL, at(0)).ids == (DB,)
        assert [workload.id for workload in source.inventory(at(0)).workloads] == [DB]
        source.close()


def ask(endpoint: EmbeddedPrometheus, path: str, **parameters: Any) -> requests.Response:
    return requests.get(endpoint.url + path, params=parameters, timeout=5)


CPU = Queries().signal(CPU_SIGNAL)


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({"query": "up", "time": 0}, "answers only the queries"),
        ({"time": 0}, '"query": missing'),
        ({"query": CPU}, '"time": missing'),
        ({"query": CPU, "time": "noon"}, "cannot parse"),
        ({"query": CPU, "time": "nan"}, "not finite"),
    ],
)
def test_what_is_not_understood_gets_the_error_of_the_api(
    endpoint: EmbeddedPrometheus, parameters: dict[str, Any], fault: str
) -> None:
    reply = ask(endpoint, "/api/v1/query", **parameters)
    assert reply.status_code == 400
    assert reply.json()["errorType"] == "bad_data"
    assert fault in reply.json()["error"]


@pytest.mark.parametrize(
    ("span", "fault"),
    [((0, 60, 0), "step"), ((60, 0, 60), "end"), ((0, 60 * 11_000, 60), "11,000 points")],
)
def test_ranges_have_the_limits_of_prometheus(
    endpoint: EmbeddedPrometheus, span: tuple[int, int, int], fault: str
) -> None:
    start, end, step = span
    reply = ask(endpoint, "/api/v1/query_range", query=CPU, start=start, end=end, step=step)
    assert reply.status_code == 400
    assert fault in reply.json()["error"]


def test_get_and_post_answer_the_same(endpoint: EmbeddedPrometheus) -> None:
    form = {"query": CPU, "time": str(at(3).timestamp())}
    posted = requests.post(endpoint.url + "/api/v1/query", data=form, timeout=5)
    assert ask(endpoint, "/api/v1/query", **form).json() == posted.json()
    assert posted.json()["data"]["resultType"] == "vector"


def test_it_says_that_it_is_ready_and_what_it_is(endpoint: EmbeddedPrometheus) -> None:
    assert ask(endpoint, "/-/ready").status_code == 200
    assert json.loads(ask(endpoint, "/api/v1/status/buildinfo").text)["data"] == {"version": "embedded"}
    assert ask(endpoint, "/graph").status_code == 404


def test_a_week_of_history_takes_no_time_worth_mentioning(source: PrometheusSource) -> None:
    """Only twenty minutes of the requested week are recorded."""
    blocks = list(source.history(CPU_SIGNAL, at(0) - timedelta(days=7), at(19), 5 * MINUTE))
    assert sum(block.values.shape[1] for block in blocks) == 7 * 288 + 4
