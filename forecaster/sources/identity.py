"""Identity at a managed Prometheus: requests signed for AWS, or with a token of Azure or Google.

The cloud gives an identity to the pod (IRSA or EKS Pod Identity, Azure workload identity, GKE workload identity). Here
it is exchanged for credentials that last about an hour and are renewed before they expire. Each exchange is one small
HTTP request, so no library of a cloud is installed; botocore needs an older python-dateutil than the Kubernetes client.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from forecaster.errors import SourceRefused, SourceUnavailable
from forecaster.kube.connections import timed

if TYPE_CHECKING:
    from requests import PreparedRequest

    from forecaster.sources.settings import Provider

PERMISSIONS: Mapping[Provider, str] = {
    "aws-sigv4": "the role needs aps:QueryMetrics, aps:GetSeries, aps:GetLabels and aps:GetMetricMetadata on the "
    "workspace (policy AmazonPrometheusQueryAccess)",
    "azure": "the identity needs the role `Monitoring Data Reader` on the Azure Monitor workspace",
    "gcp": "the service account needs the role roles/monitoring.viewer in this project",
}
"""Permission that an identity lacks when the server refuses it."""

_BEFORE_EXPIRY = timedelta(minutes=5)
"""Credentials are renewed this early: clocks differ by a minute or two, and a failed renewal can be tried again."""
_AGAIN_AFTER = timedelta(seconds=30)
"""Pause after a renewal that failed while credentials hold: else each question of a cycle waits for its time-out."""
_TIMEOUT_SECONDS = 5.0
_AZURE_SCOPE = "https://prometheus.monitor.azure.com/.default"
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/monitoring.read"
_HASH = "AWS4-HMAC-SHA256"

Value = TypeVar("Value")


class Keys(NamedTuple):
    """Access keys of AWS."""

    key_id: str
    secret: str
    token: str = ""
    """Session token of temporary credentials; empty for lasting ones."""


class ExpiringValue(NamedTuple, Generic[Value]):
    """Credentials and the instant at which they expire."""

    value: Value
    until: datetime


class Renewed(Generic[Value]):
    """Credentials that are fetched when they are first needed, and again before they expire."""

    def __init__(self, fetch: Callable[[datetime], ExpiringValue[Value]], clock: Callable[[], datetime]) -> None:
        self._fetch, self._clock, self._lock = fetch, clock, Lock()
        self._lease: ExpiringValue[Value] | None = None
        self._due = self._tried = datetime.min.replace(tzinfo=UTC)

    def get(self) -> Value:
        """Return valid credentials; where a renewal fails, the old ones until they expire.

        A clock that went back since they were fetched ends them: it says nothing about their expiry.
        """
        with self._lock:
            now = self._clock()
            if self._lease is None or not self._tried <= now < min(self._due, self._lease.until):
                self._renew(now)
            assert self._lease is not None  # noqa: S101  a failure of the first fetch has raised
            return self._lease.value

    def _renew(self, now: datetime) -> None:
        self._tried = now
        try:
            self._lease = self._fetch(now)
            self._due = self._lease.until - _BEFORE_EXPIRY
        except (SourceUnavailable, SourceRefused):
            self._due = now + _AGAIN_AFTER
            if self._lease is None or now >= self._lease.until:
                raise


def cloud_identity(
    provider: Provider,
    url: str,
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AuthBase:
    """The authentication of requests to `url` by the identity that the cloud gave to this process."""
    if provider == "aws-sigv4":
        keys = Renewed(lambda now: aws_keys(environment, _region(environment, url), now), clock)
        return SigV4(keys, lambda: _region(environment, url), clock)
    token_of = azure_token if provider == "azure" else google_token
    return BearerAuth(Renewed(lambda now: token_of(environment, now), clock).get)


class BearerAuth(AuthBase):
    """Authentication by a bearer token, which is read for each request."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header."""
        request.headers["Authorization"] = f"Bearer {self._token()}"
        return request


