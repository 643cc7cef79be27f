"""Where the API server is: a pod's own account, and kubeconfig files as the official client reads them."""

from __future__ import annotations

import json
import os
import ssl
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.kube.config import (
    ClientConfig,
    ClientConfigError,
    client_config_source,
    from_kubeconfig,
    in_cluster,
    sought_config_source,
)
from tests.support.control_plane.authority import Authority, kubeconfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki", "test-ca")


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Authority) -> Path:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("mine")
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    return tmp_path


def test_a_pods_own_account(pod: Path) -> None:
    config = in_cluster(pod)
    assert (config.server, config.headers()) == ("https://10.0.0.1:443", {"Authorization": "Bearer mine"})
    assert isinstance(config.tls_context(), ssl.SSLContext)


def test_a_rotated_token_of_a_pod_is_used_at_once(pod: Path) -> None:
    config = in_cluster(pod)
    (pod / "token").write_text("next\n")
    assert config.headers() == {"Authorization": "Bearer next"}


def test_an_address_of_version_six_is_bracketed(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert in_cluster(pod).server == "https://[fd00::1]:443"


def test_outside_of_a_pod_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClientConfigError, match=r"serving\.secure\.kubeconfig"):
        in_cluster(tmp_path)


def test_certificates_as_text_are_used_without_touching_a_disk(authority: Authority) -> None:
    pair = authority.issue("me")
    config = ClientConfig(
        "https://api.test",
        ca=authority.certificate.read_text(),
        certificate=pair.certificate.read_text(),
        key=pair.key.read_text(),
    )
    for _ in range(2):
        assert len(config.tls_context().get_ca_certs()) == 1


def test_verification_is_left_out_only_on_demand() -> None:
    config = ClientConfig("https://api.test")
    assert config.tls_context().verify_mode is ssl.CERT_REQUIRED
    assert msgspec.structs.replace(config, verify=False).tls_context().verify_mode is ssl.CERT_NONE


def test_secrets_are_not_shown() -> None:
    config = ClientConfig("https://api.test", authorization="Bearer secret", key="secret")
    assert "secret" not in f"{config} {config!r}"


def test_a_kubeconfig_is_read_in_a_process_of_its_own(tmp_path: Path, authority: Authority) -> None:
    file = kubeconfig(tmp_path / "config", "https://api.test:6443", authority, authority.issue("me"))
    config = client_config_source(file)()
    assert (config.server, config.headers()) == ("https://api.test:6443", {})
    assert isinstance(config.tls_context(), ssl.SSLContext)


def test_a_plug_in_that_never_ends_is_killed_and_named(tmp_path: Path, authority: Authority) -> None:
    file = kubeconfig(tmp_path / "config", "https://api.test", authority, authority.issue("me"))
    document = json.loads(file.read_text())
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["600"]}
    document["users"][0]["user"] = {"exec": command}
    file.write_text(json.dumps(document))
    with pytest.raises(ClientConfigError, match=r"config: no credentials after 2 s; run its exec plug-in by hand"):
        from_kubeconfig([file], timeout=2)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"current-context": "a", "contexts": []}'])
def test_what_is_no_kubeconfig_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ClientConfigError, match=r"kubeconfig .*config: .*; name a file of kind Config"):
        from_kubeconfig([tmp_path / "config"])


def test_a_server_without_tls_is_refused(tmp_path: Path, authority: Authority) -> None:
    file = kubeconfig(tmp_path / "config", "http://api.test", authority, authority.issue("me"))
    document = json.loads(file.read_text())
    document["users"][0]["user"] = {"token": "secret"}
    file.write_text(json.dumps(document))
    with pytest.raises(ClientConfigError, match="is not https") as caught:
        from_kubeconfig([file])
    assert "secret" not in str(caught.value)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home of a user without any configuration, outside a cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def written(file: Path, name: str, **more: object) -> Path:
    """A kubeconfig with one context, cluster and user of this name."""
    entries = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.test"}}],
        "users": [{"name": name, "user": {"tokenFile": "token"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    file.parent.mkdir(exist_ok=True)
    (file.parent / "token").write_text(f"of-{file.parent.name}")
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **entries, **more}))
    return file


def test_a_command_finds_its_cluster_as_kubectl_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The named file, else those that the variable lists, else the file of the home."""
    usual = written(home / ".kube" / "config", "usual", **{"current-context": "usual"})
    listed = written(home / "listed", "listed", **{"current-context": "listed"})
    assert sought_config_source(None)().server == "https://usual.test"
    monkeypatch.setenv("KUBECONFIG", str(listed))
    assert sought_config_source(None)().server == "https://listed.test"
    assert sought_config_source(usual)().server == "https://usual.test"


def test_of_several_files_the_first_that_says_something_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are merged as kubectl merges them: a missing file is none, relative names are of a file's own folder."""
    first = written(home / "a" / "config", "shop")
    second = written(home / "b" / "config", "shop", **{"current-context": "shop"})
    third = written(home / "c" / "config", "bank", **{"current-context": "bank"})
    files = [home / "missing", first, second, third]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert sought_config_source(None)().headers() == {"Authorization": "Bearer of-a"}
    chosen = sought_config_source(None, "bank")()
    assert (chosen.server, chosen.headers()) == ("https://bank.test", {"Authorization": "Bearer of-c"})


def test_a_context_that_is_not_there_is_told_with_those_that_are(home: Path) -> None:
    file = written(home / ".kube" / "config", "shop")
    with pytest.raises(ClientConfigError, match=r"no context 'shp'; --context .* take one of shop$"):
        sought_config_source(file, "shp")()
    with pytest.raises(ClientConfigError, match=r"no current-context is set; --context .* take one of shop$"):
        sought_config_source(None)()


def test_without_any_configuration_it_is_said_what_was_looked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ClientConfigError,
        match=r"KUBECONFIG is not set, .*/\.kube/config is not there, this is no pod .*; name a file by --kubeconfig",
    ):
        sought_config_source(None)
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with pytest.raises(ClientConfigError, match="KUBECONFIG=/nowhere names no file"):
        sought_config_source(None)
