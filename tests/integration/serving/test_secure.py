"""The secure door of the real process: who is let in, who is not, and what changes while it runs."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from forecaster.publish.new_pods import new_pods_path
from forecaster.serving.authentication import CONFIG_MAP
from tests.support.admitting import web
from tests.support.control_plane.authority import Authority
from tests.support.published import publisher
from tests.support.recommendations import recommendation
from tests.support.secure_serving import HPA, VALUE, SecureServing
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.authority import KeyPair


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServing]:
    folder = tmp_path_factory.mktemp("secure")
    now = datetime.now(UTC)
    publisher(folder / "table", gauges="counts").publish(now, [recommendation(at=now)])
    with SecureServing(folder, folder / "table") as running:
        yield running


def test_the_front_proxy_is_believed_what_it_says_of_the_caller(serving: SecureServing) -> None:
    answer = serving.as_proxy()
    assert answer.status_code == 200, answer.text
    assert answer.json()["items"][0]["value"] == "1750m"
    review = serving.reviews.reviewed[-1]
    assert review["user"] == HPA["X-Remote-User"]
    assert review["groups"] == ["system:authenticated"]
    assert review["resourceAttributes"] == {
        "verb": "list",
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "resource": "forecaster_demand",
        "namespace": "shop",
    }


def test_the_aggregators_own_polls_come_without_groups_and_pass(serving: SecureServing) -> None:
    for path in ("/apis", "/apis/external.metrics.k8s.io", "/apis/external.metrics.k8s.io/v1beta1"):
        assert serving.as_proxy(path, **{"X-Remote-User": "system:kube-aggregator"}).status_code == 200
    for path in ("/openapi/v2", "/openapi/v3"):
        assert serving.as_proxy(path, **{"X-Remote-User": "system:aggregator"}).status_code == 200
        assert serving.ask(path).status_code == 401


def test_a_token_is_reviewed_and_remembered(serving: SecureServing) -> None:
    before = serving.reviews.requests.copy()
    with serving.client(Authorization="Bearer good") as client:
        assert [client.get(VALUE).status_code for _ in range(5)] == [200] * 5
    new = serving.reviews.requests - before
    assert max(new.values(), default=0) <= 1


def test_spoofed_headers_without_the_proxys_certificate_are_nothing(serving: SecureServing) -> None:
    answer = serving.ask(**HPA, **{"X-Remote-Group": "system:masters"})
    assert answer.status_code == 401
    assert answer.json()["reason"] == "Unauthorized"


def test_the_right_authority_with_a_wrong_name_is_no_proxy(serving: SecureServing) -> None:
    other = serving.reviews.front_proxy.issue("other", common_name="somebody")
    assert serving.ask(identity=other, **HPA).status_code == 401


def test_another_authority_is_refused_in_the_handshake(serving: SecureServing) -> None:
    """The certificate is a user's of the cluster, with the proxy's own name: it must not become the proxy."""
    user = serving.reviews.authority.issue("user", common_name="front-proxy-client")
    with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
        serving.ask(identity=user, **HPA)


def test_an_expired_certificate_is_refused_in_the_handshake(serving: SecureServing) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    old = serving.reviews.front_proxy.issue("old", common_name="front-proxy-client", until=yesterday)
    with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
        serving.ask(identity=old, **HPA)


@pytest.mark.parametrize("token", ["bad", "x" * 20_000, "a b c"])
def test_a_token_that_is_nobodys_is_refused(serving: SecureServing, token: str) -> None:
    assert serving.ask(Authorization=f"Bearer {token}").status_code == 401


def test_without_rights_it_is_forbidden_in_the_words_of_the_api(serving: SecureServing) -> None:
    answer = serving.as_proxy(**{"X-Remote-User": "eve"})
    assert answer.status_code == 403
    assert answer.json()["message"] == (
        'User "eve" cannot list resource "forecaster_demand" in API group "external.metrics.k8s.io" '
        'in the namespace "shop"'
    )


def test_everything_else_of_the_door_is_reviewed_by_its_path(serving: SecureServing) -> None:
    path = "/api/v1/recommendations/shop/web"  # Kubernetes lets every account get /api/*
    assert serving.ask(path).status_code == 401
    assert serving.as_proxy(path, **{"X-Remote-User": "eve"}).status_code == 403
    assert serving.ask(path, Authorization="Bearer good").status_code == 200
    assert serving.reviews.reviewed[-1]["nonResourceAttributes"] == {"verb": "get", "path": f"/forecaster{path}"}


def test_names_of_tenants_are_in_the_metrics_for_clients_with_the_right_to_read_them(serving: SecureServing) -> None:
    plain = serving.plain("/metrics").text
    assert 'namespace="shop"' not in plain
    assert "secure port" in plain
    assert serving.ask("/metrics").status_code == 401
    assert serving.as_proxy("/metrics", **{"X-Remote-User": "eve"}).status_code == 403
    read = serving.ask("/metrics", Authorization="Bearer good")
    assert 'forecaster_demand{namespace="shop",kind="Deployment",workload="web"' in read.text
    assert serving.reviews.reviewed[-1]["nonResourceAttributes"] == {"verb": "get", "path": "/metrics"}


@pytest.mark.parametrize("query", ["watch=0", "watch=false"])
def test_a_watch_that_is_none_is_a_list(serving: SecureServing, query: str) -> None:
    user = f"system:serviceaccount:{query}"
    serving.reviews.allowed.add(user)
    assert serving.as_proxy(f"{VALUE}&{query}", **{"X-Remote-User": user}).status_code == 200
    assert serving.reviews.reviewed[-1]["resourceAttributes"]["verb"] == "list"


@pytest.mark.parametrize("query", ["watch=1", "watch=true"])
def test_a_watch_is_reviewed_as_such_and_not_offered(serving: SecureServing, query: str) -> None:
    user = f"system:serviceaccount:{query}"
    serving.reviews.allowed.add(user)
    assert serving.as_proxy(f"{VALUE}&{query}", **{"X-Remote-User": user}).status_code == 405
    assert serving.reviews.reviewed[-1]["resourceAttributes"]["verb"] == "watch"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_show_no_credentials(serving: SecureServing, path: str) -> None:
    assert serving.ask(path).status_code == 200


def test_the_plain_port_is_left_with_probes_and_metrics(serving: SecureServing) -> None:
    assert serving.plain("/metrics").status_code == 200
    assert serving.plain("/healthz").status_code == 200
    assert serving.plain(VALUE).status_code == 403
    assert serving.plain("/api/v1/recommendations").status_code == 403


def test_a_path_that_no_name_needs_is_not_worth_a_review(serving: SecureServing) -> None:
    before = len(serving.reviews.reviewed)
    assert serving.as_proxy("/api/v1/recommendations/shop/" + "a" * 2000).status_code == 414
    assert "a" * 2000 not in str(serving.reviews.reviewed[before:])


def test_rights_that_cannot_be_checked_are_not_given(serving: SecureServing) -> None:
    serving.reviews.down = True
    answer = serving.as_proxy(**{"X-Remote-User": "new"})
    serving.reviews.down = False
    assert answer.status_code == 500
    assert answer.json()["message"] == "rights cannot be checked now"
    assert serving.as_proxy(**{"X-Remote-User": "new"}).status_code == 403  # the failure is not remembered


def test_only_current_protocols_are_spoken(serving: SecureServing) -> None:
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{serving.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = serving.tls()
        context.minimum_version = context.maximum_version = version
        assert (
            httpx.get(f"https://localhost:{serving.port}/healthz", verify=context, timeout=PATIENCE).status_code == 200
        )


def test_denials_are_counted(serving: SecureServing) -> None:
    before = serving.metric('forecaster_serving_denials_total{status="401"}')
    serving.ask()
    assert serving.metric('forecaster_serving_denials_total{status="401"}') == before + 1


def test_a_new_serving_certificate_is_shown_without_a_lost_request(serving: SecureServing) -> None:
    with serving.client(serving.proxy, **HPA) as client:
        assert client.get(VALUE).status_code == 200
        before = shown(serving)
        serving.issuer.issue("serving", "forecaster.autoscaling.svc", "localhost", "127.0.0.1")
        wait_until(lambda: shown(serving) != before, goal="the new certificate")
        assert client.get(VALUE).status_code == 200
    assert serving.as_proxy().status_code == 200


@pytest.mark.slow
def test_when_the_authority_of_proxies_changes_the_old_one_is_nobody(serving: SecureServing, tmp_path: Path) -> None:
    next_ca = Authority(tmp_path, "next-ca")
    new = next_ca.issue("proxy", common_name="front-proxy-client")
    old_ca = serving.reviews.proxy_ca
    with serving.client(serving.proxy, **HPA) as client:
        assert client.get(VALUE).status_code == 200
        serving.reviews.proxy_ca = next_ca.certificate.read_text()
        wait_until(lambda: _passes(serving, new), goal="the new authority")
        with pytest.raises(httpx.TransportError):
            client.get(VALUE)  # its connection has ended, and a new one is refused
    serving.reviews.proxy_ca = old_ca
    wait_until(lambda: _passes(serving, serving.proxy), goal="the old authority")


@pytest.mark.slow
def test_a_handshake_that_began_under_the_old_authority_ends_without_an_answer(
    serving: SecureServing, tmp_path: Path
) -> None:
    """The proxy's CA is rotated during a handshake, whose last message comes with a request."""
    old_ca, next_ca = serving.reviews.proxy_ca, Authority(tmp_path, "next-ca")
    new = next_ca.issue("proxy", common_name="front-proxy-client")
    assert _passes(serving, serving.proxy)
    wait_for_a_look(serving)
    time.sleep(3)  # the next look at the ConfigMap is two seconds away, and a handshake has five
    with socket.create_connection(("127.0.0.1", serving.port)) as plain:
        plain.settimeout(PATIENCE)
        handshake = Handshake(serving.tls(serving.proxy), plain)
        handshake.begin()
        serving.reviews.proxy_ca = next_ca.certificate.read_text()
        wait_for_a_look(serving)
        wait_until(lambda: _passes(serving, new), goal="the new authority")
        assert handshake.answer_to(VALUE) == b""
    serving.reviews.proxy_ca = old_ca
    wait_until(lambda: _passes(serving, serving.proxy), goal="the old authority")


