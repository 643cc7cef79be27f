"""ApiCluster: the Secret and the APIServices of a real cluster, over the API server's own address."""

from __future__ import annotations

import base64
import binascii
import http.client
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from forecaster.certificates.keep import Kept, Registered
from forecaster.errors import ForecasterError

if TYPE_CHECKING:
    from forecaster.certificates.issue import Issued
    from forecaster.serving.apiserver.config import Access

TIMEOUT_SECONDS = 10.0
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class ClusterError(ForecasterError):
    """The API server refused or did not answer; the text says what to do."""


class ChangedError(ClusterError):
    """Somebody else wrote the object between our reading and our writing."""


class ApiCluster:
    """`Cluster` with the rights of an account: get and patch on one Secret and on our APIServices."""

    def __init__(self, access: Access, secret: str) -> None:
        namespace, name = secret.split("/")
        self._access = access
        self._secret = f"/api/v1/namespaces/{namespace}/secrets/{name}"

    def secret(self) -> Kept:
        """The Secret as it is.

        Raises:
            ClusterError: it does not exist, or may not be read.
        """
        found = self._ask("GET", self._secret)
        if found is None:
            raise ClusterError(f"{self._secret}: there is no such Secret; apply the manifest that has it, empty")
        data = found.get("data") or {}
        return Kept(_text(data.get("ca.crt")), _text(data.get("tls.crt")), _version(found))

    def write_secret(self, issued: Issued, version: str) -> None:
        """Replace certificate, key and authority.

        Raises:
            ClusterError: this is not allowed.
            ChangedError: it is another version by now.
        """
        texts = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.authority}
        self._patch(self._secret, {"data": {key: _base64(text) for key, text in texts.items()}}, version)

    def api_service(self, name: str) -> Registered | None:
        """An APIService; None if there is none of that name.

        Raises:
            ClusterError: it may not be read.
        """
        found = self._ask("GET", f"{API_SERVICES}/{name}")
        if found is None:
            return None
        spec = found["spec"]
        service = spec.get("service")
        return Registered(
            f"{service['namespace']}/{service['name']}" if service else "", _text(spec.get("caBundle")), _version(found)
        )

    def write_bundle(self, name: str, bundle: str, version: str) -> None:
        """Replace whom it trusts.

        Raises:
            ClusterError: this is not allowed.
            ChangedError: it is another version by now.
        """
        self._patch(f"{API_SERVICES}/{name}", {"spec": {"caBundle": _base64(bundle)}}, version)

    def _patch(self, path: str, change: dict[str, Any], version: str) -> None:
        if self._ask("PATCH", path, {"metadata": {"resourceVersion": version}, **change}) is None:
            raise ClusterError(f"{path}: it is gone")

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """The answer; None where there is no such object."""
        try:
            status, answer = self._exchange(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"{method} {path}: {type(error).__name__} {error}") from error
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status == HTTPStatus.CONFLICT:
            raise ChangedError(f"{method} {path}: somebody else wrote it meanwhile; run this again")
        if status != HTTPStatus.OK:
            raise ClusterError(f"{method} {path}: {status} {_message(answer)}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def _exchange(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        access = self._access
        connection = http.client.HTTPSConnection(
            access.host, access.port, timeout=TIMEOUT_SECONDS, context=access.context()
        )
        headers = {"Accept": "application/json", "Content-Type": "application/merge-patch+json", **access.headers()}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def _version(found: dict[str, Any]) -> str:
    return str(found["metadata"]["resourceVersion"])


def _text(encoded: str | None) -> str:
    """What a field of bytes holds; nothing where it is no text, which is then replaced."""
    try:
        return base64.b64decode(encoded or "").decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return ""
