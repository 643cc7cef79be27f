"""A PostgreSQL server of our own, on a socket in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKET = ".s.PGSQL.5432"
SETTINGS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=20")


def binaries() -> Path | None:
    """Folder of `initdb` and `pg_ctl`: POSTGRES_BIN, Debian's place (newest version), or the search path."""
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    places = [Path(os.environ.get("POSTGRES_BIN", "")), *sorted(versions, key=_version, reverse=True)]
    on_path = shutil.which("initdb")
    places += [Path(on_path).parent] if on_path else []
    return next((place for place in places if (place / "initdb").exists()), None)


def user() -> str | None:
    """User that may run it: PostgreSQL refuses root, so root lends it to `postgres`; None if there is no such user."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else None


@contextmanager
def server(place: Path, owner: str, *settings: str) -> Iterator[str]:
    """A running server; gives the address of its first database and stops it in the end. `settings` go over ours."""
    with tempfile.TemporaryDirectory(prefix="pg-") as directory:
        shutil.chown(directory, owner)
        data = Path(directory) / "data"
        _run(owner, place / "initdb", "-D", data, "-U", owner, "-A", "trust", "-N", "--locale=C.UTF-8")
        options = " ".join(
            f"-c {setting}" for setting in (*SETTINGS, *settings, f"unix_socket_directories={directory}")
        )
        _run(
            owner,
            place / "pg_ctl",
            "-D",
            data,
            "-l",
            Path(directory) / "log",
            "-o",
            options,
            "-w",
            "-t",
            "300",
            "start",
        )
        try:
            yield f"postgresql+psycopg://{owner}@/postgres?host={directory}"
        finally:
            _run(owner, place / "pg_ctl", "-D", data, "-m", "immediate", "-w", "-t", "300", "stop")


def stop(place: Path, owner: str, address: str) -> None:
    """Stop the server as a lost node does: nothing is finished, and uncommitted changes are gone."""
    _run(owner, place / "pg_ctl", "-D", _data(address), "-m", "immediate", "-w", "-t", "300", "stop")


def restart(place: Path, owner: str, address: str) -> None:
    """Restart the server, stopped or running; its old connections are dead."""
    _run(owner, place / "pg_ctl", "-D", _data(address), "-m", "immediate", "-w", "-t", "300", "restart")


def processes(address: str) -> list[int]:
    """Ids of the processes of a running server, its first process first."""
    (first, *_) = (_data(address) / "postmaster.pid").read_text().split()
    tasks = Path("/proc", first, "task").iterdir()
    return [int(first), *(int(child) for task in tasks for child in (task / "children").read_text().split())]


def _data(address: str) -> Path:
    return Path(str(make_url(address).query["host"])) / "data"


def _run(owner: str, *command: str | Path) -> None:
    subprocess.run(
        [str(part) for part in command],
        check=True,
        cwd="/",
        user=owner if os.getuid() == 0 else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _version(place: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in place.parent.name.split(".") if part.isdigit())


@contextmanager
def byte_by_byte(address: str, drips: threading.Event) -> Iterator[str]:
    """Address of a way to a server on which answers come a byte at a time while `drips` is set."""
    there = str(make_url(address).query["host"])
    with tempfile.TemporaryDirectory(prefix="pg-") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/{SOCKET}")
        listener.listen()
        threading.Thread(target=_accept, args=(listener, f"{there}/{SOCKET}", drips), daemon=True).start()
        yield address.replace(there, folder)
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, there: str, drips: threading.Event) -> None:
    with suppress(OSError):
        while True:
            client, server = listener.accept()[0], socket.socket(socket.AF_UNIX)
            server.connect(there)
            threading.Thread(target=_pass_on, args=(client, server, threading.Event()), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client, drips), daemon=True).start()


def _pass_on(giver: socket.socket, taker: socket.socket, drips: threading.Event) -> None:
    with suppress(OSError), taker:
        while data := giver.recv(1 << 16):
            while data and drips.is_set():
                taker.sendall(data[:1])
                data = data[1:]
                time.sleep(0.2)
            taker.sendall(data)
