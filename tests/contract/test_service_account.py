"""A pod's own account is found here without the official package; both find the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes.client import Configuration
from kubernetes.config.incluster_config import SERVICE_CERT_FILENAME, SERVICE_TOKEN_FILENAME, InClusterConfigLoader

from forecaster.kube.config import ACCOUNT, in_cluster

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1", "api.internal"])
def test_the_official_loader_reads_the_same_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("mine")
    ca.write_text("PEM")
    official = Configuration()
    InClusterConfigLoader(str(token), str(ca), environ=environment).load_and_set(official)
    loaded = in_cluster(tmp_path)
    assert (loaded.server, loaded.ca_file) == (official.host, official.ssl_ca_cert)
    assert loaded.headers()["Authorization"].lower() == official.api_key["BearerToken"]


def test_the_files_are_where_the_official_loader_looks() -> None:
    assert (str(ACCOUNT / "token"), str(ACCOUNT / "ca.crt")) == (SERVICE_TOKEN_FILENAME, SERVICE_CERT_FILENAME)
