from __future__ import annotations

import ssl
import threading
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import cramjam
import pytest
import trustme

from forecaster.errors import StoreError
from forecaster.publish.remote_write import RemoteWriter
from forecaster.publish.settings import RemoteWriteSettings
from tests.support.http_server import DRIPPING, HttpRequest, Reply, Running, Server, dripping
from tests.support.published import offered_cycle
from tests.support.recommendations import NOON, ahead, recommendation, signal_view, workload_id
from tests.unit.publish.test_remote_write_wire import WRITE_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.decision import Recommendation


TAKEN = Reply(204)


def writing(server: Running, **settings: object) -> RemoteWriter:
    url = server.url.replace("localhost", "127.0.0.1") + "/api/v1/write"
    return RemoteWriter(RemoteWriteSettings.model_validate({"url": url, **settings}))


def answering(reply: Reply) -> Callable[[HttpRequest], Reply]:
    return lambda _asked: reply


def test_a_table_is_sent_as_the_protocol_says(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with Server(answering(TAKEN)) as server:
        writer = writing(server, bearer_token_file=tmp_path / "token", headers={"X-Scope-OrgID": "shop"})
        writer.receive(offered_cycle(recommendation()))
        writer.close()
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/write")
    assert request.headers["Content-Encoding"] == "snappy"
    assert request.headers["Content-Type"] == "application/x-protobuf"
    assert request.headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["X-Scope-OrgID"] == "shop"
    assert b"forecaster_forecast_peak" in bytes(cramjam.snappy.decompress_raw(request.body))


def test_the_stated_authority_counts_where_the_environment_names_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trustme.CA().cert_pem.write_to_path(tmp_path / "others.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "others.pem"))
    with Server(answering(TAKEN), tls=tls) as server:
        writer = writing(server, ca_file=tmp_path / "ca.pem")
        writer.receive(offered_cycle(recommendation()))
        writer.close()
    assert len(server.requests) == 1


def test_a_table_is_sent_in_requests_of_a_stated_size() -> None:
    with Server(answering(TAKEN)) as server:
        writer = writing(
            server, series_per_request=11
        )  # of 3 workloads with 3 demands, forecasts and measurements, and 2 counts
        writer.receive(offered_cycle(*(recommendation(workload_id(name)) for name in ("a", "b", "c"))))
        writer.close()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(Reply(400, b"out of\nbounds"), "400 out of bounds", id="a refusal"),
        pytest.param(Reply(302, b"", {"Location": "http://elsewhere/"}), "302", id="a redirection is not followed"),
        pytest.param(Reply(500, b"x" * 10_000), "500 " + "x" * 200, id="a long text is cut"),
    ],
)
def test_what_was_not_taken_is_one_line_at_the_next_table(reply: Reply, why: str) -> None:
    with Server(answering(reply)) as server:
        writer = writing(server)
        writer.receive(offered_cycle(recommendation()))
        writer.settle(10)
        with pytest.raises(StoreError, match="remote write to ") as refused:
            writer.receive(offered_cycle())
        assert str(refused.value).endswith(why)
        writer.close()


@pytest.mark.parametrize("part", DRIPPING)
def test_an_answer_byte_by_byte_holds_no_later_table(part: str) -> None:
    with Running(dripping(*DRIPPING[part], pause=0.05), None) as server:
        writer = writing(server, timeout_seconds=0.5)
        writer.receive(offered_cycle(recommendation()))
        writer.settle(3)
        with pytest.raises(StoreError, match=r"remote write to .*(timed out|too long)"):
            writer.receive(offered_cycle())
        writer.close()


def test_of_a_refusal_without_an_end_no_more_is_read_than_is_shown() -> None:
    endless = ("HTTP/1.1 400 Bad\r\n\r\n" + "x" * (1 << 20), "x" * 200)
    with Running(dripping(*endless, pause=0.05), None) as server:
        writer = writing(server)
        writer.receive(offered_cycle(recommendation()))
        writer.settle(3)
        with pytest.raises(StoreError, match="400 xxx"):
            writer.receive(offered_cycle())
        writer.close()


