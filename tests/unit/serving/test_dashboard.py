"""The dashboard over HTTP: one page without names, columns that equal the table, nothing for a browser to run."""

from __future__ import annotations

import asyncio
import base64
import re
import struct
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import BUILT_IN, CPU, StepForecast
from forecaster.domain.window import MINUTE, Window
from forecaster.domain.workload import Prices
from forecaster.publish.health import HealthHistory, SettingView, shown_settings
from forecaster.publish.pictures import PICTURE_POINTS, PictureFile
from forecaster.publish.reader import PublishedTable, TableEntry, TableReader
from forecaster.publish.table import pictures_path
from forecaster.publish.table_file import TableFile
from forecaster.serving.access_control import AccessControl
from forecaster.serving.app import FrontApplication, create_app
from forecaster.serving.dashboard import STATIC_FOLDER
from forecaster.serving.external_metrics import MetricsApi
from forecaster.serving.metrics import ServingMetrics
from forecaster.serving.options import FOLLOWS
from forecaster.serving.what_if import WhatIfProcess
from tests.support.asgi import Client
from tests.support.decided_records import RecordPublisher
from tests.support.recommendations import NOON, recommendation, workload_id
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.signal import Signal
    from forecaster.publish.views import RecommendationView

HOSTILE = '<img src=x onerror="alert(1)">'
ROWS = (
    recommendation(workload_id("api"), replicas=5),
    recommendation(workload_id(HOSTILE), replicas=None, reason=Reason.NO_DATA),
    recommendation(workload_id("web", namespace="other", kind="StatefulSet"), replicas=3, reason=Reason.REACTIVE),
)


def window(signal: Signal, step: timedelta) -> Window:
    """History of two of the workloads: the first had 1 core, 2, 3 ... by five minutes, the other nothing."""
    ids = (ROWS[2].id, ROWS[0].id)
    values = np.full((2, 200), np.nan, np.float32)
    if signal == CPU:
        values[1] = np.arange(200) + 1
    return Window(ids, NOON - 199 * step, step, values)


def publish(path: Path, *rows: Recommendation, at: datetime = NOON, pictures: bool = True) -> None:
    given: dict[str, Any] = {"interval": MINUTE, "version": "1.2.3", "signals": BUILT_IN}
    table = TableFile(path, health=HealthHistory((SettingView("policy.mode", "publish", "environment"),)), **given)
    drawn = {"pictures": PictureFile(pictures_path(path), window=window, **given)} if pictures else {}
    RecordPublisher(Policies(Policy()), {"table": table, **drawn}).publish(at, rows)


def client_of(path: Path, at: datetime = NOON + timedelta(seconds=10)) -> Client:
    readers = TableReader(path, lambda: at), TableReader(pictures_path(path))
    for reader in readers:
        reader.refresh()
    return Client(create_app(readers[0], pictures=readers[1]))


@pytest.fixture
def client(tmp_path: Path) -> Client:
    publish(tmp_path / "table", *ROWS)
    return client_of(tmp_path / "table")


def test_the_page_lets_nothing_run_but_its_own_files(client: Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert re.findall(r"<script(?![^>]*src=)|\sstyle=|\son\w+=|https?://", page.text) == []


def test_no_script_or_style_asks_another_host_or_makes_html_of_text() -> None:
    for file in STATIC_FOLDER.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?://|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text) == [], (
            file.name
        )


@pytest.mark.parametrize("file", sorted(STATIC_FOLDER.iterdir()), ids=lambda file: file.name)
def test_every_file_that_is_named_is_served(client: Client, file: Path) -> None:
    assert client.get(f"/static/{file.name}").status_code == 200
    for named in re.findall(r'(?:from|src|href)=? ?"(?:\./|static/)([\w.]+)"', file.read_text()):
        assert client.get(f"/static/{named}").status_code == 200


