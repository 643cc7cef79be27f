"""Arguments of the serving process: addresses, and its options as one JSON argument."""

from __future__ import annotations

import argparse
import socket
from typing import NamedTuple

import msgspec

from forecaster.errors import StoreError

BACKLOG = 2048
PORT_MAX = 65535
WRITTEN, NOT_WRITTEN = b"w", b"f"
"""Messages of the computing process about each table, over the standard input of the serving one."""
FACTS_SECONDS_MAX = 2.0
"""Seconds for a question to the computing process about a workload, and its answer."""
LEADS, FOLLOWS = b"l", b"s"
"""State of a replica among others: whether it computes, or copies what another one has computed."""


class Address(NamedTuple):
    """Host and port; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `[IPV6]:PORT`, or `:PORT` for every interface.

    Raises:
        ValueError: it is something else.

    >>> parse_address("[::1]:8080")
    Address(host='::1', port=8080)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        raise ValueError(f"{text!r} is not HOST:PORT with a port from 0 to {PORT_MAX}")
    return Address(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104  stated as the meaning of ":PORT"


def address_argument(text: str) -> Address:
    """`parse_address` as the type of an argument, so that its error is shown."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def listen(address: Address, stated: str) -> socket.socket:
    """A listening socket; `stated` is the setting or option that names its port.

    Raises StoreError: the address is taken, not ours or not allowed; the text names it and the remedy.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        raise StoreError(f"cannot listen on {address}: {why}; state another port by {stated}") from error


class UpstreamOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The adapter that had the group of external metrics before us."""

    host: str
    port: int
    ca_file: str
    token_file: str


class SecureOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The listener with TLS, authentication and authorisation."""

    certificate: str
    key: str
    kubeconfig: str = ""
    """Empty: the pod's own service account."""
    service: str = ""
    """`namespace/name` of our Service, which identifies the owner of an API group."""
    upstream: UpstreamOptions | None = None
    lease: str = ""
    """`namespace/name` of the Lease by which one replica writes; empty where nothing is written."""
    certified_reviews: bool = False


class ServingOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Options of the serving process besides the table and the sockets."""

    stale_after_seconds: float | None = None
    """None: three intervals of the table."""
    secure: SecureOptions | None = None
    dashboard: bool = True
    replicas: bool = False
    """Whether other replicas may copy the served files."""
    report: str = ""
    """File of the newest weekly report; empty where none is shown."""
    zone: str = "UTC"
    countries: tuple[str, ...] = ()
    """Countries whose public holidays are marked, by the days of that zone."""
    new_pods: str = ""
    """The file with the sizes of new pods; empty where they get none."""
    facts: str = ""
    """Socket for facts of workloads from the computing process; empty where there is none."""
