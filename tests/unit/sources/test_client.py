"""Every way in which a server can fail to answer ends in an error that names it."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import trustme
from urllib3.exceptions import SSLError

from forecaster.errors import SourceRefused, SourceTimeout, SourceUnavailable, shown_url
from forecaster.sources.client import PrometheusClient
from forecaster.sources.settings import PrometheusSettings
from forecaster.sources.wire import Denied, TooMuch, at_instant
from tests.support.http_server import DRIPPING, Reply, Running, Server, dripping, page, vector, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from forecaster.sources.wire import QueryAnswer
    from tests.support.http_server import HttpRequest

AT = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)


def ask(url: str, **settings: Any) -> QueryAnswer:
    patience = {"retries": 0, "retry_backoff_seconds": 0.0} | settings
    with closing(PrometheusClient(PrometheusSettings(url=url, **patience))) as client:
        return client.ask(at_instant("cpu", "up", AT))


def replying(*replies: Reply) -> Callable[[HttpRequest], Reply]:
    """Return a responder that gives these replies in order, and repeats the last one."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_a_query_travels_as_a_form_and_asks_for_no_compression() -> None:
    with Server(replying(vector())) as server:
        ask(server.url, read_timeout_seconds=30)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/query")
    assert request.form == {"query": "up", "time": f"{AT.timestamp():.3f}", "nocache": "1", "timeout": "29.000"}
    assert request.headers["Accept-Encoding"] == "identity"


def test_an_answer_that_a_proxy_compressed_all_the_same_is_read() -> None:
    compressed = gzip.compress(vector(({"a": "b"}, "1")).body)
    with Server(replying(Reply(200, compressed, {"Content-Encoding": "gzip"}))) as server:
        assert ask(server.url).series[0].metric == {"a": "b"}


@pytest.mark.parametrize("status", [403, 405, 501])
def test_where_no_post_is_taken_questions_are_asked_in_the_address(status: int) -> None:
    """Proxies that only let readers through allow GET alone; those that ask for rights take POST for `create`."""

    def reading_only(request: HttpRequest) -> Reply:
        return vector(({"a": "b"}, "1")) if request.method == "GET" else Reply(status, b"no")

    with Server(reading_only) as server, closing(PrometheusClient(PrometheusSettings(url=server.url))) as client:
        answers = [client.ask(at_instant("cpu", "up", AT)) for _ in range(2)]
    assert [answer.series[0].metric for answer in answers] == [{"a": "b"}] * 2
    assert [request.method for request in server.requests] == ["POST", "GET", "GET"]
    assert "query=up" in server.requests[-1].path


def test_where_neither_is_allowed_post_is_tried_again() -> None:
    """A long question does not fit into an address, and the right may come back."""
    with (
        Server(lambda _: page(403, "no")) as server,
        closing(PrometheusClient(PrometheusSettings(url=server.url))) as client,
    ):
        for _ in range(2):
            with pytest.raises(Denied):
                client.ask(at_instant("cpu", "up", AT))
    assert [request.method for request in server.requests] == ["POST", "GET"] * 2


def test_a_path_prefix_is_kept() -> None:
    with Server(replying(vector())) as server:
        ask(f"{server.url}/prometheus/")
    assert server.requests[0].path == "/prometheus/api/v1/query"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_stands_between_us_and_our_own_host(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Server(replying(vector())) as server:
        ask(server.url.replace("127.0.0.1", host))
    assert server.requests[0].path == "/api/v1/query"


def test_a_proxy_that_is_down_is_named_and_not_the_server_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://me:secret@127.0.0.1:9")
    with pytest.raises(SourceUnavailable, match=r"proxy of HTTPS_PROXY.*NO_PROXY.*refused") as caught:
        ask("http://prometheus.example:9090")
    assert "secret" not in str(caught.value)


def test_warnings_and_infos_of_the_server_are_kept() -> None:
    with Server(replying(vector(warnings=["a store is down"], infos=["a hint"]))) as server:
        assert ask(server.url).remarks == ("a store is down", "a hint")


@pytest.mark.parametrize(
    ("envelope", "remark"),
    [
        ({"isPartial": True}, "calls its answer partial"),
        (
            {"warnings": ["No StoreAPIs matched for this query", "receive series from Addr: 10.0.0.7:10901: EOF"]},
            "No StoreAPIs matched",
        ),
        ({"warnings": ["PromQL warning: bucket label missing"], "infos": ["PromQL info: not a counter"]}, ""),
        ({"isPartial": False, "stats": {"seriesFetched": "33"}}, ""),
    ],
    ids=["victoria-metrics", "thanos", "prometheus", "whole"],
)
def test_a_server_without_all_of_its_stores_says_so(envelope: dict[str, Any], remark: str) -> None:
    with Server(replying(vector(({"a": "b"}, "1"), **envelope))) as server:
        partial = ask(server.url).partial
    assert remark in partial
    assert bool(partial) == bool(remark)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (page(200, "<html><title>Login</title></html>"), "not an answer of the Prometheus API .*Login"),
        (Reply(body=vector(({"a": "b"}, "1")).body[:-20]), "not an answer"),
        (Reply(body=b""), "an empty body"),
        (Reply(body=b"\xff\xfe\x00"), "not an answer"),
        (Reply(body=b'{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}'), "not an answer"),
        (page(404, "<h1>404</h1>"), "status 404.*404"),
        (verdict(400, "bad_data", "parse error"), "status 400, bad_data: parse error"),
        (verdict(422, "execution", "many-to-many matching"), "status 422, execution: many-to-many"),
        (page(302, ""), "status 302"),
    ],
    ids=["html", "half", "empty", "binary", "scalar", "404", "400", "422", "302-without-target"],
)
def test_what_is_no_answer_is_refused_with_what_came_instead(reply: Reply, message: str) -> None:
    with Server(replying(reply)) as server, pytest.raises(SourceRefused, match=message) as caught:
        ask(server.url)
    assert "query 'cpu'" in str(caught.value)
    assert server.url in str(caught.value)


