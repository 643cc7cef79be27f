"""The serving process: `python -m forecaster.serving --table PATH (--address HOST:PORT | --fd N) [...]`."""

from __future__ import annotations

import argparse
import gc
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError
from forecaster.kube.config import ClientConfigError
from forecaster.publish.reader import now
from forecaster.serving.app import assemble
from forecaster.serving.metrics import ParentState
from forecaster.serving.options import Address, ServingOptions, address_argument, listen

if TYPE_CHECKING:
    import uvicorn

SWITCH_SECONDS = 0.0005
"""Longest time for which a thread that loads a table or reviews rights delays requests; Python's default is ten times
as long."""


def main(arguments: Sequence[str] | None = None, *, clock: Callable[[], datetime] = now) -> int:
    """Serve until stopped; the exit code is 1 if that cannot even begin."""
    given = _parser().parse_args(arguments)
    try:
        plain = _socket(given.fd, given.address)
        secure = _socket(given.secure_fd, given.secure_address) if given.options.secure else None
        parent = ParentState()
        server = assemble(given.table, given.options, plain, secure, parent, clock)
    except (OSError, ClientConfigError, StoreError) as error:
        sys.stderr.write(f"forecaster serving: {error}\n")
        return 1
    _allow_descriptors()
    _collect_seldom()
    sys.setswitchinterval(SWITCH_SECONDS)
    if given.with_parent:
        threading.Thread(target=_follow_parent, args=[server, parent], daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m forecaster.serving", description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="file that the computing process publishes")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--address", type=address_argument, help="HOST:PORT to listen on")
    where.add_argument("--fd", type=int, help="descriptor of a socket that listens already")
    secured = parser.add_mutually_exclusive_group()
    secured.add_argument(
        "--secure-address", type=address_argument, help="the same for TLS, where the options ask for it"
    )
    secured.add_argument("--secure-fd", type=int)
    parser.add_argument("--options", type=_options, default=ServingOptions(), metavar="JSON", help="see options.py")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input ends")
    return parser


def _options(text: str) -> ServingOptions:
    try:
        return msgspec.json.decode(text, type=ServingOptions)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _socket(descriptor: int | None, address: Address | None) -> socket.socket:
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    return listen(address or Address("0.0.0.0", 6443), "--address")  # noqa: S104  as the Go servers of this kind do


def _allow_descriptors() -> None:
    """Raise the limit of descriptors: each silent connection takes one, and must not exhaust those of others."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _collect_seldom() -> None:
    """Collect garbage seldom: requests leave no cycles, and a collection delays an answer by 10 ms."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _follow_parent(server: uvicorn.Server, parent: ParentState) -> None:
    """The parent writes a byte for each table; however it dies, the pipe ends and this process follows."""
    while byte := os.read(0, 1):
        parent.receive(byte)
    server.should_exit = True


if __name__ == "__main__":
    sys.exit(main())
