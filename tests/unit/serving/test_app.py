from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.domain.decision import Reason
from forecaster.publish.reader import PublishedTable, TableEntry, TableReader
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.published import publisher
from tests.support.recommendations import NOON, recommendation, workload_id
from tests.support.tables import publish
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.publish.views import RecommendationView


class Clock:
    now = NOON + timedelta(seconds=10)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return publish(
        tmp_path / "table",
        recommendation(workload_id("api")),
        recommendation(workload_id("web"), replicas=None, reason=Reason.NO_DATA),
        recommendation(workload_id("web", kind="StatefulSet")),
        recommendation(workload_id("café +1", namespace="other")),
        metrics="# from the cycle\n",
    )


def client_of(path: Path, clock: Clock) -> Client:
    reader = TableReader(path, clock)
    reader.refresh()
    return Client(create_app(reader))


@pytest.fixture
def client(path: Path, clock: Clock) -> Client:
    return client_of(path, clock)


@pytest.fixture
def empty(tmp_path: Path, clock: Clock) -> Client:
    return client_of(tmp_path / "none", clock)


def listed(client: Client, query: str = "") -> list[Any]:
    items: list[Any] = client.get(f"/api/v1/recommendations?{query}").json()["items"]
    return [(item["kind"], item["name"]) for item in items]


def test_alive_even_without_a_table(empty: Client) -> None:
    assert empty.get("/healthz").status_code == 200


def test_not_ready_without_a_table_and_says_why(empty: Client) -> None:
    answer = empty.get("/readyz")
    assert answer.status_code == 503
    assert "no table has been published" in answer.json()["detail"]


def test_ready_with_a_fresh_table(client: Client) -> None:
    assert client.get("/readyz").json() == {
        "published_at": "2026-03-01T12:00:00Z",
        "age_seconds": 10.0,
        "stale": False,
        "version": "1.2.3",
        "workloads": 4,
        "fault": "",
    }


def test_a_stale_table_is_served_and_said_to_be_stale(client: Client, clock: Clock) -> None:
    """Not ready would take the process out of its Service, and then nobody could abstain."""
    clock.now = NOON + timedelta(minutes=4)
    assert client.get("/readyz").json()["stale"] is True
    answer = client.get("/api/v1/recommendations/shop/api").json()
    assert answer["stale"] is True
    assert answer["age_seconds"] == 240.0
    assert answer["recommendation"]["replicas"]["recommended"] == 5


def test_a_small_skew_of_clocks_is_no_age(client: Client, clock: Clock) -> None:
    clock.now = NOON - timedelta(seconds=20)
    answer = client.get("/readyz").json()
    assert (answer["age_seconds"], answer["stale"]) == (0.0, False)


def test_a_table_from_the_future_is_stale_and_says_so(tmp_path: Path, clock: Clock) -> None:
    """Values of a clock that jumped back are not believed until then, nor repeated as the last known ones."""
    publisher(tmp_path / "table").publish(NOON, [recommendation()])
    client = client_of(tmp_path / "table", clock)
    clock.now = NOON - timedelta(hours=6)
    answer = client.get("/readyz").json()
    assert (answer["age_seconds"], answer["stale"]) == (-21600.0, True)
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand"
    refused = client.get(f"{path}?labelSelector=workload=web,signal=cpu")
    assert refused.status_code == 503
    assert "2026-03-01 12:00:00 UTC, which is in the future" in refused.json()["message"]


def test_the_list_is_ordered_and_complete(client: Client) -> None:
    assert listed(client) == [
        ("Deployment", "café +1"),
        ("Deployment", "api"),
        ("Deployment", "web"),
        ("StatefulSet", "web"),
    ]


@pytest.mark.parametrize(
    ("query", "count"),
    [("namespace=shop", 3), ("kind=StatefulSet", 1), ("verdict=hold", 1), ("reason=no-data", 1), ("namespace=x", 0)],
)
def test_the_list_is_filtered(client: Client, query: str, count: int) -> None:
    assert len(listed(client, query)) == count


def test_the_list_is_paged(client: Client) -> None:
    first = client.get("/api/v1/recommendations?limit=3").json()
    rest = client.get(f"/api/v1/recommendations?limit=3&continue={first['continue']}").json()
    assert len(first["items"]) == 3
    assert [item["kind"] for item in rest["items"]] == ["StatefulSet"]
    assert rest["continue"] is None


