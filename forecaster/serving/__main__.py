"""The serving process: `python -m forecaster.serving --table PATH (--address HOST:PORT | --fd N)`."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from forecaster.serving.address import Address, listen, parse_address
from forecaster.serving.app import create_app
from forecaster.serving.reader import TableReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.applications import Starlette

GRACE_SECONDS = 5
"""Requests that are being answered get this long when the process is asked to stop."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code is 1 if that cannot even begin."""
    options = _parser().parse_args(arguments)
    try:
        listener = socket.socket(fileno=options.fd) if options.fd is not None else listen(options.address)
    except OSError as error:
        sys.stderr.write(f"forecaster serving: {error}\n")
        return 1
    server = uvicorn.Server(_config(_app(options.table, options.stale_after)))
    if options.with_parent:
        threading.Thread(target=_stop_at_end_of_stdin, args=[server], daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m forecaster.serving", description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="file that the computing process publishes")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--address", type=_address, help="HOST:PORT to listen on")
    where.add_argument("--fd", type=int, help="descriptor of a socket that listens already")
    parser.add_argument("--stale-after", type=float, metavar="SECONDS", help="default: three intervals of the table")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input ends")
    return parser


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _app(table: Path, stale_after: float | None) -> Starlette:
    limit = None if stale_after is None else timedelta(seconds=stale_after)
    return create_app(TableReader(table), clock=lambda: datetime.now(UTC), stale_after=limit)


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        loop="uvloop",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _stop_at_end_of_stdin(server: uvicorn.Server) -> None:
    """The parent holds the other end: however it dies, the pipe ends and this process follows."""
    while os.read(0, 1):
        pass
    server.should_exit = True


if __name__ == "__main__":
    sys.exit(main())