def wait_for_a_look(serving: SecureServing) -> None:
    """Return when the ConfigMap has been read once more."""
    before = serving.reviews.requests[CONFIG_MAP]
    wait_until(lambda: serving.reviews.requests[CONFIG_MAP] > before, goal="a look at the front proxy's settings")


class Handshake:
    """The client's side of TLS, message by message."""

    def __init__(self, context: ssl.SSLContext, plain: socket.socket) -> None:
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")

    def begin(self) -> None:
        """Send the first message and take the server's, which asks for a certificate."""
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self._plain.sendall(self._out.read())
        self._in.write(self._plain.recv(65536))

    def answer_to(self, path: str) -> bytes:
        """End the handshake, with a request of the HPA controller in the same segment."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._in.write(self._plain.recv(65536))
        user = f"X-Remote-User: {HPA['X-Remote-User']}"
        self._tls.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{user}\r\n\r\n".encode())
        self._plain.sendall(self._out.read())
        with suppress(OSError):
            while received := self._plain.recv(65536):
                self._in.write(received)
                with suppress(ssl.SSLWantReadError):
                    if answer := self._tls.read(65536):
                        return answer
        return b""


def _passes(serving: SecureServing, identity: KeyPair) -> bool:
    try:
        return serving.ask(identity=identity, **HPA).status_code == 200
    except httpx.TransportError:
        return False


def shown(serving: SecureServing) -> str:
    return ssl.get_server_certificate(("127.0.0.1", serving.port))


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServing]:
    """Reviews of new pods are answered to the API server's certificate alone."""
    folder = tmp_path_factory.mktemp("certified")
    now = datetime.now(UTC)
    publisher(folder / "table").publish(now, [recommendation(at=now)])
    path = str(new_pods_path(folder / "table"))
    with SecureServing(folder, folder / "table", path, certified_reviews=True) as running:
        yield running


