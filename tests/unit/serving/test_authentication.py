from __future__ import annotations

import base64
import json

import pytest

from forecaster.kube.rights import User
from forecaster.serving.authentication import FrontProxy, bearer_token, front_proxy
from forecaster.serving.connection import Peer

PROXY = FrontProxy(ca="PEM", allowed_names=frozenset({"front-proxy-client"}), uid_headers=(b"x-remote-uid",))
PEER = Peer("front-proxy-client")
HPA = [
    (b"x-remote-user", b"hpa"),
    (b"x-remote-group", b"a"),
    (b"x-remote-group", b"b"),
    (b"x-remote-uid", b"u-1"),
    (b"x-remote-extra-authentication.kubernetes.io%2fcredential-id", b"X509"),
    (b"accept", b"*/*"),
]


def test_the_caller_is_who_the_proxy_says() -> None:
    assert PROXY.user(PEER, HPA) == User(
        "hpa",
        "u-1",
        ("a", "b", "system:authenticated"),
        (("authentication.kubernetes.io/credential-id", ("X509",)),),
    )


def test_a_caller_without_groups_is_authenticated_all_the_same() -> None:
    user = PROXY.user(PEER, [(b"x-remote-user", b"system:aggregator")])
    assert user is not None
    assert user.groups == ("system:authenticated",)


@pytest.mark.parametrize("peer", [None, Peer(""), Peer("somebody"), Peer("Front-Proxy-Client")])
def test_nobody_else_is_believed(peer: Peer | None) -> None:
    assert PROXY.user(peer, HPA) is None


def test_an_empty_list_of_names_allows_every_certificate_of_the_authority() -> None:
    assert FrontProxy(ca="PEM").user(Peer("anybody"), HPA) is not None


def test_without_an_authority_nobody_is_believed() -> None:
    assert FrontProxy().user(Peer("front-proxy-client"), HPA) is None


def test_a_proxy_that_names_nobody_speaks_for_nobody() -> None:
    assert PROXY.user(PEER, [(b"x-remote-group", b"system:masters")]) is None
    assert PROXY.user(PEER, [(b"x-remote-user", b""), (b"x-remote-group", b"system:masters")]) is None


def test_a_uid_is_read_only_where_the_cluster_says_so() -> None:
    older = front_proxy({"requestheader-client-ca-file": "PEM"}).user(PEER, HPA)
    newer = front_proxy({"requestheader-client-ca-file": "PEM", "requestheader-uid-headers": '["X-Remote-Uid"]'}).user(
        PEER, HPA
    )
    assert [user.uid for user in (older, newer) if user] == ["", "u-1"]


def test_settings_are_those_of_the_cluster() -> None:
    proxy = front_proxy(
        {
            "requestheader-client-ca-file": "PEM",
            "requestheader-allowed-names": '["one", ""]',
            "requestheader-username-headers": '["X-Proxy-User"]',
            "requestheader-group-headers": "[]",
            "client-ca-file": "must not matter",
        }
    )
    assert proxy == FrontProxy("PEM", frozenset({"one"}), user_headers=(b"x-proxy-user",))


@pytest.mark.parametrize("text", ["", "null", "[]", '[""]'])
def test_no_names_are_all_names(text: str) -> None:
    proxy = front_proxy({"requestheader-client-ca-file": "PEM", "requestheader-allowed-names": text})
    assert proxy.allowed_names == frozenset()


def test_settings_without_an_authority_switch_it_off() -> None:
    assert front_proxy({"requestheader-allowed-names": '["one"]'}) == FrontProxy()


def test_a_list_that_is_none_is_an_error_and_not_everybody() -> None:
    with pytest.raises(ValueError, match="requestheader-allowed-names"):
        front_proxy({"requestheader-client-ca-file": "PEM", "requestheader-allowed-names": "front-proxy-client"})


NOON = 1_772_366_400.0


def jwt(claims: object, header: object = {"alg": "RS256", "kid": "1"}) -> bytes:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims))
    return b".".join((*parts, b"c2lnbmF0dXJl"))


@pytest.mark.parametrize(
    "token",
    [
        jwt({"iss": "https://kubernetes.default.svc", "exp": NOON + 60}),
        jwt({"iss": "a legacy one without an end"}),
        jwt({"exp": NOON - 60}),
        b"abcdef.0123456789abcdef",
        b"sha256~opaque_-",
        b"k8s-aws-v1.aHR0cHM6Ly9zdHM",
        b"MTIzNA==",
    ],
    ids=["account", "no-end", "clocks-differ", "bootstrap", "opaque", "cloud", "padded"],
)
def test_a_token_that_an_api_server_could_accept_is_worth_a_review(token: bytes) -> None:
    bearer = bearer_token([(b"authorization", b"Bearer " + token)], NOON)
    assert bearer is not None
    assert bearer.text == token.decode()


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer ",
        b"Bearer a b c",
        b'Bearer {"guess": 1}',
        b"Bearer \xff\xfe",
        b"Bearer " + b"x" * 20_000,
        b"Bearer eyJhbGci.eyJhbGci.x",
        b"Bearer " + jwt({"exp": "tomorrow"}),
        b"Bearer " + jwt({"exp": NOON - 3600}),
        b"Bearer " + jwt({}, {"typ": "JWT"}),
        b"Bearer " + jwt([]),
        b"Basic dXNlcjpwYXNz",
    ],
    ids=["empty", "spaces", "json", "bytes", "long", "torn", "end", "expired", "unsigned", "no-claims", "basic"],
)
def test_what_no_api_server_could_accept_is_not_reviewed(header: bytes) -> None:
    assert bearer_token([(b"authorization", header)], NOON) is None


def test_without_credentials_there_is_no_token() -> None:
    assert bearer_token([(b"accept", b"*/*")], NOON) is None
