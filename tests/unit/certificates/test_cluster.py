"""The Secret and the APIServices over a real socket: what is sent, what is read back, and what refusals become."""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.certificates import renew
from forecaster.certificates.issue import Issued
from forecaster.certificates.renew import (
    ApiCluster,
    ChangedError,
    ClusterError,
    Registered,
    Registration,
    StoredCertificate,
)
from forecaster.kube.client import ApiClient
from forecaster.kube.config import ClientConfig
from tests.support.control_plane.authority import Authority
from tests.support.http_server import HttpRequest, Reply, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "/api/v1/namespaces/scaling/secrets/tls"
GROUP = Registered(renew.API_SERVICE, "v1.group")
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1.group"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Objects:
    """Objects by path; changes are merged one level deep, and refused where `refusal` says so."""

    def __init__(self, folder: Path) -> None:
        self.found: dict[str, Any] = {}
        self.refusal = 0
        authority = Authority(folder, "ca")
        identity = authority.issue("server", "localhost")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(identity.certificate, identity.key)
        self.server = Server(self.respond, tls=tls)
        self.config = ClientConfig(self.server.url, ca_file=str(authority.certificate), authorization="Bearer mine")

    def respond(self, request: HttpRequest) -> Reply:
        if self.refusal:
            return Reply(self.refusal, b'{"message":"the object has been modified"}')
        if request.path not in self.found:
            return Reply(404, b'{"message":"not found"}')
        for part, change in json.loads(request.body or b"{}").items():
            self.found[request.path].setdefault(part, {}).update(change)
        return Reply(body=json.dumps(self.found[request.path]).encode())


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    built = Objects(tmp_path)
    with built.server:
        yield built


@pytest.fixture
def store(objects: Objects) -> Iterator[ApiCluster]:
    client = ApiClient(lambda: objects.config)
    yield ApiCluster(client, "scaling/tls")
    client.close()


@pytest.mark.parametrize("data", [{}, {"data": None}, {"data": {"tls.crt": encoded("\xff")}}])
def test_what_is_empty_or_no_text_is_nothing(objects: Objects, store: ApiCluster, data: dict[str, Any]) -> None:
    objects.found[SECRET] = {"metadata": {"resourceVersion": "7"}, **data}
    assert store.secret() == StoredCertificate("", "", "7")


def test_a_certificate_is_read_back_as_it_was_written(objects: Objects, store: ApiCluster) -> None:
    objects.found[SECRET] = {"metadata": {}}
    store.write_secret(Issued("authority", "certificate", "key"), "7")
    assert store.secret() == StoredCertificate("authority", "certificate", "7")
    assert objects.found[SECRET]["data"]["tls.key"] == encoded("key")


def test_a_bundle_is_read_back_as_it_was_written(objects: Objects, store: ApiCluster) -> None:
    service = {"namespace": "scaling", "name": "forecaster", "port": 443}
    objects.found[API_SERVICE] = {"metadata": {}, "spec": {"service": service}}
    store.write_bundle(GROUP, "authority", "8")
    assert store.registration(GROUP) == Registration("scaling/forecaster", "authority", "8")


def test_an_api_that_the_api_server_serves_itself_has_no_service(objects: Objects, store: ApiCluster) -> None:
    objects.found[API_SERVICE] = {"metadata": {"resourceVersion": "1"}, "spec": {"groupPriorityMinimum": 1}}
    assert store.registration(GROUP) == Registration("", "", "1")


def test_an_api_service_that_is_not_there_is_none(store: ApiCluster) -> None:
    assert store.registration(GROUP) is None


def test_a_secret_that_is_not_there_names_the_remedy(store: ApiCluster) -> None:
    with pytest.raises(ClusterError, match="secrets/tls: there is no such Secret; apply the manifest"):
        store.secret()


def test_a_version_that_is_gone_is_a_change(objects: Objects, store: ApiCluster) -> None:
    objects.refusal = 409
    with pytest.raises(ChangedError, match="409 the object has been modified; another client wrote it"):
        store.write_bundle(GROUP, "authority", "8")


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_refusal_is_told_without_what_was_sent(objects: Objects, store: ApiCluster, status: int) -> None:
    objects.refusal = status
    with pytest.raises(ClusterError, match=f"PATCH {SECRET}: {status} the object") as caught:
        store.write_secret(Issued("authority", "certificate", "very secret"), "7")
    assert "secret key" not in str(caught.value)
    assert encoded("very secret") not in str(caught.value)