def test_an_answer_that_breaks_off_is_unavailable() -> None:
    whole = vector(({"a": "b"}, "1"))
    broken = Reply(body=whole.body, headers={"Content-Length": str(len(whole.body) + 100)})
    with Server(replying(broken)) as server, pytest.raises(SourceUnavailable, match="IncompleteRead"):
        ask(server.url)


def test_a_redirect_is_not_followed_but_named_without_its_query() -> None:
    elsewhere = Reply(302, headers={"Location": "https://user:pw@login.example/start?token=secret"})
    with Server(replying(elsewhere)) as server, pytest.raises(SourceRefused) as caught:
        ask(server.url)
    assert "https://login.example/start;" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_a_missing_tenant_is_an_error_that_names_its_setting() -> None:
    with Server(replying(page(401, "no org id"))) as server, pytest.raises(Denied) as caught:
        ask(server.url)
    assert "'no org id'; state the tenant in prometheus.headers, e.g. {X-Scope-OrgID: NAME}" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind", "limit"),
    [
        (
            422,
            "execution",
            "the query exceeded the maximum number of chunks (limit: 5 chunks) (err-mimir-max-chunks-per-query)",
        ),
        (422, "execution", "size limit (limit: 9 bytes) (err-mimir-max-chunks-bytes-per-query)"),
        (422, "execution", "(limit: 9 bytes) (err-mimir-max-estimated-memory-consumption-per-query)"),
        (422, "execution", "(query length: 720h, limit: 1h) (err-mimir-max-query-length)"),
        (400, "bad_data", "(query length: 720h, limit: 1h) (err-mimir-max-total-query-length)"),
    ],
)
def test_a_limit_of_mimir_that_a_shorter_span_keeps_asks_for_a_shorter_one(status: int, kind: str, limit: str) -> None:
    with Server(replying(verdict(status, kind, limit))) as server, pytest.raises(TooMuch, match="err-mimir"):
        ask(server.url)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_identity_is_an_error_of_its_own(status: int) -> None:
    with Server(replying(page(status, "who are you?"))) as server, pytest.raises(Denied, match="who are you"):
        ask(server.url)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_cannot_now_is_unavailable(status: int) -> None:
    with Server(replying(page(status, "busy"))) as server, pytest.raises(SourceUnavailable, match=f"status {status}"):
        ask(server.url)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_may_pass_is_asked_again(status: int) -> None:
    with Server(replying(page(status, "busy"), page(status, "busy"), vector(({"a": "b"}, "1")))) as server:
        assert len(ask(server.url, retries=2).series) == 1
    assert [request.form["query"] for request in server.requests] == ["up"] * 3


def test_patience_ends() -> None:
    with Server(replying(page(503, "busy"))) as server, pytest.raises(SourceUnavailable, match="status 503"):
        ask(server.url, retries=2)
    assert len(server.requests) == 3


def test_the_verdict_of_prometheus_is_not_asked_for_twice() -> None:
    expensive = verdict(503, "timeout", "query timed out in expression evaluation")
    with Server(replying(expensive)) as server, pytest.raises(TooMuch, match="timed out"):
        ask(server.url, retries=2)
    assert len(server.requests) == 1