def test_no_other_answer_waits_for_a_long_list(path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is under way until another request has been answered."""
    begun, answered, view = threading.Event(), threading.Event(), PublishedTable.view

    def slowly(table: PublishedTable, entry: TableEntry) -> RecommendationView:
        begun.set()
        assert answered.wait(PATIENCE)
        return view(table, entry)

    monkeypatch.setattr(PublishedTable, "view", slowly)

    async def both() -> tuple[int, int]:
        long = asyncio.create_task(client.send("GET", "/api/v1/recommendations"))
        await asyncio.to_thread(begun.wait, 10)
        short = await client.send("GET", "/healthz")
        answered.set()
        return short.status_code, (await long).status_code

    client = client_of(path, clock)
    assert asyncio.run(both()) == (200, 200)


def test_one_name_of_two_kinds_asks_which(client: Client) -> None:
    answer = client.get("/api/v1/recommendations/shop/web")
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert "?kind=" in answer.json()["remedy"]
    chosen = client.get("/api/v1/recommendations/shop/web?kind=StatefulSet").json()
    assert chosen["recommendation"]["kind"] == "StatefulSet"


def test_a_name_with_odd_characters_is_found_percent_encoded(client: Client) -> None:
    answer = client.get("/api/v1/recommendations/other/caf%C3%A9%20%2B1").json()
    assert answer["recommendation"]["name"] == "café +1"


@pytest.mark.parametrize(
    "name", ["absent", "..%2f..%2fetc%2fpasswd", "%00", "%ff", "web'--", "a" * 5000], ids=lambda name: name[:12]
)
def test_an_unknown_name_is_a_problem_with_a_remedy(client: Client, name: str) -> None:
    answer = client.get(f"/api/v1/recommendations/shop/{name}")
    assert answer.status_code == 404
    assert answer.json()["remedy"]


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
def test_it_is_read_only(client: Client, verb: str) -> None:
    answer = client.request(verb, "/api/v1/recommendations")
    assert answer.status_code == 405
    assert answer.json()["remedy"] == "This interface is read-only: use GET."
    assert "GET" in answer.headers["allow"]


WEB = "/api/v1/namespaces/shop/workloads/Deployment/web"


@pytest.mark.parametrize(
    ("url", "about"),
    [
        ("/api/v1/recommendations?limit=0", "limit '0' is not allowed"),
        ("/api/v1/recommendations?nmaespace=shop", "unknown parameter 'nmaespace'"),
        ("/api/v1/recommendations?namespace=shop&namespace=other", "'namespace' is given 2 times"),
        ("/api/v1/recommendations?verdict=raise", "verdict 'raise' is not allowed"),
        ("/api/v1/recommendations/shop/web?kidn=Deployment", "unknown parameter 'kidn'"),
        (f"{WEB}/forecasts?signal=cpu", "unknown parameter 'signal'"),
        (f"{WEB}/metrics/forecaster_demand/forecast?signl=cpu", "unknown parameter 'signl'"),
        (f"{WEB}/metrics/forecaster_demand/forecast?signal=cpu&signal=memory", "'signal' is given 2 times"),
    ],
)
def test_a_bad_query_is_a_problem_and_no_other_answer(client: Client, url: str, about: str) -> None:
    answer = client.get(url)
    assert answer.status_code == 400
    assert about in answer.json()["detail"]
    assert answer.json()["remedy"]


def test_metrics_are_those_of_both_processes(client: Client) -> None:
    client.get("/healthz")
    text = client.get("/metrics").text
    assert text.startswith("# from the cycle\n")
    assert 'forecaster_serving_requests_total{code="200",handler="healthz"} 1.0' in text
    assert "forecaster_serving_table_age_seconds 10.0" in text
    assert "forecaster_serving_table_workloads 4.0" in text


def test_what_fails_is_counted_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublishedTable, "view", lambda _table, _entry: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        client.get("/api/v1/recommendations/shop/web?kind=Deployment")
    line = 'forecaster_serving_requests_total{code="500",handler="recommendation"} 1.0'
    assert line in client.get("/metrics").text


def test_without_a_table_its_age_is_not_a_number(empty: Client) -> None:
    assert "forecaster_serving_table_age_seconds NaN" in empty.get("/metrics").text


def test_a_computing_process_that_starts_blind_goes_on_from_what_the_last_one_published(
    tmp_path: Path, clock: Clock
) -> None:
    repeating = {"publish": {"abstain": "last"}}
    publisher(tmp_path / "table", **repeating).publish(NOON, [recommendation()])
    later = NOON + timedelta(minutes=2)
    blind = recommendation(at=later, replicas=None, reason=Reason.SOURCE_DOWN)
    publisher(tmp_path / "table", **repeating).publish(later, [replace(blind, signals=())])
    clock.now = later
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand"
    (item,) = client_of(tmp_path / "table", clock).get(f"{path}?labelSelector=workload=web,signal=cpu").json()["items"]
    assert (item["value"], item["metricLabels"]["source"]) == ("1750m", "last")
    assert item["timestamp"] == "2026-03-01T12:00:00Z"


def test_gauges_of_workloads_are_passed_on_while_the_table_is_fresh(tmp_path: Path, clock: Clock) -> None:
    publish(tmp_path / "table", gauges="counts")
    gauged = client_of(tmp_path / "table", clock)
    line = 'forecaster_workload_replicas{namespace="shop",kind="Deployment",workload="web"} 3'
    assert line in gauged.get("/metrics").text
    for clock.now in (NOON + timedelta(minutes=4), NOON - timedelta(minutes=4)):
        assert line not in gauged.get("/metrics").text
