"""The scaler's process: `python -m forecaster.serving.keda --table PATH --address HOST:PORT [certificates]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import grpc
import grpc.aio
import uvloop

from forecaster.publish.reader import TableReader, watching
from forecaster.serving.audit import Audit
from forecaster.serving.keda.service import ScalerService, TriggerValues
from forecaster.serving.options import Address, address_argument

SCALER_GRACE_SECONDS = 2.0
"""Time for calls in progress when the process is stopped; streams end at once."""
CHANNEL_LIMITS = (
    ("grpc.max_receive_message_length", 64 * 1024),  # a trigger's metadata is some hundred bytes
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 20_000),  # KEDA keeps one connection and a stream for each push trigger
    ("grpc.server.max_pending_requests", 20_000),  # beyond 1,000, when KEDA comes back, a share would be cancelled
    ("grpc.server.max_pending_requests_hard_limit", 40_000),
    ("grpc.server_handshake_timeout_ms", 5_000),  # half-open connections
    ("grpc.keepalive_time_ms", 30_000),  # streams are silent for hours
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.so_reuseport", 0),  # a second server on this port is a mistake, not a helper
)


async def serve(
    reader: TableReader,
    service: ScalerService,
    address: Address,
    credentials: grpc.ServerCredentials | None,
    stopped: Callable[[], Awaitable[object]],
) -> None:
    """Answer until `stopped` is over. Raises RuntimeError where nothing can listen there."""
    server = grpc.aio.server(handlers=[service.handlers()], options=CHANNEL_LIMITS)
    if credentials is None:
        server.add_insecure_port(str(address))
    else:
        server.add_secure_port(str(address), credentials)
    async with watching(reader):
        await server.start()
        await stopped()
        await server.stop(SCALER_GRACE_SECONDS)


class CertificateFiles(NamedTuple):
    """PEM files: our chain, its key, and the authorities of clients. Without the last, any client may connect."""

    certificate: Path
    key: Path
    client_ca: Path | None


class ScalerCertificates:
    """The loaded certificates, and whether the files have changed since."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files, self._audit = files, Audit()
        self._stamp = self._stamp_now()
        self._loaded = _read(files)

    def credentials(self) -> grpc.ServerCredentials:
        """TLS for a server; each handshake asks whether the files have changed.

        Raises:
            OSError: a file cannot be read.
            ssl.SSLError: certificate and key do not belong together, or a file is no PEM.
        """
        demanded = self._files.client_ca is not None
        return grpc.dynamic_ssl_server_credentials(self._loaded, self.latest, require_client_authentication=demanded)

    def latest(self) -> grpc.ServerCertificateConfiguration:
        """The configuration of the files; the last good one while they are being replaced."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._loaded, self._stamp = _read(self._files), stamp
        except OSError as error:  # TLS errors, too; after half of a rotation the next handshake looks again
            self._audit.note("certificate_not_used", why=f"KEDA's scaler: {error.strerror or error}")
        return self._loaded

    def _stamp_now(self) -> tuple[tuple[int, int], ...]:
        return tuple((status.st_ino, status.st_mtime_ns) for status in (path.stat() for path in self._files if path))


def _read(files: CertificateFiles) -> grpc.ServerCertificateConfiguration:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)  # refuses a key of another certificate
    if files.client_ca is not None:
        context.load_verify_locations(files.client_ca)
    authorities = None if files.client_ca is None else files.client_ca.read_bytes()
    pair = files.key.read_bytes(), files.certificate.read_bytes()
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=authorities)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped; the exit code is 1 if that cannot even begin."""
    options = _parser().parse_args(arguments)
    limit = None if options.stale_after is None else timedelta(seconds=options.stale_after)
    reader = TableReader(options.table, stale_after=limit)
    service = ScalerService(TriggerValues(reader), options.client_name)
    try:
        files = _files(options)
        credentials = None if files is None else ScalerCertificates(files).credentials()
        uvloop.run(serve(reader, service, options.address, credentials, lambda: _stopped(options.with_parent)))
    except (OSError, RuntimeError, ssl.SSLError) as error:
        sys.stderr.write(f"forecaster keda: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m forecaster.serving.keda", description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="file that the computing process publishes")
    parser.add_argument("--address", type=address_argument, required=True, help="HOST:PORT to listen on")
    parser.add_argument("--certificate", type=Path, help="PEM file with our chain; without it, plaintext")
    parser.add_argument("--key", type=Path, help="PEM file with its key")
    parser.add_argument("--client-ca", type=Path, help="PEM file of the authorities that sign clients")
    parser.add_argument("--client-name", action="append", default=[], help="common name of an allowed client; repeated")
    parser.add_argument("--stale-after", type=float, metavar="SECONDS", help="default: three intervals of the table")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input ends")
    return parser


def _files(options: argparse.Namespace) -> CertificateFiles | None:
    if options.certificate is None:
        return None
    if options.key is None:
        raise OSError("a certificate needs its key: add --key")
    return CertificateFiles(options.certificate, options.key, options.client_ca)


async def _stopped(with_parent: bool) -> None:  # noqa: FBT001  a flag of the command line
    """Until SIGTERM or SIGINT, or the end of standard input: the parent holds its other end, however it dies."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if with_parent:
        loop.add_reader(0, lambda: None if os.read(0, 1) else stop.set())
    await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
