"""The gRPC server of the scaler: its limits, its port, its certificates, and the table it watches."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

import grpc
import grpc.aio

from forecaster.publish.reader import watching

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from forecaster.publish.reader import TableReader
    from forecaster.serving.keda.service import ScalerService
    from forecaster.serving.options import Address

SCALER_GRACE_SECONDS = 2.0
"""Calls that are being answered get this long when the process is asked to stop; streams end at once with it."""

CHANNEL_LIMITS = (
    ("grpc.max_receive_message_length", 64 * 1024),  # a trigger's metadata is some hundred bytes
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 20_000),  # KEDA keeps one connection and a stream for each push trigger
    ("grpc.server_handshake_timeout_ms", 5_000),  # half-open connections
    ("grpc.keepalive_time_ms", 30_000),  # streams are silent for hours
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.so_reuseport", 0),  # a second server on this port is a mistake, not a helper
)


class WatchedTable(NamedTuple):
    """A table, and the service that answers from it."""

    reader: TableReader
    service: ScalerService


async def serve(
    watched: WatchedTable,
    address: Address,
    credentials: grpc.ServerCredentials | None,
    stopped: Callable[[], Awaitable[object]],
) -> None:
    """Answer until `stopped` is over.

    Raises:
        RuntimeError: nothing can listen on that address.
    """
    server = grpc.aio.server(handlers=[watched.service.handlers()], options=CHANNEL_LIMITS)
    if credentials is None:
        server.add_insecure_port(str(address))
    else:
        server.add_secure_port(str(address), credentials)
    async with watching(watched.reader):
        await server.start()
        await stopped()
        await server.stop(SCALER_GRACE_SECONDS)


class CertificateFiles(NamedTuple):
    """PEM files: our chain, its key, and the authorities of clients. Without the last, any client may connect."""

    certificate: Path
    key: Path
    client_ca: Path | None


class ScalerCertificates:
    """What is loaded now, and what the files hold since."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._stamp = self._stamp_now()
        self._loaded = _read(files)

    def credentials(self) -> grpc.ServerCredentials:
        """TLS for a server; each handshake asks whether the files have changed.

        Raises:
            OSError: a file cannot be read.
            ssl.SSLError: certificate and key do not belong together, or a file is no PEM.
        """
        demanded = self._files.client_ca is not None
        return grpc.dynamic_ssl_server_credentials(self._loaded, self.newest, require_client_authentication=demanded)

    def newest(self) -> grpc.ServerCertificateConfiguration:
        """The configuration of the files; the last good one while they are being replaced."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._loaded, self._stamp = _read(self._files), stamp
        except (OSError, ssl.SSLError):
            pass  # half of a rotation: the next handshake looks again
        return self._loaded

    def _stamp_now(self) -> tuple[tuple[int, int], ...]:
        found = [path.stat() for path in self._files if path is not None]
        return tuple((status.st_ino, status.st_mtime_ns) for status in found)


def _read(files: CertificateFiles) -> grpc.ServerCertificateConfiguration:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)  # refuses a key of another certificate
    if files.client_ca is not None:
        context.load_verify_locations(files.client_ca)
    authorities = None if files.client_ca is None else files.client_ca.read_bytes()
    pair = files.key.read_bytes(), files.certificate.read_bytes()
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=authorities)
