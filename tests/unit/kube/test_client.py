"""The client over real sockets: what it decodes, what it says of refusals, and what it does when things are rotated."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from forecaster.kube.client import (
    EXPIRY_SECONDS,
    RELOAD_SECONDS,
    RENEW_SECONDS,
    ApiClient,
    ApiError,
    AsyncApiClient,
    UnreachableError,
)
from forecaster.kube.config import ClientConfig, ClientConfigError
from forecaster.kube.connections import RESPONSE_MAX, RawAnswer, RawRequest
from forecaster.kube.objects import ConfigMap
from forecaster.kube.rights import NonResourceAttributes, ResourceAttributes, User, is_allowed, token_user
from tests.support.control_plane.authority import Authority
from tests.support.http_server import DRIPPING, HttpRequest, Reply, Running, Server, dripping
from tests.support.review_server import ReviewServer
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

METRICS = ResourceAttributes("list", "external.metrics.k8s.io", "v1beta1", "m", "shop")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class CountedServer(Server):
    """`made` has the connections that it took."""

    def __init__(self, respond: Callable[[HttpRequest], Reply], tls: ssl.SSLContext) -> None:
        super().__init__(respond, tls=tls)
        self.made: list[socket.socket] = []
        accept: Callable[[], Any] = self._server.socket.accept

        def accepted() -> Any:
            pair = accept()
            self.made.append(pair[0])
            return pair

        self._server.socket.accept = accepted  # type: ignore[method-assign]


@dataclass
class Cluster:
    """An API server that accepts one token, its authority, and the configuration that clients read."""

    folder: Path
    token: str = "first"
    requests: list[HttpRequest] = field(default_factory=list)
    readings: int = 0
    fault: str = ""
    expires: float | None = None
    body: bytes = b'{"data":{"a":"b"}}'
    held: threading.Event = field(default_factory=threading.Event)
    """While it is cleared, requests are taken and not answered."""

    def __post_init__(self) -> None:
        self.authority = Authority(self.folder, "ca")
        self.server = CountedServer(self.respond, self.tls())
        self.config_token = self.token
        self.held.set()

    def tls(self) -> ssl.SSLContext:
        identity = self.authority.issue("server", "localhost", "127.0.0.1")
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(identity.certificate, identity.key)
        return self.context

    def respond(self, request: HttpRequest) -> Reply:
        self.requests.append(request)
        self.held.wait(PATIENCE)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return Reply(401, b'{"kind":"Status","message":"Unauthorized"}')
        return Reply(body=self.body)

    def source(self) -> ClientConfig:
        self.readings += 1
        if self.fault:
            raise ClientConfigError(self.fault)
        return ClientConfig(
            self.server.url,
            ca_file=str(self.authority.certificate),
            authorization=f"Bearer {self.config_token}",
            expires=self.expires,
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    built = Cluster(tmp_path)
    with built.server:
        yield built


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(cluster: Cluster, clock: Clock) -> Iterator[ApiClient]:
    built = ApiClient(cluster.source, timeout=5, clock=clock).configured()
    yield built
    built.close()


@pytest.fixture
def reviews(tmp_path: Path) -> Iterator[ReviewServer]:
    with ReviewServer(tmp_path / "cluster") as running:
        yield running


@pytest.fixture
def reviewer(reviews: ReviewServer) -> Iterator[AsyncApiClient]:
    built = AsyncApiClient(ApiClient(reviews.config, timeout=5))
    yield built
    built.close()


class TestStream:
    """Streams, on which watches rest."""

    REQUEST = RawRequest("GET", "/apis/apps/v1/deployments?watch=1")

    def test_gives_the_pieces_of_a_body_and_its_place_back(self, cluster: Cluster, clock: Clock) -> None:
        """With one connection: a stream whose place was lost would make the next request wait for ever."""
        client = ApiClient(cluster.source, connections=1, timeout=5, clock=clock)
        for _ in range(3):
            with client.stream(self.REQUEST, 5) as answer:
                assert not isinstance(answer, RawAnswer)
                next(answer)
        assert client.exchange(self.REQUEST).status == 200
        client.close()

    def test_that_is_refused_for_its_token_is_asked_with_another_one(
        self, cluster: Cluster, client: ApiClient, clock: Clock
    ) -> None:
        cluster.token = cluster.config_token = "second"
        clock.now += RELOAD_SECONDS
        with client.stream(self.REQUEST, 5) as answer:
            assert isinstance(answer, RawAnswer)
            assert answer.status == 401
        with client.stream(self.REQUEST, 5) as answer:
            assert not isinstance(answer, RawAnswer)

    def test_ends_with_the_client(self, cluster: Cluster, client: ApiClient) -> None:
        cluster.held.clear()
        ending = threading.Timer(0.2, client.close)
        ending.start()
        with pytest.raises(UnreachableError), client.stream(self.REQUEST, PATIENCE):
            pass
        cluster.held.set()

    def test_on_which_nothing_comes_is_an_error(self, cluster: Cluster, client: ApiClient) -> None:
        cluster.held.clear()
        with pytest.raises(UnreachableError, match=r"[Tt]imed? ?out"), client.stream(self.REQUEST, 0.2):
            pass
        cluster.held.set()


def test_a_token_has_a_user(reviewer: AsyncApiClient) -> None:
    assert asyncio.run(token_user(reviewer, "good")) == User(
        "system:serviceaccount:shop:reader", "", ("system:serviceaccounts", "system:authenticated")
    )


def test_a_token_that_is_not_valid_has_none(reviewer: AsyncApiClient) -> None:
    assert asyncio.run(token_user(reviewer, "bad")) is None


@pytest.mark.parametrize(("name", "expected"), [("system:serviceaccount:shop:reader", True), ("eve", False)])
def test_a_user_has_a_right_or_not(reviewer: AsyncApiClient, name: str, expected: bool) -> None:  # noqa: FBT001
    assert asyncio.run(is_allowed(reviewer, User(name, groups=("a",)), METRICS)) is expected


def test_a_review_is_sent_in_the_words_of_the_api(reviews: ReviewServer, reviewer: AsyncApiClient) -> None:
    user = User("eve", "7", ("a", "b"), (("scopes", ("x",)),))
    asyncio.run(is_allowed(reviewer, user, NonResourceAttributes("get", "/metrics")))
    assert reviews.reviewed == [
        {
            "user": "eve",
            "uid": "7",
            "groups": ["a", "b"],
            "extra": {"scopes": ["x"]},
            "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
        }
    ]


def test_a_server_that_is_down_is_an_error_and_no_permission(reviews: ReviewServer, reviewer: AsyncApiClient) -> None:
    reviews.down = True
    with pytest.raises(ApiError, match="tokenreviews: 500"):
        asyncio.run(token_user(reviewer, "good"))


def test_an_object_is_decoded_to_its_type(client: ApiClient) -> None:
    assert client.get("/x", ConfigMap).data == {"a": "b"}


def test_a_change_is_a_merge_patch(client: ApiClient, cluster: Cluster) -> None:
    client.patch("/x", ConfigMap(data={"a": "c"}), ConfigMap)
    (request,) = cluster.requests
    assert (request.method, request.headers["Content-Type"]) == ("PATCH", "application/merge-patch+json")
    assert json.loads(request.body) == {"data": {"a": "c"}}


def test_a_refusal_carries_its_status_and_what_the_server_says(cluster: Cluster, client: ApiClient) -> None:
    cluster.token = "other"
    with pytest.raises(ApiError, match="GET /nowhere: 401 Unauthorized") as caught:
        client.get("/nowhere", msgspec.Raw)
    assert caught.value.status == 401


def test_an_answer_of_another_type_is_an_error(client: ApiClient) -> None:
    with pytest.raises(ApiError, match="GET /x: the answer is not understood"):
        client.get("/x", list[int])


def test_an_answer_that_is_too_large_is_not_cut(cluster: Cluster, client: ApiClient) -> None:
    cluster.body = b" " * (RESPONSE_MAX + 1)
    with pytest.raises(UnreachableError, match="more than 8 MiB"):
        client.exchange(RawRequest("GET", "/x"))


def test_a_target_is_sent_as_it_is(cluster: Cluster, client: ApiClient) -> None:
    """The authorised target is requested unchanged: no dot segment or escape is resolved on the way."""
    target = "/apis/a/namespaces/../b/%2E%2E/c?x=%2Fy"
    client.exchange(RawRequest("GET", target))
    assert cluster.requests[-1].path == target


def test_a_server_behind_a_prefix_is_reached_there(cluster: Cluster) -> None:
    config = msgspec.structs.replace(cluster.source(), server=f"{cluster.server.url}/k8s/clusters/one/")
    client = ApiClient(lambda: config)
    client.get("/api", ConfigMap)
    assert cluster.requests[-1].path == "/k8s/clusters/one/api"
    client.close()


def test_connections_are_kept(cluster: Cluster, client: ApiClient) -> None:
    for _ in range(20):
        client.get("/x", ConfigMap)
    assert len(cluster.server.made) == 1


def test_no_more_connections_than_allowed(cluster: Cluster) -> None:
    client = AsyncApiClient(ApiClient(cluster.source, connections=2), threads=8)

    async def ask() -> None:
        await asyncio.gather(*(client.get("/x", ConfigMap) for _ in range(40)))

    asyncio.run(ask())
    client.close()
    assert len(cluster.server.made) <= 2


def test_a_kept_connection_that_has_gone_is_replaced(cluster: Cluster, client: ApiClient) -> None:
    client.get("/x", ConfigMap)
    cluster.server.made[0].shutdown(socket.SHUT_RDWR)
    assert client.get("/x", ConfigMap).data == {"a": "b"}


def test_a_refused_token_is_read_anew_and_the_request_repeated(
    cluster: Cluster, client: ApiClient, clock: Clock
) -> None:
    cluster.token = cluster.config_token = "second"
    clock.now += RELOAD_SECONDS
    assert client.get("/x", ConfigMap).data == {"a": "b"}
    assert cluster.readings == 2


def test_credentials_that_stay_refused_are_not_read_at_each_request(
    cluster: Cluster, client: ApiClient, clock: Clock
) -> None:
    cluster.token = "other"
    clock.now += RELOAD_SECONDS
    for _ in range(5):
        with pytest.raises(ApiError, match="401"):
            client.get("/x", ConfigMap)
    assert cluster.readings == 2


def test_a_clock_that_goes_back_keeps_no_refused_credentials(cluster: Cluster, client: ApiClient, clock: Clock) -> None:
    cluster.token = cluster.config_token = "second"
    clock.now -= 600
    assert client.get("/x", ConfigMap).data == {"a": "b"}
    assert cluster.readings == 2


def test_why_credentials_are_not_renewed_is_said_with_the_refusal(
    cluster: Cluster, client: ApiClient, clock: Clock
) -> None:
    cluster.token, cluster.fault = "other", "kubeconfig x: its plug-in is not installed"
    clock.now += RELOAD_SECONDS
    with pytest.raises(ApiError, match="401 Unauthorized; credentials are not renewed: kubeconfig x: its plug-in"):
        client.get("/x", ConfigMap)


def test_credentials_are_renewed_before_they_expire(cluster: Cluster, clock: Clock) -> None:
    cluster.expires = clock.now + EXPIRY_SECONDS + 60
    client = ApiClient(cluster.source, clock=clock)
    client.get("/x", ConfigMap)
    assert cluster.readings == 1
    cluster.token = cluster.config_token = "second"
    clock.now += 61
    client.get("/x", ConfigMap)
    assert [request.headers["Authorization"] for request in cluster.requests] == ["Bearer first", "Bearer second"]
    client.close()


def test_a_token_file_is_read_at_each_request(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "token"
    config = msgspec.structs.replace(cluster.source(), token_file=str(file))
    file.write_text("first\n")
    client = ApiClient(lambda: config)
    client.get("/x", ConfigMap)
    cluster.token = "second"
    file.write_text("second")
    client.get("/x", ConfigMap)
    file.write_text("two\nlines")
    with pytest.raises(UnreachableError, match="not one line of ASCII") as caught:
        client.get("/x", ConfigMap)
    assert "two" not in str(caught.value)
    client.close()


def test_another_authority_is_taken_up_with_the_next_connection(
    cluster: Cluster, client: ApiClient, clock: Clock
) -> None:
    client.get("/x", ConfigMap)
    rotate(cluster)
    cluster.server.made[0].shutdown(socket.SHUT_RDWR)  # as when the server restarts
    clock.now += RELOAD_SECONDS
    assert client.get("/x", ConfigMap).data == {"a": "b"}
    assert cluster.readings == 2


def test_an_authority_that_we_do_not_know_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other")
    config = msgspec.structs.replace(cluster.source(), ca_file=str(other.certificate))
    client = ApiClient(lambda: config)
    with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
        client.get("/x", ConfigMap)
    client.close()


def test_a_ca_file_that_is_not_there_is_named(cluster: Cluster) -> None:
    client = ApiClient(lambda: ClientConfig(cluster.server.url, ca_file="/nowhere/ca.crt"))
    with pytest.raises(ClientConfigError, match=r"localhost:\d+: CA or client certificate cannot be used"):
        client.configured()


def test_what_cannot_be_read_yet_is_read_later(cluster: Cluster, clock: Clock) -> None:
    cluster.fault = "no such file"
    client = ApiClient(cluster.source, clock=clock)
    for _ in range(3):
        with pytest.raises(UnreachableError, match="GET /x: no such file"):
            client.get("/x", ConfigMap)
    assert cluster.readings == 1
    cluster.fault = ""
    clock.now += RELOAD_SECONDS
    assert client.get("/x", ConfigMap).data == {"a": "b"}
    client.close()


def test_kept_connections_end_when_the_configuration_is_read_anew(
    cluster: Cluster, client: ApiClient, clock: Clock
) -> None:
    client.get("/x", ConfigMap)
    clock.now += RENEW_SECONDS
    client.get("/x", ConfigMap)
    assert (len(cluster.server.made), cluster.readings) == (2, 2)


def test_what_cannot_be_read_anew_stays_in_use(cluster: Cluster, client: ApiClient, clock: Clock) -> None:
    cluster.fault = "no such file"
    clock.now += RENEW_SECONDS
    assert client.get("/x", ConfigMap).data == {"a": "b"}
    clock.now += RELOAD_SECONDS
    cluster.fault = ""
    client.get("/x", ConfigMap)
    assert cluster.readings == 3


def test_a_server_that_is_not_there_is_named_with_the_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = ApiClient(lambda: ClientConfig(f"https://127.0.0.1:{port}", authorization="Bearer secret"))
    with pytest.raises(UnreachableError, match=r"GET /x: .*Connection refused") as caught:
        client.get("/x", ConfigMap)
    assert "secret" not in str(caught.value)
    client.close()


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    with silent() as url:
        client = ApiClient(lambda: ClientConfig(url), timeout=0.1)
        with pytest.raises(UnreachableError, match=r"GET /x: .*timed out"):
            client.get("/x", ConfigMap)
        client.close()


@pytest.mark.parametrize("part", DRIPPING)
def test_an_answer_byte_by_byte_has_one_deadline_and_frees_its_connection(cluster: Cluster, part: str) -> None:
    """Without a deadline no cycle ended, no Lease was renewed, and no stop came to its end."""
    with Running(dripping(*DRIPPING[part], pause=0.05), cluster.tls(), lazy=True) as server:
        client = ApiClient(
            lambda: msgspec.structs.replace(cluster.source(), server=server.url), connections=1, timeout=0.5
        )
        began = time.monotonic()
        for _ in range(2):
            with pytest.raises(UnreachableError, match="timed out"):
                client.get("/x", ConfigMap)
        assert time.monotonic() - began < 4.0
        client.close()


def test_a_long_list_over_a_slow_line_has_more_time(cluster: Cluster) -> None:
    begin = "HTTP/1.1 200 OK\r\nContent-Length: 100020\r\n\r\n" + " " * 100_000
    with Running(dripping(begin, '{"data":{"a":"b"}}  ', pause=0.05), cluster.tls(), lazy=True) as server:
        client = ApiClient(partial(msgspec.structs.replace, cluster.source(), server=server.url), timeout=0.5)
        assert client.get("/x", ConfigMap).data == {"a": "b"}
        client.close()


def test_closing_ends_requests_under_way_also_those_from_before_the_configuration_was_read_anew(
    cluster: Cluster, clock: Clock
) -> None:
    """A watch lasts for longer than a configuration: each that was older kept a service that stops for five seconds."""
    cluster.held.clear()
    client = ApiClient(cluster.source, timeout=2 * PATIENCE, clock=clock)
    failed: list[str] = []

    def ask() -> None:
        try:
            client.get("/x", ConfigMap)
        except UnreachableError as error:
            failed.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    threads[0].start()
    wait_until(lambda: len(cluster.requests) == 1, goal="the first request")
    clock.now += RENEW_SECONDS
    threads[1].start()
    wait_until(lambda: len(cluster.requests) == 2, goal="the second request")
    client.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert (len(failed), cluster.readings) == (2, 2)
    cluster.held.set()


@pytest.mark.parametrize("close", ["", "Connection: close\r\n"], ids=["kept", "closed after it"])
def test_closing_ends_a_stream_also_one_whose_connection_the_server_will_close(cluster: Cluster, close: str) -> None:
    """A proxy in front of the API server may say so; each watch then kept a service that stops for five seconds."""
    begin = f"HTTP/1.1 200 OK\r\n{close}Transfer-Encoding: chunked\r\n\r\n"
    heard, ended = threading.Event(), threading.Event()

    def follow() -> None:
        with contextlib.suppress(UnreachableError), client.stream(RawRequest("GET", "/x"), PATIENCE) as answer:
            heard.set()
            list(answer)
        ended.set()

    with Running(dripping(begin, "2", pause=2 * PATIENCE), cluster.tls(), lazy=True) as server:
        client = ApiClient(partial(msgspec.structs.replace, cluster.source(), server=server.url))
        threading.Thread(target=follow, daemon=True).start()
        assert heard.wait(PATIENCE)
        client.close()
        assert ended.wait(3.0)


def test_an_event_loop_goes_on_while_an_answer_is_waited_for() -> None:
    async def ask(client: AsyncApiClient) -> int:
        ticks = 0
        task = asyncio.create_task(client.get("/x", ConfigMap))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.01)
        with pytest.raises(UnreachableError):
            await task
        return ticks

    with silent() as url:
        client = AsyncApiClient(ApiClient(lambda: ClientConfig(url), timeout=0.3))
        assert asyncio.run(ask(client)) > 5
        client.close()


def test_a_request_through_a_proxy_is_a_tunnel(cluster: Cluster) -> None:
    lines: list[bytes] = []
    with tunnel(cluster, lines) as proxy:
        config = msgspec.structs.replace(cluster.source(), proxy=f"http://us%40er:pass@{proxy}")
        client = ApiClient(lambda: config, timeout=5)
        assert client.get("/x", ConfigMap).data == {"a": "b"}
        client.close()
    text = b"".join(lines)
    assert text.startswith(b"CONNECT localhost:")
    assert b"proxy-authorization: Basic dXNAZXI6cGFzcw==" in text.replace(b"Proxy-A", b"proxy-a")


def test_a_name_of_the_certificate_may_differ_from_the_address(cluster: Cluster) -> None:
    other = cluster.authority.issue("named", "api.internal")
    cluster.context.load_cert_chain(other.certificate, other.key)
    plain = cluster.source()
    named = msgspec.structs.replace(plain, tls_server_name="api.internal")
    client = ApiClient(lambda: named)
    assert client.get("/x", ConfigMap).data == {"a": "b"}
    client.close()
    wrong = ApiClient(lambda: plain)
    with pytest.raises(UnreachableError, match="Hostname mismatch"):
        wrong.get("/x", ConfigMap)
    wrong.close()


def rotate(cluster: Cluster) -> None:
    """Serve a certificate of a new authority, which is in the CA file by now."""
    (cluster.folder / "next").mkdir()
    cluster.authority = Authority(cluster.folder / "next", "next")
    identity = cluster.authority.issue("server", "localhost", "127.0.0.1")
    cluster.context.load_cert_chain(identity.certificate, identity.key)


@contextlib.contextmanager
def tunnel(cluster: Cluster, lines: list[bytes]) -> Iterator[str]:
    """A proxy for one connection; `lines` gets what was asked of it."""
    target = ("127.0.0.1", int(cluster.server.url.rsplit(":", 1)[1]))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as client, socket.create_connection(target) as server:
                lines.append(client.recv(65536))
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=copied, args=(server, client), daemon=True)
                back.start()
                copied(client, server)
                back.join(PATIENCE)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(PATIENCE)


def copied(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def test_threads_that_decode_a_type_for_the_first_time_at_once_do_not_end_the_process() -> None:
    """In a process of its own, since a fault is a segmentation fault; without the lock it comes within some hundred."""
    program = """
        import sys, threading
        from forecaster.kube.client import decoder_of
        from forecaster.kube.rights import ReviewStatus, UserInfo

        sys.setswitchinterval(1e-6)
        for number in range(1000):
            class Info(UserInfo, frozen=True):
                more: "tuple[str, ...]" = ()
            class Status(ReviewStatus, frozen=True):
                user: "Info" = Info()
            globals().update(Info=Info)
            together = threading.Barrier(4)
            def decode():
                together.wait()
                decoder_of(Status).decode(b'{"authenticated": true, "user": {"username": "x", "more": ["a"]}}')
            threads = [threading.Thread(target=decode) for _ in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert ended.returncode == 0
