"""Kubeconfig files as the official loader reads them: certificates, tokens, plug-ins, proxies, and its sentences."""

from __future__ import annotations

import base64
import errno
import json
import stat
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader

from forecaster.kube.config import ClientConfig, ClientConfigError, from_kubeconfig
from forecaster.kube.load import load, main
from tests.support.control_plane.authority import Authority, kubeconfig

EXPIRES = "2030-01-01T00:00:00Z"


class Kubeconfig:
    """One cluster and one user, written to a file as they are changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder / "pki", "test-ca")
        self.pair = self.authority.issue("me")
        self.file = kubeconfig(folder / "config", "https://api.test:6443", self.authority, self.pair)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def change(self, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> None:
        document = json.loads(self.file.read_text())
        document["clusters"][0]["cluster"].update(cluster or {})
        document["users"][0]["user"] = document["users"][0]["user"] if user is None else user
        self.file.write_text(json.dumps(document))

    def load(self) -> ClientConfig:
        return load([self.file], self.temporary)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubeconfig:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return Kubeconfig(tmp_path)


def plug_in(folder: Path, program: str, **more: Any) -> dict[str, Any]:
    """A user with an exec plug-in that runs this program."""
    file = folder / "plug-in"
    file.write_text(f"#!{sys.executable}\n{textwrap.dedent(program)}")
    file.chmod(stat.S_IRWXU)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(file), **more}}


def credential(**status: str) -> str:
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})


def test_files_stay_files_and_data_becomes_text(written: Kubeconfig) -> None:
    config = written.load()
    assert config.server == "https://api.test:6443"
    assert config.ca == written.authority.certificate.read_text()
    assert (config.certificate_file, config.key_file) == (str(written.pair.certificate), str(written.pair.key))
    assert config.certificate == config.key == config.ca_file == ""


def test_certificates_inside_the_file_are_text(written: Kubeconfig) -> None:
    certificate, key = written.pair.certificate.read_bytes(), written.pair.key.read_bytes()
    written.change(
        user={
            "client-certificate-data": base64.b64encode(certificate).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
    )
    config = written.load()
    assert (config.certificate, config.key) == (certificate.decode(), key.decode())
    for platform in ("linux", "darwin"):
        with patch("sys.platform", platform):
            config.tls_context()


def test_files_are_named_from_the_folder_of_the_kubeconfig(written: Kubeconfig) -> None:
    (written.folder / "token").write_text("from a file\n".replace(" ", "-"))
    written.change(user={"tokenFile": "token"})
    assert written.load().headers() == {"Authorization": "Bearer from-a-file"}


def test_a_token_in_the_file(written: Kubeconfig) -> None:
    written.change(user={"token": "mine"})
    assert written.load().authorization == "Bearer mine"


def test_a_plug_in_gives_a_token_until_it_expires(written: Kubeconfig) -> None:
    answer = credential(token="from-the-cloud", expirationTimestamp=EXPIRES)
    written.change(user=plug_in(written.folder, f"print({answer!r})"))
    config = written.load()
    assert config.authorization == "Bearer from-the-cloud"
    assert config.expires == datetime(2030, 1, 1, tzinfo=UTC).timestamp()


def test_a_plug_in_is_told_its_arguments_and_variables(written: Kubeconfig) -> None:
    program = f"""
        import os, sys
        print({credential(token="TOKEN")!r}.replace("TOKEN", sys.argv[1] + os.environ["REGION"]))
    """
    user = plug_in(written.folder, program, args=["north"], env=[{"name": "REGION", "value": "-1"}])
    written.change(user=user)
    assert written.load().authorization == "Bearer north-1"


def test_a_plug_in_may_give_a_certificate(written: Kubeconfig) -> None:
    certificate, key = written.pair.certificate.read_text(), written.pair.key.read_text()
    answer = credential(clientCertificateData=certificate, clientKeyData=key)
    written.change(user=plug_in(written.folder, f"print({answer!r})"))
    config = written.load()
    assert (config.certificate, config.key) == (certificate, key)


def test_an_auth_provider_gives_its_token(written: Kubeconfig) -> None:
    part = base64.urlsafe_b64encode(json.dumps({"exp": 4_000_000_000}).encode()).decode().rstrip("=")
    token = f"e30.{part}.c2ln"
    written.change(user={"auth-provider": {"name": "oidc", "config": {"id-token": token}}})
    assert written.load().authorization == f"Bearer {token}"


def test_a_plug_in_that_fails_is_told_in_its_words(written: Kubeconfig) -> None:
    written.change(user=plug_in(written.folder, "import sys; sys.exit('log in first')"))
    with pytest.raises(
        ClientConfigError, match=r"config: exec: process returned 1\. log in first its user gives no token"
    ):
        from_kubeconfig([written.file])


def test_what_is_loaded_is_printed_whole(written: Kubeconfig, capfd: pytest.CaptureFixture[str]) -> None:
    written.change(user={"token": "mine"})
    assert main(["", str(written.file)]) == 0
    assert msgspec.json.decode(capfd.readouterr().out, type=ClientConfig).authorization == "Bearer mine"


def test_the_proxy_of_the_environment(written: Kubeconfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    assert written.load().proxy == "http://proxy.test:3128"


@pytest.mark.parametrize("bypassed", ["api.test", ".test", "*"])
def test_a_server_that_is_reached_without_it(
    written: Kubeconfig, monkeypatch: pytest.MonkeyPatch, bypassed: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", f"other.net,{bypassed}")
    assert written.load().proxy == ""


def test_the_proxy_of_the_cluster_comes_first(written: Kubeconfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    written.change(cluster={"proxy-url": "http://own.test:3128"})
    assert written.load().proxy == "http://own.test:3128"


def test_what_the_cluster_says_of_tls(written: Kubeconfig) -> None:
    written.change(cluster={"tls-server-name": "api.internal", "insecure-skip-tls-verify": True})
    config = written.load()
    assert (config.tls_server_name, config.verify) == ("api.internal", False)


@pytest.mark.parametrize(
    "user",
    [{}, {"token": ""}, {"client-certificate": "missing.crt", "client-key": "missing.key"}],
    ids=["empty", "empty token", "missing file"],
)
def test_a_user_without_credentials_is_an_error(written: Kubeconfig, user: dict[str, Any]) -> None:
    written.change(user=user)
    with pytest.raises(ClientConfigError, match=r"no token and no certificate|does not exist: .*missing\.crt"):
        written.load()


def test_a_full_disk_leaves_the_file_of_a_refreshed_token_as_it_is(
    written: Kubeconfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written.file.read_text()

    def full(file: Path, _text: str, encoding: str) -> None:
        file.open("w", encoding=encoding).close()
        raise OSError(errno.ENOSPC, "No space left on device")

    def refreshed(loader: Any, _configuration: object) -> None:
        loader._user.value["token"] = "newer"  # noqa: SLF001  as the library does it itself
        loader._config_persister()  # noqa: SLF001
        raise ConfigException("enough")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        patched.setattr(KubeConfigLoader, "load_and_set", refreshed)
        with pytest.raises(ClientConfigError):
            written.load()
    assert written.file.read_text() == before
    assert {file.name for file in written.folder.iterdir() if "part" in file.name} == set()


def test_a_key_at_the_wrong_place_is_not_shown(written: Kubeconfig) -> None:
    document = json.loads(written.file.read_text())
    document["users"] = [{"name": "test", "token": "secret"}]
    written.file.write_text(json.dumps(document))
    with pytest.raises(ClientConfigError) as caught:
        written.load()
    assert "secret" not in str(caught.value)
