"""Free ports of this machine."""

from __future__ import annotations

import random
import socket
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOWEST = 15_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all different, and none that this process was given before.

    The program that gets such a port binds it some seconds later. They lie below those that the system itself gives
    to outgoing connections and to servers on port 0, and begin anywhere, so that nobody takes one meanwhile.
    """
    ports = list(islice(_free(), count))
    assert len(ports) == count, "this machine has no free ports left"
    return ports


def _free() -> Iterator[int]:
    candidates = range(LOWEST, max(_lowest_ephemeral(), LOWEST + 1000))
    for port in random.SystemRandom().sample(candidates, len(candidates)):
        if port not in _given and _is_free(port):
            _given.add(port)
            yield port


def _lowest_ephemeral() -> int:
    try:
        return int(EPHEMERAL.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 32_768  # Linux's own default


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