def in_order() -> Callable[[HttpRequest], Reply]:
    """Answer as Prometheus does: one sample that is older than the last of its series, and nothing of all is taken."""
    latest: dict[tuple[str, ...], int] = defaultdict(int)

    def answer(received: HttpRequest) -> Reply:
        request = WRITE_REQUEST.FromString(bytes(cramjam.snappy.decompress_raw(received.body)))
        newest = {
            tuple(label.value for label in series.labels): series.samples[0].timestamp for series in request.timeseries
        }
        if any(at < latest[series] for series, at in newest.items()):
            return Reply(400, b"out of order sample")
        latest.update(newest)
        return TAKEN

    return answer


def foreseen(name: str, at: datetime, minutes: int) -> Recommendation:
    """A workload at `at` whose forecast speaks of so many minutes later."""
    forecast = replace(ahead(at), begin=at + timedelta(minutes=minutes))
    view = replace(signal_view("cpu", at), forecast=forecast)
    return replace(recommendation(workload_id(name), at=at), signals=(view,))


def test_a_lead_time_that_becomes_shorter_costs_no_other_workload_its_samples() -> None:
    with Server(in_order()) as server:
        writer = writing(server)
        for minute, lead in enumerate((8, 2, 2, 2, 2, 2, 2, 2, 2)):
            at = NOON + timedelta(minutes=minute)
            writer.receive(offered_cycle(foreseen("a", at, lead), foreseen("b", at, 3), at=at))
            writer.settle(10)
        writer.receive(offered_cycle())
        writer.close()
    series = [
        bytes(cramjam.snappy.decompress_raw(request.body)).count(b"forecaster_forecast_peak")
        for request in server.requests
    ]
    assert series == [2, *[1] * 6, 2, 2]


def test_nobody_there_is_one_line_too() -> None:
    writer = RemoteWriter(RemoteWriteSettings(url="http://127.0.0.1:9/api/v1/write"))
    writer.receive(offered_cycle(recommendation()))
    writer.settle(10)
    with pytest.raises(StoreError, match="Connection refused"):
        writer.receive(offered_cycle())
    writer.close()


def test_a_receiver_that_is_busy_is_not_waited_for() -> None:
    go_on = threading.Event()

    def slowly(_asked: HttpRequest) -> Reply:
        go_on.wait(10)
        return TAKEN

    with Server(slowly) as server:
        writer = writing(server)
        writer.receive(offered_cycle(recommendation()))
        with pytest.raises(StoreError, match="left out, the receiver is still busy"):
            writer.receive(offered_cycle(recommendation()))
        go_on.set()
        writer.close()


@pytest.mark.parametrize(
    ("url", "token"),
    [
        pytest.param("http://me:word@127.0.0.1:9/push?key=word", "x", id="nobody there"),
        pytest.param("http://me:word@127.0.0.1:9/push?key=word", "word\nword", id="a token of two lines"),
        pytest.param("http://me:word@127.0.0.1:9/push?key=word", "wörd", id="a token that is none"),
    ],
)
def test_a_fault_has_no_secrets(tmp_path: Path, url: str, token: str) -> None:
    (tmp_path / "token").write_text(token, encoding="utf-8")
    writer = RemoteWriter(RemoteWriteSettings(url=url, bearer_token_file=tmp_path / "token"))
    writer.receive(offered_cycle(recommendation()))
    writer.settle(10)
    with pytest.raises(StoreError, match=r"remote write to http://127\.0\.0\.1:9/push: ") as refused:
        writer.receive(offered_cycle())
    assert "word" not in str(refused.value)
    writer.close()


def test_secrets_are_not_shown() -> None:
    settings = RemoteWriteSettings.model_validate({"headers": {"X-Key": "secret"}})
    assert "secret" not in repr(settings)
