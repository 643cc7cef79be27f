from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import cramjam
import pytest

from forecaster.errors import StoreError
from forecaster.publish.remote_write import RemoteWriter
from forecaster.publish.settings import RemoteWriteSettings
from tests.support.http_server import Asked, Reply, Server
from tests.support.published import offered_cycle
from tests.support.recommendations import recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


TAKEN = Reply(204)


def writing(server: Server, **settings: object) -> RemoteWriter:
    url = server.url.replace("localhost", "127.0.0.1") + "/api/v1/write"
    return RemoteWriter(RemoteWriteSettings.model_validate({"url": url, **settings}))


def answering(reply: Reply) -> Callable[[Asked], Reply]:
    return lambda _asked: reply


def test_a_table_is_sent_as_the_protocol_says(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with Server(answering(TAKEN)) as server:
        writer = writing(server, bearer_token_file=tmp_path / "token", headers={"X-Scope-OrgID": "shop"})
        writer.receive(offered_cycle(recommendation()))
        writer.close()
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/write")
    assert asked.headers["Content-Encoding"] == "snappy"
    assert asked.headers["Content-Type"] == "application/x-protobuf"
    assert asked.headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
    assert asked.headers["Authorization"] == "Bearer secret"
    assert asked.headers["X-Scope-OrgID"] == "shop"
    assert b"forecaster_forecast_peak" in bytes(cramjam.snappy.decompress_raw(asked.body))


def test_a_table_is_sent_in_requests_of_a_stated_size() -> None:
    with Server(answering(TAKEN)) as server:
        writer = writing(
            server, series_per_request=11
        )  # of 3 workloads with 3 demands, forecasts and measurements, and 2 counts
        writer.receive(offered_cycle(*(recommendation(workload_id(name)) for name in ("a", "b", "c"))))
        writer.close()
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(Reply(400, b"out of\nbounds"), "400 out of bounds", id="a refusal"),
        pytest.param(Reply(302, b"", {"Location": "http://elsewhere/"}), "302", id="a redirection is not followed"),
        pytest.param(Reply(500, b"x" * 10_000), "500 " + "x" * 200, id="a long text is cut"),
    ],
)
def test_what_was_not_taken_is_one_line_at_the_next_table(reply: Reply, said: str) -> None:
    with Server(answering(reply)) as server:
        writer = writing(server)
        writer.receive(offered_cycle(recommendation()))
        writer.settle(10)
        with pytest.raises(StoreError, match="remote write to ") as refused:
            writer.receive(offered_cycle())
        assert str(refused.value).endswith(said)
        writer.close()


def test_nobody_there_is_one_line_too() -> None:
    writer = RemoteWriter(RemoteWriteSettings(url="http://127.0.0.1:9/api/v1/write"))
    writer.receive(offered_cycle(recommendation()))
    writer.settle(10)
    with pytest.raises(StoreError, match="Connection refused"):
        writer.receive(offered_cycle())
    writer.close()


def test_a_receiver_that_is_busy_is_not_waited_for() -> None:
    go_on = threading.Event()

    def slowly(_asked: Asked) -> Reply:
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
    with pytest.raises(StoreError, match=r"remote write to http://127\.0\.0\.1:9/push: ") as told:
        writer.receive(offered_cycle())
    assert "word" not in str(told.value)
    writer.close()


def test_secrets_are_not_shown() -> None:
    settings = RemoteWriteSettings.model_validate({"headers": {"X-Key": "secret"}})
    assert "secret" not in repr(settings)