class SigV4(AuthBase):
    """Signature version 4 of AWS over method, address, host, time and body, for Amazon Managed Prometheus.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """

    def __init__(
        self, keys: Renewed[Keys], region: Callable[[], str], clock: Callable[[], datetime], service: str = "aps"
    ) -> None:
        self._keys, self._region, self._clock, self._service = keys, region, clock, service

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the headers with time, session and signature."""
        keys = self._keys.get()
        time = f"{self._clock():%Y%m%dT%H%M%SZ}"
        signed = {"host": _host(str(request.url)), "x-amz-date": time}
        if keys.token:
            signed["x-amz-security-token"] = keys.token
        scope = f"{time[:8]}/{self._region()}/{self._service}/aws4_request"
        canonical = _sha256(_canonical(request, signed))
        signature = _signature(keys.secret, scope, f"{_HASH}\n{time}\n{scope}\n{canonical}")
        request.headers.update({name: value for name, value in signed.items() if name != "host"})
        request.headers["Authorization"] = (
            f"{_HASH} Credential={keys.key_id}/{scope}, SignedHeaders={';'.join(signed)}, Signature={signature}"
        )
        return request


def _canonical(request: PreparedRequest, signed: Mapping[str, str]) -> bytes:
    """Return the signed part of a request; names of `signed` are lowercase and sorted."""
    parts = urlsplit(str(request.url))
    pairs = sorted((_quoted(name), _quoted(value)) for name, value in parse_qsl(parts.query, keep_blank_values=True))
    body = request.body or b""
    lines = [
        str(request.method),
        quote(parts.path or "/", safe="/-_.~"),
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{value}" for name, value in signed.items()),
        "",
        ";".join(signed),
        _sha256(body.encode() if isinstance(body, str) else bytes(body)),
    ]
    return "\n".join(lines).encode()


def _signature(secret: str, scope: str, text: str) -> str:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


def _host(url: str) -> str:
    """Return the header Host as it is sent: without the default port of the scheme."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return str(parts.hostname) if parts.port in {None, usual} else f"{parts.hostname}:{parts.port}"


def _region(environment: Mapping[str, str], url: str) -> str:
    """Return the region of a workspace: from its address, else from the pod's environment."""
    stated = re.search(r"aps-workspaces(?:-fips)?\.([a-z0-9-]+)\.", url)
    region = stated[1] if stated else environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise SourceRefused(f"prometheus.identity aws-sigv4: {url} names no region; set the variable AWS_REGION")
    return region


def aws_keys(environment: Mapping[str, str], region: str, now: datetime) -> ExpiringValue[Keys]:
    """Return the credentials of the pod's role, by IRSA or EKS Pod Identity, else those of the environment."""
    if role := environment.get("AWS_ROLE_ARN"):
        return _assumed(environment, role, region)
    if address := environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        token = _file(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "EKS Pod Identity")
        answer = _json(_fetch("GET", address, "EKS Pod Identity", headers={"Authorization": token}), "EKS Pod Identity")
        return _keys(answer, "Token", "EKS Pod Identity")
    if key_id := environment.get("AWS_ACCESS_KEY_ID"):
        secret = environment.get("AWS_SECRET_ACCESS_KEY", "")
        return ExpiringValue(Keys(key_id, secret, environment.get("AWS_SESSION_TOKEN", "")), now + timedelta(hours=1))
    raise SourceRefused(
        "prometheus.identity aws-sigv4: this pod has no role; annotate its service account with "
        "eks.amazonaws.com/role-arn, or associate a role with it (EKS Pod Identity), then restart the pod"
    )


