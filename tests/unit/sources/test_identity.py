"""Managed Prometheus: the server recomputes signatures, and accepts the tokens that it gave itself."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import requests

from forecaster.errors import SourceRefused, SourceUnavailable
from forecaster.sources.client import PrometheusClient
from forecaster.sources.identity import BearerAuth, ExpiringValue, Keys, Renewed, SigV4, aws_keys, cloud_identity
from forecaster.sources.settings import PrometheusSettings
from forecaster.sources.wire import Denied, at_instant
from tests.support.http_server import DRIPPING, Reply, Running, Server, dripping, page, vector

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http_server import HttpRequest

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role/forecaster"
KEYS = {"ASIAFIRST": "first secret", "ASIASECOND": "second secret"}


def recomputed(request: HttpRequest) -> bool:
    """Whether a request carries the signature that AWS computes from its content and the secret of its key."""
    fields = dict(part.split("=", 1) for part in request.headers["Authorization"].split(" ", 1)[1].split(", "))
    key_id, day, region, service, end = fields["Credential"].split("/")
    lowered = {name.lower(): value for name, value in request.headers.items()}
    names = fields["SignedHeaders"].split(";")
    head = "".join(f"{name}:{lowered[name]}\n" for name in names)
    body = hashlib.sha256(request.body).hexdigest()
    canonical = f"{request.method}\n{request.path}\n\n{head}\n{fields['SignedHeaders']}\n{body}"
    scope = f"{day}/{region}/{service}/{end}"
    text = f"AWS4-HMAC-SHA256\n{lowered['x-amz-date']}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + KEYS[key_id].encode()
    for part in (day, region, service, end):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"]


def query(url: str, provider: str) -> None:
    settings = PrometheusSettings(url=url, identity=provider, retries=0)  # type: ignore[arg-type]
    with closing(PrometheusClient(settings)) as client:
        client.ask(at_instant("query", "up", NOW))


def post_query(url: str, auth: requests.auth.AuthBase) -> requests.Response:
    return requests.post(f"{url}/workspaces/ws-1/api/v1/query", data={"query": 'up{a="b c"}'}, auth=auth, timeout=5)


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    (tmp_path / "token").write_text("the pod's token\n", encoding="utf-8")
    return str(tmp_path / "token")


class Aws:
    """A Prometheus that recomputes signatures, and the two services that give keys to pods."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, request: HttpRequest) -> Reply:
        if request.path == "/credentials":
            assert request.headers["Authorization"] == "the pod's token"
            return self._json(self._next())
        if request.form.get("Action") == "AssumeRoleWithWebIdentity":
            assert (request.form["RoleArn"], request.form["WebIdentityToken"]) == (ROLE, "the pod's token")
            return self._xml(self._next())
        if not recomputed(request) or "x-amz-security-token" not in request.headers["Authorization"]:
            return page(403, "SignatureDoesNotMatch")
        return vector()

    def _next(self) -> str:
        self.given.append(list(KEYS)[len(self.given)])
        return self.given[-1]

    @staticmethod
    def _json(key_id: str) -> Reply:
        keys = {"AccessKeyId": key_id, "SecretAccessKey": KEYS[key_id], "Token": "session"}
        return Reply(body=json.dumps(keys | {"Expiration": "2026-11-25T13:00:00Z"}).encode())

    @staticmethod
    def _xml(key_id: str) -> Reply:
        return Reply(
            body=f"<Credentials><AccessKeyId>{key_id}</AccessKeyId><SecretAccessKey>{KEYS[key_id]}</SecretAccessKey>"
            f"<SessionToken>session</SessionToken><Expiration>2026-11-25T13:00:00Z</Expiration></Credentials>".encode()
        )


