"""Builds the serving process: which part stands where."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.serving.access.audit import Audit
from forecaster.serving.app import create_app
from forecaster.serving.metrics import ServingMetrics
from forecaster.serving.reader import TableReader
from forecaster.serving.secured import Secured
from forecaster.serving.server import HttpServer

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from forecaster.serving.options import ServingOptions


def assemble(
    table: Path, options: ServingOptions, plain: socket.socket, secure: socket.socket | None = None
) -> HttpServer:
    """The server with all its parts.

    Raises:
        OSError: there is no good serving certificate.
        ClientConfigError: there is no way to the API server.
    """
    reader, audit = TableReader(table), Audit()
    stale_after = None if options.stale_after_seconds is None else timedelta(seconds=options.stale_after_seconds)
    metrics = ServingMetrics(reader, _now, stale_after, audit.denials)
    if options.secure is None or secure is None:
        app = create_app(reader, clock=_now, stale_after=stale_after, metrics=metrics)
        return HttpServer(app, plain, refused=audit.refused)
    secured = Secured(options.secure, audit)
    app = create_app(reader, clock=_now, stale_after=stale_after, metrics=metrics, secured=secured)
    server = HttpServer(app, plain, secure, secured.certificates.current, audit.refused)
    secured.drop_peers = server.drop_peers
    if secured.owners:
        metrics.owners = secured.owners.owners
    return server


def _now() -> datetime:
    return datetime.now(UTC)