class TestAServerThatSaysWhenToAskAgain:
    """Mimir's limits answer in JSON, gateways in HTML; both say when in `Retry-After`."""

    @pytest.mark.parametrize("status", [429, 503])
    def test_is_asked_again_then_and_not_before(self, status: int) -> None:
        began = time.monotonic()
        with Server(replying(self.in_json(status, "1"), vector(({"a": "b"}, "1")))) as server:
            assert len(ask(server.url, retries=2).series) == 1
        assert len(server.requests) == 2
        assert time.monotonic() - began >= 1.0

    @pytest.mark.parametrize("later", ["6", "86400", "Fri, 01 Jan 2100 00:00:00 GMT"])
    def test_is_left_to_the_next_cycle_where_that_is_late(self, later: str) -> None:
        with Server(replying(self.in_json(429, later))) as server, pytest.raises(SourceUnavailable, match="too_many"):
            ask(server.url, retries=2)
        assert len(server.requests) == 1

    @pytest.mark.parametrize("when", ["soon", "Fri, 99 Dec 99999 23:59:59 GMT", "9" * 5000])
    def test_is_asked_by_our_own_pauses_where_the_time_is_none(self, when: str) -> None:
        unclear = Reply(503, b"busy", {"Content-Type": "text/html", "Retry-After": when})
        with Server(replying(unclear, vector())) as server:
            assert not ask(server.url, retries=1).series

    @staticmethod
    def in_json(status: int, after: str) -> Reply:
        answer = verdict(status, "too_many_requests", "too many outstanding requests")
        return Reply(status, answer.body, {"Content-Type": "application/json", "Retry-After": after})


def test_too_many_samples_ask_for_a_smaller_question() -> None:
    loaded = verdict(422, "execution", "query processing would load too many samples into memory in query execution")
    with Server(replying(loaded)) as server, pytest.raises(TooMuch):
        ask(server.url)


def test_a_long_message_is_cut() -> None:
    with Server(replying(verdict(400, "bad_data", "x" * 10_000))) as server, pytest.raises(SourceRefused) as caught:
        ask(server.url)
    assert len(str(caught.value)) < 400


def test_nobody_at_the_address() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(SourceUnavailable, match="refused"):
            ask(f"http://127.0.0.1:{held.getsockname()[1]}", retries=1)


def test_an_unknown_name_is_unavailable() -> None:
    with pytest.raises(SourceUnavailable, match="query 'cpu'"):
        ask("http://nowhere.invalid")


def test_a_silent_server_is_asked_once() -> None:
    answer = threading.Event()

    def wait(_: HttpRequest) -> Reply:
        answer.wait(5)
        return vector()

    with Server(wait) as server:
        with pytest.raises(SourceUnavailable, match="no answer in time"):
            ask(server.url, read_timeout_seconds=0.1, retries=2)
        answer.set()
    assert len(server.requests) == 1


def test_after_a_question_without_an_answer_the_next_ones_have_a_third_of_the_time_until_one_comes() -> None:
    """Three questions to a server that stands still took 90 s of each minute; every second cycle was left out."""
    answer = threading.Event()

    def wait(_: HttpRequest) -> Reply:
        answer.wait(5)
        return vector()

    with Server(wait) as server:
        settings = PrometheusSettings(url=server.url, read_timeout_seconds=0.6)
        with closing(PrometheusClient(settings)) as client:
            for _ in range(3):
                with pytest.raises(SourceTimeout):
                    client.ask(at_instant("query", "up", AT))
            answer.set()
            for _ in range(2):
                client.ask(at_instant("query", "up", AT))
    assert [request.form["timeout"] for request in server.requests] == ["0.300", "0.100", "0.100", "0.100", "0.300"]


@pytest.mark.parametrize("part", DRIPPING)
def test_the_whole_answer_has_one_deadline(part: str) -> None:
    with Running(dripping(*DRIPPING[part], pause=0.05), None) as server:
        began = time.monotonic()
        with pytest.raises(SourceTimeout, match="no answer in time"):
            ask(server.url, read_timeout_seconds=0.5)
        assert time.monotonic() - began < 2.0


def test_a_page_of_the_status_has_a_deadline_and_a_largest_size_too() -> None:
    """Without them a start would read it without end."""
    with Running(dripping(*DRIPPING["body"], pause=0.05), None) as server:
        settings = PrometheusSettings(url=server.url, read_timeout_seconds=0.5)
        with closing(PrometheusClient(settings)) as client, pytest.raises(SourceTimeout):
            client.status("config")
    with Server(replying(Reply(body=b" " * (2 << 20)))) as large:
        settings = PrometheusSettings(url=large.url, most_answer_mib=1)
        with closing(PrometheusClient(settings)) as client, pytest.raises(TooMuch):
            client.status("config")


