from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING

import pytest

from forecaster.serving.apiserver.config import AccessError, from_kubeconfig, in_cluster
from tests.support.control_plane.authority import Authority, kubeconfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki", "test-ca")


def test_a_kubeconfig_with_a_certificate(tmp_path: Path, authority: Authority) -> None:
    file = kubeconfig(tmp_path / "config", "https://api.test:6443", authority, authority.issue("me"))
    access = from_kubeconfig(file)
    assert (access.host, access.port, access.headers()) == ("api.test", 6443, {})
    assert isinstance(access.context(), ssl.SSLContext)


def test_certificates_inside_the_file_are_read_without_touching_a_disk(tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("me")
    file = kubeconfig(tmp_path / "config", "https://api.test", authority, pair)
    document = json.loads(file.read_text())
    inside = {
        "client-certificate-data": base64.b64encode(pair.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(pair.key.read_bytes()).decode(),
    }
    document["users"][0]["user"] = inside
    file.write_text(json.dumps(document))
    access = from_kubeconfig(file)
    assert access.port == 443
    for _ in range(2):  # a memory file is read from its beginning each time
        access.context()


def test_a_token_file_is_read_at_each_use(tmp_path: Path, authority: Authority) -> None:
    file = kubeconfig(tmp_path / "config", "https://api.test", authority, authority.issue("me"))
    document = json.loads(file.read_text())
    document["users"][0]["user"] = {"tokenFile": "token"}
    file.write_text(json.dumps(document))
    access = from_kubeconfig(file)
    for text in ("first", "second\n"):
        (tmp_path / "token").write_text(text)
        assert access.headers() == {"Authorization": f"Bearer {text.strip()}"}


@pytest.mark.parametrize("text", ["", "[]", "{", "current-context: x", '{"current-context": "a", "contexts": []}'])
def test_what_is_no_kubeconfig_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(AccessError, match=r"kubeconfig .*config"):
        from_kubeconfig(tmp_path / "config")


def test_a_server_without_tls_is_refused(tmp_path: Path, authority: Authority) -> None:
    file = kubeconfig(tmp_path / "config", "http://api.test", authority, authority.issue("me"))
    with pytest.raises(AccessError, match="is not https"):
        from_kubeconfig(file)


def test_a_pods_own_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("mine")
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    access = in_cluster(tmp_path)
    assert (access.host, access.port, access.headers()) == ("10.0.0.1", 443, {"Authorization": "Bearer mine"})


def test_outside_of_a_pod_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(AccessError, match=r"serving\.secure\.kubeconfig"):
        in_cluster(tmp_path)