class TestAws:
    @pytest.mark.parametrize("way", ["irsa", "pod identity"])
    def test_keys_of_the_pods_role_sign_each_request_and_are_renewed_before_they_expire(
        self, way: str, token_file: str
    ) -> None:
        aws, now = Aws(), [NOW]
        with Server(aws) as server:
            irsa = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": token_file, "AWS_ENDPOINT_URL_STS": server.url}
            pod = {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/credentials",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token_file,
            }
            environment = {"AWS_REGION": "eu-central-1"} | (irsa if way == "irsa" else pod)
            auth = cloud_identity("aws-sigv4", server.url, environment, lambda: now[0])
            for minutes, keys in ((0, 1), (54, 1), (56, 2)):
                now[0] = NOW + timedelta(minutes=minutes)
                assert post_query(server.url, auth).status_code == 200
                assert len(aws.given) == keys

    def test_it_signs_as_amazon_documents(self) -> None:
        """The signature equals that of the example `get-vanilla` in the suite that AWS publishes."""
        at = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
        keys = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        held = Renewed(lambda now: ExpiringValue(keys, now + timedelta(hours=1)), lambda: at)
        signer = SigV4(held, lambda: "us-east-1", lambda: at, service="service")
        signed = requests.Request("GET", "https://example.amazonaws.com/", auth=signer).prepare()
        assert signed.headers["Authorization"].endswith(
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        )

    def test_a_query_of_the_client_is_signed_as_it_is_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"ACCESS_KEY_ID": "ASIAFIRST", "SECRET_ACCESS_KEY": KEYS["ASIAFIRST"]}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        monkeypatch.delenv("AWS_ROLE_ARN", raising=False)
        with Server(Aws()) as server:
            query(f"{server.url}/workspaces/ws-1", "aws-sigv4")

    def test_the_region_is_that_of_the_workspace(self) -> None:
        url = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1"
        environment = {"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret"}
        signed = requests.Request("POST", url, auth=cloud_identity("aws-sigv4", url, environment)).prepare()
        assert "/us-west-2/aps/" in signed.headers["Authorization"]

    def test_a_pod_without_a_role_gets_an_error_with_the_remedy(self) -> None:
        with pytest.raises(SourceRefused, match=r"eks\.amazonaws\.com/role-arn"):
            aws_keys({}, "eu-central-1", NOW)

    def test_a_refusal_by_the_token_service_says_what_to_compare_and_no_secret(self, token_file: str) -> None:
        with Server(lambda _: page(403, "AccessDenied the pod's token")) as server:
            environment = {
                "AWS_ROLE_ARN": ROLE,
                "AWS_WEB_IDENTITY_TOKEN_FILE": token_file,
                "AWS_ENDPOINT_URL_STS": server.url,
            }
            with pytest.raises(SourceRefused, match=f"{ROLE}.*status 403.*compare the trust") as caught:
                aws_keys(environment, "eu-central-1", NOW)
        assert "the pod's token" not in str(caught.value)

    def test_keys_that_still_hold_serve_while_a_renewal_fails_after_a_pause(self) -> None:
        leases, tried = [ExpiringValue("first", NOW + timedelta(minutes=60))], []
        now = [NOW]

        def fetch(at: datetime) -> ExpiringValue[str]:
            tried.append(at)
            if not leases:
                raise SourceUnavailable("the token service is away")
            return leases.pop()

        held = Renewed(fetch, lambda: now[0])
        assert held.get() == "first"
        now[0] = NOW + timedelta(minutes=58)
        assert [held.get() for _ in range(20)] == ["first"] * 20  # the questions of a cycle
        assert tried == [NOW, now[0]]
        now[0] = NOW + timedelta(minutes=60)
        with pytest.raises(SourceUnavailable, match="away"):
            held.get()

    def test_a_lease_that_was_counted_by_a_clock_ahead_is_renewed_when_the_clock_goes_back(self) -> None:
        now = [NOW + timedelta(days=1)]
        held = Renewed(lambda at: ExpiringValue(f"{at:%d}", at + timedelta(hours=1)), lambda: now[0])
        ahead = held.get()
        now[0] = NOW
        assert held.get() != ahead


@pytest.mark.parametrize("answer", ["{}", '{"AccessKeyId":"a","SecretAccessKey":"b","Token":"c","Expiration":null}'])
def test_an_answer_without_keys_is_refused(answer: str, token_file: str) -> None:
    with Server(lambda _: page(200, answer)) as server:
        environment = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.url,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token_file,
        }
        with pytest.raises(SourceRefused, match="without credentials"):
            aws_keys(environment, "eu-central-1", NOW)