def test_a_server_that_takes_no_connection_costs_one_time_out() -> None:
    """The system sends three packets within it; as many attempts cost a cycle a quarter of its minute."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as queue:
        address = full.getsockname()
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(address)
        began = time.monotonic()
        with pytest.raises(SourceUnavailable, match="no connection in time"):
            ask(f"http://127.0.0.1:{address[1]}", connect_timeout_seconds=0.5, retries=2)
        assert time.monotonic() - began < 1.0


def test_an_answer_beyond_bounds_is_not_read() -> None:
    large = vector(*(({"a": "b" * 1000}, "1") for _ in range(1200)))
    with Server(replying(large)) as server, pytest.raises(TooMuch, match="larger than 1 MiB; ask for less"):
        ask(server.url, most_answer_mib=1)


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n", encoding="utf-8")
    with Server(replying(vector())) as server:
        settings = PrometheusSettings(url=server.url, bearer_token_file=token)
        with closing(PrometheusClient(settings)) as client:
            client.ask(at_instant("query", "up", AT))
            token.write_text("the second\n", encoding="utf-8")
            client.ask(at_instant("query", "up", AT))
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer first", "Bearer the second"]


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with Server(replying(vector())) as server, pytest.raises(SourceRefused, match=r"absent: No such file"):
        ask(server.url, bearer_token_file=tmp_path / "absent")
    assert server.requests == []


def test_basic_authentication_takes_its_password_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame", encoding="utf-8")
    with Server(replying(vector())) as server:
        ask(server.url, username="ali", password_file=tmp_path / "password")
    assert server.requests[0].headers["Authorization"] == "Basic YWxpOm9wZW4gc2VzYW1l"


def test_credentials_that_no_setting_states_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's .netrc is for other programs."""
    (tmp_path / "netrc").write_text("machine localhost login me password mine", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Server(replying(vector())) as server:
        ask(server.url)
    assert "Authorization" not in server.requests[0].headers


def test_headers_are_sent_with_every_query() -> None:
    with Server(replying(vector())) as server:
        ask(server.url, headers={"X-Scope-OrgID": "team-a"})
    assert server.requests[0].headers["X-Scope-OrgID"] == "team-a"


@pytest.mark.parametrize("secret", ["line\nbreak", "snow☃man"])
def test_a_secret_that_http_does_not_allow_is_not_shown(tmp_path: Path, secret: str) -> None:
    (tmp_path / "token").write_text(secret, encoding="utf-8")
    with Server(replying(vector())) as server, pytest.raises(SourceRefused, match="signs") as caught:
        ask(server.url, bearer_token_file=tmp_path / "token")
    assert caught.value.__cause__ is None
    assert secret not in str(caught.value)


class TestTls:
    @pytest.fixture
    def authority(self) -> trustme.CA:
        return trustme.CA()

    @pytest.fixture
    def server(self, authority: trustme.CA) -> Iterator[Server]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        with Server(replying(vector()), tls=context) as running:
            yield running

    def test_an_unknown_authority_is_refused(self, server: Server) -> None:
        with pytest.raises(SourceRefused, match="CERTIFICATE_VERIFY_FAILED"):
            ask(server.url)

    def test_a_private_authority_is_accepted_from_its_file(
        self, server: Server, authority: trustme.CA, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        assert ask(server.url, ca_file=tmp_path / "ca.pem").series == []

    @pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
    def test_verification_can_be_switched_off(self, server: Server) -> None:
        assert ask(server.url, insecure_skip_verify=True).series == []

    def test_a_damaged_record_in_an_answer_is_unavailable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def damaged(*_: object, **__: object) -> bytes:
            raise SSLError("[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC]")

        monkeypatch.setattr("urllib3.response.HTTPResponse.read1", damaged)
        with Server(replying(vector())) as server, pytest.raises(SourceUnavailable, match="BAD_RECORD_MAC"):
            ask(server.url)

    def test_a_client_certificate_is_shown(self, authority: trustme.CA, tmp_path: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        me = authority.issue_cert("me@example.com")
        me.private_key_pem.write_to_path(tmp_path / "key.pem")
        me.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        with Server(replying(vector()), tls=context) as server:
            answer = ask(
                server.url,
                ca_file=tmp_path / "ca.pem",
                client_certificate_file=tmp_path / "cert.pem",
                client_key_file=tmp_path / "key.pem",
            )
        assert answer.series == []


def test_addresses_in_messages_carry_no_credentials() -> None:
    assert shown_url("https://user:pw@host:9090/path?token=x#y") == "https://host:9090/path"
