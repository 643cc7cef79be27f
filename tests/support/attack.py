"""A pod that attacks the secure port, as a process of its own: `python -m tests.support.attack PORT CA KIND`.

Its connections send one request after the other until standard input ends; then it prints how often each status came.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

from tests.support.secure_serving import DEMAND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONNECTIONS = 400
ADDRESS = "127.0.0.2"
"""Address of the attacker; all other clients of a test are at 127.0.0.1."""


def guessed_token(number: int) -> tuple[str, str]:
    """A token that is well-formed and no user's."""
    return DEMAND, f"guess-{number:08d}"


def malformed_token(number: int) -> tuple[str, str]:
    """Headers with a token that no issuer writes."""
    return DEMAND, f'{{"guess": {number}}}'


def invented_namespace(number: int) -> tuple[str, str]:
    """A good token, and a namespace that nothing is known of."""
    return DEMAND.replace("/shop/", f"/invented-{number}/"), "good"


def reconnecting(number: int) -> tuple[str, str]:
    """A guessed token on a connection of its own: each costs a handshake."""
    return DEMAND, f"other-{number:08d}"


KINDS = {attack.__name__: attack for attack in (guessed_token, malformed_token, invented_namespace, reconnecting)}


@contextmanager
def attacked(port: int, ca: Path, kind: str) -> Iterator[Counter[str]]:
    """The attack goes on while the block lasts; the statuses it was answered with are there afterwards."""
    statuses: Counter[str] = Counter()
    command = [sys.executable, "-m", __name__, str(port), str(ca), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()  # it has begun
        yield statuses
        output, _ = attacker.communicate()
        statuses.update(json.loads(output))


async def attack(port: int, ca: str, kind: str) -> None:
    statuses: Counter[str] = Counter()
    numbers = count()
    context = ssl.create_default_context(cafile=ca)
    connections = [asyncio.create_task(_connection(port, context, kind, numbers, statuses)) for _ in range(CONNECTIONS)]
    while sum(statuses.values()) < CONNECTIONS:  # noqa: ASYNC110  counting them is no event
        await asyncio.sleep(0.01)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    for connection in connections:
        connection.cancel()
    sys.stdout.write(json.dumps(statuses))


async def _connection(
    port: int, context: ssl.SSLContext, kind: str, numbers: count[int], statuses: Counter[str]
) -> None:
    """One request after the other; where the connection is closed, on a new one."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("localhost", port, ssl=context, local_addr=(ADDRESS, 0))
            while True:
                path, token = KINDS[kind](next(numbers))
                head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
                writer.write(head.encode())
                answer = await reader.readuntil(b"\r\n\r\n")
                length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                statuses[answer[9:12].decode()] += 1
                if kind == reconnecting.__name__:
                    writer.close()
                    break


if __name__ == "__main__":
    asyncio.run(attack(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
