"""The scaler as `forecaster run` keeps it."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
import pytest

from forecaster.app.child import scaler_process
from forecaster.errors import StoreError
from forecaster.serving.settings import KedaSettings
from tests.support.control_plane.authority import Authority
from tests.support.keda import ask, reference
from tests.support.ports import free_ports
from tests.support.tables import publish
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


def test_it_answers_as_its_options_say_and_stops(tmp_path: Path) -> None:
    table = publish(tmp_path / "table", at=datetime.now(UTC), mode="publish")
    authority, (port,) = Authority(tmp_path / "pki", "ca"), free_ports(1)
    server, client = authority.issue("server", "localhost"), authority.issue("client", common_name="keda-operator")
    keda = KedaSettings(
        host="127.0.0.1",
        port=port,
        certificate_file=server.certificate,
        key_file=server.key,
        client_ca_file=authority.certificate,
        client_names=("keda-operator",),
    )
    scaler = scaler_process(table, keda, timedelta(minutes=5))
    scaler.start()
    credentials = grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(), client.key.read_bytes(), client.certificate.read_bytes()
    )
    with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
        grpc.channel_ready_future(channel).result(timeout=PATIENCE)
        assert ask(channel, "IsActive", reference()).result
    scaler.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_taken_address_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(StoreError, match=r"cannot listen on .*state another port by keda.port"),
    ):
        scaler_process(tmp_path / "table", KedaSettings(host="127.0.0.1", port=taken.getsockname()[1]))