class TestReviewsOfNewPods:
    """`serving.secure.certified_reviews`: the API server shows webhooks the certificate of the front proxy."""

    def reviewed(self, serving: SecureServing, identity: KeyPair | None) -> httpx.Response:
        request = {"uid": "u", "namespace": "shop", "operation": "CREATE", "object": web()}
        with serving.client(identity) as client:
            return client.post("/admit/pods", json={"request": request})

    def test_the_api_servers_certificate_is_answered(self, certified: SecureServing) -> None:
        answer = self.reviewed(certified, certified.proxy)
        assert (answer.status_code, answer.json()["response"]["allowed"]) == (200, True)

    def test_a_client_without_one_or_with_another_name_is_not(self, certified: SecureServing) -> None:
        another = certified.reviews.front_proxy.issue("another", common_name="another-client")
        for identity in (None, another):
            answer = self.reviewed(certified, identity)
            assert answer.status_code == 403
            assert "API server's certificate only" in answer.json()["message"]

    def test_one_of_another_authority_is_not_let_in(self, certified: SecureServing, tmp_path: Path) -> None:
        forged = Authority(tmp_path, "forged").issue("proxy", common_name="front-proxy-client")
        with pytest.raises(httpx.TransportError):
            self.reviewed(certified, forged)

    def test_without_the_setting_any_client_is(self, tmp_path: Path) -> None:
        now = datetime.now(UTC)
        publisher(tmp_path / "table").publish(now, [recommendation(at=now)])
        with SecureServing(tmp_path, tmp_path / "table", str(new_pods_path(tmp_path / "table"))) as serving:
            assert self.reviewed(serving, None).status_code == 200