def _assumed(environment: Mapping[str, str], role: str, region: str) -> ExpiringValue[Keys]:
    """Exchange the token of the pod's service account for credentials of AWS' token service."""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": "forecaster",
        "WebIdentityToken": _file(environment, "AWS_WEB_IDENTITY_TOKEN_FILE", "IRSA"),
    }
    address = environment.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.{domain}/"
    text = _fetch("POST", address, f"AWS STS for the role {role}", data=form).text
    fields = dict(re.findall(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>([^<]+)<", text))
    return _keys(fields, "SessionToken", f"AWS STS for the role {role}")


def _keys(fields: Mapping[str, Any], token: str, server: str) -> ExpiringValue[Keys]:
    """Return the credentials in an answer; `token` is the name of its session token."""
    try:
        keys = Keys(fields["AccessKeyId"], fields["SecretAccessKey"], fields[token])
        return ExpiringValue(keys, datetime.fromisoformat(fields["Expiration"]).astimezone(UTC))
    except (KeyError, TypeError, ValueError) as error:
        raise SourceRefused(f"{server}: an answer without credentials") from error


def azure_token(environment: Mapping[str, str], now: datetime) -> ExpiringValue[str]:
    """Exchange the token of the pod's service account for one of Microsoft Entra (Azure workload identity)."""
    missing = [name for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID") if not environment.get(name)]
    if missing:
        raise SourceRefused(
            f"prometheus.identity azure: this pod has no identity ({', '.join(missing)} not set); label the pod with "
            "azure.workload.identity/use=true, and annotate its service account with azure.workload.identity/client-id"
        )
    authority = environment.get("AZURE_AUTHORITY_HOST") or "https://login.microsoftonline.com"
    form = {
        "grant_type": "client_credentials",
        "client_id": environment["AZURE_CLIENT_ID"],
        "scope": _AZURE_SCOPE,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": _file(environment, "AZURE_FEDERATED_TOKEN_FILE", "Azure workload identity"),
    }
    address = f"{authority.rstrip('/')}/{environment['AZURE_TENANT_ID']}/oauth2/v2.0/token"
    return _token(_fetch("POST", address, "Microsoft Entra", data=form), "Microsoft Entra", now)


def google_token(environment: Mapping[str, str], now: datetime) -> ExpiringValue[str]:
    """Return the token that the metadata server of Google Cloud issues for this pod (GKE workload identity)."""
    host = environment.get("GCE_METADATA_HOST") or "metadata.google.internal"
    address = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    response = _fetch(
        "GET",
        address,
        "Google's metadata server",
        headers={"Metadata-Flavor": "Google"},
        params={"scopes": _GOOGLE_SCOPE},
    )
    return _token(response, "Google's metadata server", now)


def _token(response: requests.Response, server: str, now: datetime) -> ExpiringValue[str]:
    answer = _json(response, server)
    try:
        return ExpiringValue(str(answer["access_token"]), now + timedelta(seconds=int(answer["expires_in"])))
    except (KeyError, TypeError, ValueError) as error:
        raise SourceRefused(f"{server}: an answer without a token") from error


def _fetch(method: str, address: str, server: str, **content: Any) -> requests.Response:
    """Send one request. Errors have the status only: bodies of such servers may hold secrets."""
    with requests.Session() as session:
        session.trust_env = not is_local(address)  # a proxy of the environment does not lead to the machine itself
        session.mount(address, timed(HTTPAdapter()))
        try:
            response = session.request(
                method,
                address,
                timeout=_TIMEOUT_SECONDS,
                allow_redirects=False,
                auth=lambda request: request,
                **content,
            )
        except requests.RequestException as error:
            raise SourceUnavailable(f"{server} at {address}: {type(error).__name__}") from error
    if response.status_code >= requests.codes.server_error:
        raise SourceUnavailable(f"{server} at {address}: status {response.status_code}")
    if not response.ok:
        raise SourceRefused(
            f"{server} at {address}: status {response.status_code}; it does not know this pod's service account: "
            "compare the trust that the role or identity states with its namespace and name"
        )
    return response


def is_local(address: str) -> bool:
    """Whether an address is on this machine, or on the link that clouds give to it."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback or ip_address(host).is_link_local
    except ValueError:
        return host in {"localhost", "metadata.google.internal"}


def _json(response: requests.Response, server: str) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError as error:
        raise SourceRefused(f"{server}: an answer that is not JSON") from error
    if not isinstance(answer, dict):
        raise SourceRefused(f"{server}: an answer that is no object")
    return answer


def _file(environment: Mapping[str, str], variable: str, purpose: str) -> str:
    """Return the token in the file that a variable names; kubelets renew it, so it is read each time."""
    path = environment.get(variable)
    if not path:
        raise SourceRefused(f"{purpose}: the variable {variable} is not set in this pod")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SourceRefused(f"{purpose}: cannot read {path}: {error.strerror}") from error
