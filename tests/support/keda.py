"""The scaler's process, and KEDA's own client."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

import grpc
import pytest

from forecaster.serving.keda import externalscaler_pb2 as wire
from tests.support.control_plane.binaries import find
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.support.control_plane.authority import Authority, KeyPair

CALLS = {
    "IsActive": (wire.ScaledObjectRef, wire.IsActiveResponse),
    "GetMetricSpec": (wire.ScaledObjectRef, wire.GetMetricSpecResponse),
    "GetMetrics": (wire.GetMetricsRequest, wire.GetMetricsResponse),
}
CPU = {"signal": "cpu", "target": "500m"}


def reference(name: str = "web", namespace: str = "shop", **metadata: str) -> wire.ScaledObjectRef:
    """The trigger of a ScaledObject."""
    return wire.ScaledObjectRef(name=name, namespace=namespace, scalerMetadata=metadata or CPU)


def ask(channel: grpc.Channel, call: str, request: Any) -> Any:
    """One call by Python's client."""
    request_type, answered = CALLS[call]
    method = channel.unary_unary(
        f"/externalscaler.ExternalScaler/{call}", request_type.SerializeToString, answered.FromString
    )
    return method(request, timeout=PATIENCE)


class ScalerProcess:
    """`python -m forecaster.serving.keda` over a table."""

    def __init__(self, table: Path, *options: str) -> None:
        (port,) = free_ports(1)
        self.address = f"localhost:{port}"
        self.log = table.with_name(f"scaler-{port}.log")
        """Standard error of the process."""
        self._command = [sys.executable, "-m", "forecaster.serving.keda", "--table", str(table), "--with-parent"]
        self._command += ["--address", f"127.0.0.1:{port}", *options]

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stderr=log)
        wait_until(self._listens, goal="the scaler")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def channel(self, authority: Authority | None = None, client: KeyPair | None = None) -> grpc.Channel:
        """A client: plaintext without an authority, without a certificate of its own where none is given."""
        if authority is None:
            return grpc.insecure_channel(self.address)
        key, chain = (client.key.read_bytes(), client.certificate.read_bytes()) if client else (None, None)
        return grpc.secure_channel(
            self.address, grpc.ssl_channel_credentials(authority.certificate.read_bytes(), key, chain)
        )

    def _listens(self) -> bool:
        assert self.process.poll() is None, "the scaler ended"
        with socket.socket() as probe:
            host, port = self.address.split(":")
            return probe.connect_ex((host, int(port))) == 0


def keda_client(
    address: str, call: str, *arguments: str, tls: tuple[Authority, KeyPair] | None = None, seconds: int = 60
) -> list[Any]:
    """The answers that KEDA's generated Go client gets; an error is one dictionary with the key `error`."""
    program = find("keda-client")
    if program is None:
        pytest.skip("no keda-client: install Go and run .ci/keda")
    options = ["-address", address]
    if tls:
        authority, client = tls
        options += ["-ca", str(authority.certificate), "-certificate", str(client.certificate), "-key", str(client.key)]
    command = [str(program), *options, "-seconds", str(seconds), call, "shop", "web", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return [json.loads(line) for line in done.stdout.splitlines()]
