"""The gRPC server: its limits, its port, and the table it watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import grpc
import grpc.aio

from forecaster.publish.reader import watching

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forecaster.publish.reader import TableReader
    from forecaster.serving.keda.service import ScalerService
    from forecaster.serving.options import Address

GRACE_SECONDS = 2.0
"""Calls that are being answered get this long when the process is asked to stop; streams end at once with it."""

LIMITS = (
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


class Watched(NamedTuple):
    """A table, and who answers from it."""

    reader: TableReader
    service: ScalerService


async def serve(
    watched: Watched,
    address: Address,
    credentials: grpc.ServerCredentials | None,
    stopped: Callable[[], Awaitable[object]],
) -> None:
    """Answer until `stopped` is over.

    Raises:
        RuntimeError: nothing can listen on that address.
    """
    server = grpc.aio.server(handlers=[watched.service.handlers()], options=LIMITS)
    if credentials is None:
        server.add_insecure_port(str(address))
    else:
        server.add_secure_port(str(address), credentials)
    async with watching(watched.reader):
        await server.start()
        await stopped()
        await server.stop(GRACE_SECONDS)