@pytest.mark.parametrize("path", ["none.js", "..%2f__init__.py", "%2e%2e/app.py"])
def test_no_other_file_is(client: Client, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_the_columns_are_those_of_the_table(client: Client) -> None:
    fleet = client.get("/dashboard/fleet").json()
    listed = client.get("/api/v1/recommendations").json()["items"]
    for row, item in enumerate(listed):
        assert fleet["name"][row] == item["name"]
        assert fleet["namespaces"][fleet["namespace"][row]] == item["namespace"]
        assert fleet["kinds"][fleet["kind"][row]] == item["kind"]
        assert fleet["current"][row] == item["replicas"]["now"]
        assert fleet["recommended"][row] == (item["replicas"]["recommended"] or -1)
        assert fleet["reasons"][fleet["reason"][row]] == item["replicas"]["reason"]
        assert fleet["modes"][fleet["mode"][row]] == "observe"
        assert fleet["measured"][row] == 1.235
        assert fleet["peak"][row] == 1.75
    rows = ",".join(map(str, range(len(listed))))
    sentences = client.get(f"/dashboard/sentences?of=2026-03-01T12:00:00Z&rows={rows}").json()
    assert sentences["messages"] == [item["replicas"]["message"] for item in listed]


def test_what_has_not_changed_is_not_sent_again(client: Client) -> None:
    etag = client.get("/dashboard/fleet").headers["etag"]
    again = httpx.Headers({"If-None-Match": etag})
    assert client.get("/dashboard/fleet", headers=again).status_code == 304
    assert client.get("/static/app.js").headers["etag"] != etag


def test_sentences_of_another_table_are_not_taken_for_those_of_this_one(client: Client) -> None:
    assert client.get("/dashboard/sentences?of=2026-03-01T11:59:00Z&rows=0").json() == {"messages": []}


def test_however_many_sentences_are_asked_for_tables_are_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """New tables are read in threads, too: pages must not take them all."""
    begun, read, view = threading.Event(), threading.Event(), PublishedTable.view

    def slowly(table: PublishedTable, entry: TableEntry) -> RecommendationView:
        begun.set()
        assert read.wait(PATIENCE)
        return view(table, entry)

    monkeypatch.setattr(PublishedTable, "view", slowly)

    async def all_at_once() -> list[int]:
        path = "/dashboard/sentences?of=2026-03-01T12:00:00Z&rows=0"
        tasks = [asyncio.create_task(client.send("GET", path)) for _ in range(40)]
        await asyncio.to_thread(begun.wait, 10)
        await asyncio.to_thread(read.set)
        return [answer.status_code for answer in await asyncio.gather(*tasks)]

    assert asyncio.run(all_at_once()) == [200] * 40


@pytest.mark.parametrize("rows", ["", "x", "-1", "3", "0,1,99999999999", ",".join(["0"] * 101)])
def test_rows_that_are_not_there_are_refused(client: Client, rows: str) -> None:
    assert client.get(f"/dashboard/sentences?of=2026-03-01T12:00:00Z&rows={rows}").status_code == 400


def series_of(page: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    names, raw = page["series"]["names"], base64.b64decode(page["series"]["values"])
    return {
        name: struct.unpack(f"<{PICTURE_POINTS}f", raw[place * PICTURE_POINTS * 4 : (place + 1) * PICTURE_POINTS * 4])
        for place, name in enumerate(names)
    }


def test_a_workload_has_its_history_its_decision_and_the_sentences_of_explain(client: Client) -> None:
    page = client.get("/dashboard/workloads/shop/Deployment/api").json()
    explained = client.get("/api/v1/namespaces/shop/workloads/Deployment/api/explanation").json()
    assert page["lines"] == explained["lines"]
    assert page["recommendation"] == client.get("/api/v1/recommendations/shop/api").json()["recommendation"]
    assert page["series"]["until"] == "2026-03-01T12:00:00Z"
    series = series_of(page)
    assert series["cpu"] == tuple(range(200 - PICTURE_POINTS + 1, 201))
    assert all(value != value for value in series["memory"])  # noqa: PLR0124  NaN
    assert (series["recommended"][-1], series["peak"][-1]) == (5.0, 1.75)


def test_a_workload_that_is_held_has_no_count_in_its_history(client: Client) -> None:
    page = client.get(f"/dashboard/workloads/shop/Deployment/{HOSTILE.replace('/', '%2F')}").json()
    assert page["recommendation"]["name"] == HOSTILE
    assert all(value != value for value in series_of(page)["recommended"])  # noqa: PLR0124  NaN


def test_requests_are_counted_by_the_page_that_asks(client: Client) -> None:
    client.get("/dashboard/fleet")
    assert 'requests_total{code="200",handler="fleet"} 1.0' in client.get("/metrics").text


def test_an_unknown_workload_is_said_to_be_unknown(client: Client) -> None:
    answer = client.get("/dashboard/workloads/shop/Deployment/none")
    assert (answer.status_code, answer.json()["detail"]) == (404, "no Deployment shop/none in the table")


def test_health_comes_with_the_settings_that_were_changed(client: Client) -> None:
    assert client.get("/dashboard/health").json()["settings"] == [
        {"path": "policy.mode", "value": "publish", "origin": "environment"}
    ]


def test_without_pictures_the_fleet_is_shown_without_them(tmp_path: Path) -> None:
    publish(tmp_path / "table", *ROWS, pictures=False)
    fleet = client_of(tmp_path / "table").get("/dashboard/fleet").json()
    assert (fleet["name"], fleet["spark"], fleet["shown"]) == (["web", HOSTILE, "api"], "", [-1, -1, -1])


def test_pictures_of_other_workloads_are_found_by_name(tmp_path: Path) -> None:
    """A workload that came after the last pictures has none, and the others keep theirs."""
    publish(tmp_path / "table", *ROWS)
    publish(tmp_path / "table", recommendation(workload_id("aaa")), *ROWS, at=NOON + MINUTE, pictures=False)
    fleet = client_of(tmp_path / "table", NOON + MINUTE).get("/dashboard/fleet").json()
    assert dict(zip(fleet["name"], fleet["shown"], strict=True)) == {"aaa": -1, "api": 0, "web": 0, HOSTILE: 0}
    sparks, size = base64.b64decode(fleet["spark"]), fleet["spark_size"]
    row = fleet["name"].index("api")
    assert sparks[row * size] == 1 + round(254 * 165 / 200)
    assert not any(sparks[fleet["name"].index("aaa") * size :][:size])


def test_names_that_are_the_same_bytes_in_a_row_are_not_taken_for_each_other(tmp_path: Path) -> None:
    def fleet(*names: str) -> list[Recommendation]:
        return [recommendation(workload_id(name), replicas=5) for name in names]

    publish(tmp_path / "table", *fleet("ap", "iw"))
    publish(tmp_path / "table", *fleet("api", "w"), at=NOON + MINUTE, pictures=False)
    assert client_of(tmp_path / "table", NOON + MINUTE).get("/dashboard/fleet").json()["shown"] == [-1, -1]


def test_what_is_of_one_moment_is_kept_by_no_cache(client: Client) -> None:
    for path in ("now", "health", "workloads/shop/Deployment/api", "sentences?of=2026-03-01T12:00:00Z&rows=0"):
        assert client.get(f"/dashboard/{path}").headers["cache-control"] == "no-store", path


def test_a_cluster_without_workloads_is_an_empty_fleet(tmp_path: Path) -> None:
    publish(tmp_path / "table")
    fleet = client_of(tmp_path / "table").get("/dashboard/fleet").json()
    assert (fleet["name"], fleet["spark"]) == ([], "")


def test_without_a_dashboard_nothing_is_at_the_root(tmp_path: Path) -> None:
    publish(tmp_path / "table", *ROWS)
    reader = TableReader(tmp_path / "table")
    reader.refresh()
    assert Client(create_app(reader)).get("/").status_code == 404


def test_before_the_first_table_the_page_is_there_and_its_answers_say_what_is_missing(tmp_path: Path) -> None:
    client = client_of(tmp_path / "table")
    assert client.get("/").status_code == 200
    for path in ("now", "fleet", "health", "nodes", "workloads/shop/Deployment/api"):
        answer = client.get(f"/dashboard/{path}")
        assert (answer.status_code, list(answer.json())) == (200, ["waiting"])
        assert "no table has been published" in answer.json()["waiting"]


def test_secrets_are_not_among_the_settings() -> None:
    given = {
        "prometheus": {"url": "https://me:word@prometheus", "headers": {"X-Token": "word"}, "password_file": "/word"},
        "remote_write": {"url": "https://me:pass@word@mimir/push?key=word", "bearer_token_file": "/word"},
        "source": {"kind": "export", "options": {"api_key": "word", "files": ["s3://me:word@store/a", "b"]}},
        "serving": {"secure": {"kubeconfig": "/word", "certificate_file": "/tls.crt", "key_file": "/word"}},
        "state": {"database": "postgresql://me:word@db/x", "directory": "/state"},
        "cycle": {"interval": "PT1M"},
    }
    shown = shown_settings(given)
    assert "word" not in str(shown.values())
    assert shown == {
        "prometheus.url": "https://prometheus",
        "prometheus.headers.X-Token": "(not shown)",
        "prometheus.password_file": "(not shown)",
        "remote_write.url": "https://mimir/push",
        "remote_write.bearer_token_file": "(not shown)",
        "source.kind": "export",
        "source.options.api_key": "(not shown)",
        "source.options.files": '["s3://store/a", "b"]',
        "serving.secure.kubeconfig": "(not shown)",
        "serving.secure.certificate_file": "/tls.crt",
        "serving.secure.key_file": "(not shown)",
        "state.database": "(not shown)",
        "state.directory": "/state",
        "cycle.interval": "PT1M",
    }


def drawn(path: Path, minutes: range) -> None:
    """A new process publishes the pictures of these minutes; the count of each is its number."""
    file = PictureFile(path, interval=MINUTE, version="1", signals=BUILT_IN, window=window)
    publisher = RecordPublisher(Policies(Policy()), {"pictures": file})
    for minute in minutes:
        at = NOON + minute * MINUTE
        publisher.publish(at, [recommendation(at=at, replicas=minute + 1)])


def recommended_in(path: Path) -> list[float]:
    reader = TableReader(path, clock=lambda: NOON + timedelta(days=2))
    reader.refresh()
    assert reader.table is not None, reader.fault
    values = np.frombuffer(reader.table.text("decided", 0), np.float32).reshape(-1, PICTURE_POINTS)[0]
    assert np.isnan(values[:-4]).all()
    return values[-4:].tolist()


def test_half_a_day_of_decisions_moves_on_by_five_minutes_and_outlives_the_process(tmp_path: Path) -> None:
    drawn(tmp_path / "p", range(8))
    drawn(tmp_path / "p", range(8, 16))  # the new one decides at once
    assert recommended_in(tmp_path / "p") == [1.0, 9.0, 11.0, 16.0]


def test_what_was_decided_half_a_day_ago_is_gone(tmp_path: Path) -> None:
    drawn(tmp_path / "p", range(1))
    drawn(tmp_path / "p", range(12 * 60, 12 * 60 + 1))
    assert recommended_in(tmp_path / "p")[-1] == 721.0


def test_a_forecast_that_begins_far_ahead_after_the_clock_went_back_is_not_drawn(tmp_path: Path) -> None:
    path = StepForecast(NOON, NOON + 65 * MINUTE, 5 * MINUTE, (0.1, 0.9), ((1.0, 2.0),) * 12, "drift")
    given = {"interval": MINUTE, "version": "1", "signals": BUILT_IN, "window": window}
    file = PictureFile(tmp_path / "p", paths=lambda: {ROWS[0].id: {CPU: path}}, **given)  # type: ignore[arg-type]
    RecordPublisher(Policies(Policy()), {"pictures": file}).publish(NOON, ROWS)
    assert (tmp_path / "p").exists()


def test_a_damaged_file_is_no_past_and_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"no table")
    drawn(tmp_path / "p", range(1))
    assert recommended_in(tmp_path / "p")[-1] == 1.0


@pytest.mark.parametrize(
    "path", ["/", "/static/app.js", "/dashboard/fleet", "/dashboard/workloads/shop/Deployment/api"]
)
def test_where_there_is_a_secure_port_the_plain_one_shows_nothing(path: str) -> None:
    async def unused(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError("it was answered")

    front = FrontApplication(
        MetricsApi(lambda: None), unused, lambda _handler, _status: None, AccessControl(None, None, None)
    )
    assert Client(plain(front)).get(path).status_code == 403


def plain(front: FrontApplication) -> ASGIApp:
    """Requests as they come from the plain port."""

    async def answered(scope: Any, receive: Any, send: Any) -> None:
        await front({**scope, "state": {"secure": False}}, receive, send)

    return answered


def test_prices_of_the_table_are_those_of_the_fleet_and_none_are_made_up(tmp_path: Path) -> None:
    publish(tmp_path / "free", *ROWS)
    assert client_of(tmp_path / "free").get("/dashboard/fleet").json()["prices"] is None
    table = TableFile(
        tmp_path / "priced",
        interval=MINUTE,
        version="1",
        prices=Prices(core_hour=0.03, gib_hour=0.004, currency="EUR"),
    )
    RecordPublisher(Policies(Policy()), {"table": table}).publish(NOON, ROWS)
    fleet = client_of(tmp_path / "priced").get("/dashboard/fleet").json()
    assert fleet["prices"] == {"core_hour": 0.03, "gib_hour": 0.004, "currency": "EUR"}


def test_nodes_are_what_the_computing_process_wrote(tmp_path: Path) -> None:
    table = TableFile(tmp_path / "table", interval=MINUTE, version="1")
    table.nodes = lambda: b'{"refused":"no nodes are known"}'
    RecordPublisher(Policies(Policy()), {"table": table}).publish(NOON, ROWS)
    assert client_of(tmp_path / "table").get("/dashboard/nodes").json() == {"refused": "no nodes are known"}


def test_a_replica_that_copies_says_why_it_cannot_replay(tmp_path: Path) -> None:
    publish(tmp_path / "table", *ROWS)
    readers = TableReader(tmp_path / "table", lambda: NOON), TableReader(pictures_path(tmp_path / "table"))
    for reader in readers:
        reader.refresh()
    metrics = ServingMetrics(readers[0])
    metrics.parent.receive(FOLLOWS)
    app = create_app(readers[0], pictures=readers[1], metrics=metrics, what_if=WhatIfProcess("/no/socket"))
    page = Client(app)
    shown = page.get("/dashboard/workloads/shop/Deployment/api").json()
    assert (shown["what_if"], shown["what_if_refused"].startswith("this replica copies")) == (False, True)
    for path in ("what-if/shop/Deployment/api", "past/shop/Deployment/api?signal=cpu"):
        refused = page.get(f"/dashboard/{path}")
        assert refused.status_code == 503
        assert "holds the Lease" in refused.json()["remedy"]
    assert page.get("/dashboard/now").json()["follows"] is True