class Tokens:
    """A Prometheus that accepts the newest of the tokens which the service beside it gave."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.requests: list[HttpRequest] = []

    def __call__(self, request: HttpRequest) -> Reply:
        if request.path.partition("?")[0] == self.path:
            self.requests.append(request)
            token = {"access_token": f"token {len(self.requests)}", "expires_in": 3600, "token_type": "Bearer"}
            return Reply(body=json.dumps(token).encode())
        if request.headers["Authorization"] != f"Bearer token {len(self.requests)}":
            return page(401, "no")
        return vector()


def test_azure_takes_the_pods_token_for_one_of_its_own_and_renews_it(token_file: str) -> None:
    entra, now = Tokens("/tenant-1/oauth2/v2.0/token"), [NOW]
    with Server(entra) as server:
        environment = {
            "AZURE_TENANT_ID": "tenant-1",
            "AZURE_CLIENT_ID": "client-1",
            "AZURE_FEDERATED_TOKEN_FILE": token_file,
            "AZURE_AUTHORITY_HOST": f"{server.url}/",
        }
        auth = cloud_identity("azure", server.url, environment, lambda: now[0])
        for minutes, tokens in ((0, 1), (54, 1), (56, 2)):
            now[0] = NOW + timedelta(minutes=minutes)
            assert post_query(server.url, auth).status_code == 200
            assert len(entra.requests) == tokens
    assert entra.requests[0].form["client_assertion"] == "the pod's token"
    assert entra.requests[0].form["scope"] == "https://prometheus.monitor.azure.com/.default"
    assert entra.requests[0].form["client_id"] == "client-1"


def test_azure_says_what_the_pod_lacks() -> None:
    auth = cloud_identity("azure", "https://ours.prometheus.monitor.azure.com", {})
    with pytest.raises(SourceRefused, match=r"azure\.workload\.identity/use=true"):
        post_query("http://127.0.0.1:9", auth)


def test_google_gives_tokens_by_its_metadata_server() -> None:
    google, now = Tokens("/computeMetadata/v1/instance/service-accounts/default/token"), [NOW]
    with Server(google) as server:
        environment = {"GCE_METADATA_HOST": server.url.removeprefix("http://")}
        auth = cloud_identity("gcp", server.url, environment, lambda: now[0])
        for minutes, tokens in ((0, 1), (54, 1), (56, 2)):
            now[0] = NOW + timedelta(minutes=minutes)
            assert post_query(server.url, auth).status_code == 200
            assert len(google.requests) == tokens
    assert google.requests[0].headers["Metadata-Flavor"] == "Google"


def test_no_metadata_server_is_no_answer_and_names_its_address() -> None:
    auth = cloud_identity("gcp", "http://127.0.0.1:9", {"GCE_METADATA_HOST": "127.0.0.1:9"})
    with pytest.raises(SourceUnavailable, match=r"metadata server at http://127\.0\.0\.1:9"):
        post_query("http://127.0.0.1:9", auth)


def test_a_token_that_comes_byte_by_byte_has_one_deadline() -> None:
    with Running(dripping(*DRIPPING["body"], pause=0.05), None) as server:
        auth = cloud_identity("gcp", server.url, {"GCE_METADATA_HOST": server.url.removeprefix("http://")})
        began = time.monotonic()
        with pytest.raises(SourceUnavailable):
            post_query(server.url, auth)
    assert time.monotonic() - began < 8.0


REFUSALS = {"aws-sigv4": "aps:QueryMetrics", "azure": "Monitoring Data Reader", "gcp": "roles/monitoring.viewer"}


@pytest.mark.parametrize(("provider", "permission"), REFUSALS.items(), ids=REFUSALS)
def test_what_the_server_refuses_names_the_permission_that_is_missing(
    provider: str, permission: str, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: HttpRequest) -> Reply:
        token = json.dumps({"access_token": "a token", "expires_in": 3600}).encode()
        return page(403, "forbidden") if request.path.startswith("/api/v1/query") else Reply(body=token)

    with Server(answer) as server:
        given = {
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "AKIA",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": token_file,
            "AZURE_AUTHORITY_HOST": server.url,
            "GCE_METADATA_HOST": server.url.removeprefix("http://"),
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Denied, match=permission):
            query(server.url, provider)


def test_two_identities_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="identity is used without"):
        PrometheusSettings(identity="gcp", username="me", password_file="/etc/password")


def test_a_token_is_a_bearer_token() -> None:
    held = Renewed(lambda now: ExpiringValue("a token", now + timedelta(hours=1)), lambda: NOW)
    prepared = requests.Request("GET", "http://metrics.example", auth=BearerAuth(held.get)).prepare()
    assert prepared.headers["Authorization"] == "Bearer a token"
