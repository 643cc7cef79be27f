"""Child processes of the computing one: the serving process and KEDA's scaler, started again whenever they end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError
from forecaster.serving.options import Address, ServingOptions, listen

if TYPE_CHECKING:
    import socket

    from forecaster.serving.settings import KedaSettings

BACKOFF_SECONDS = (0.2, 1.0, 5.0, 30.0)
"""Waits before the first, second, ... restart; the last one repeats."""
SERVING = (sys.executable, "-m", "forecaster.serving")
"""The serving process, before its options."""
NOT_STARTED = os.EX_OSERR
"""Exit code reported for a child that the system could not start."""
HEALTHY_SECONDS = 60.0
"""Time alive after which the next death counts as the first again."""


@dataclass(frozen=True, slots=True)
class ChildExit:
    """The child ended without being asked to."""

    code: int
    restart_in_seconds: float


class SupervisedChild:
    """Runs `command` with the descriptors it inherits.

    The child ends with this process, however this process ends: it reads a pipe of which we hold the other end.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        descriptors: Sequence[int] = (),
        on_death: Callable[[ChildExit], None] = lambda _death: None,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._descriptors = tuple(descriptors)
        self._on_death = on_death
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """The present child."""
        return None if self._child is None else self._child.pid

    def start(self) -> None:
        """Start the first child."""
        self._child = self._spawn()
        self._keeper = threading.Thread(target=self._keep, args=[self._child], name=self._name, daemon=True)
        self._keeper.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Let the child finish its requests; after `timeout` seconds kill it."""
        with self._lock:
            self._stopping.set()
            child = self._child
        if child is None or self._keeper is None:
            return
        child.terminate()
        self._keeper.join(timeout)
        child.kill()  # does nothing to one that has ended
        self._keeper.join()

    def tell(self, message: bytes) -> None:
        """Write to the child's standard input; a child that is being replaced, or does not read, gets nothing."""
        with self._lock:
            child = self._child
        if child is None or child.stdin is None:
            return
        with suppress(OSError, ValueError):  # it has ended, and the pipe with it; or the pipe is full
            os.write(child.stdin.fileno(), message)

    def _keep(self, first: subprocess.Popen[bytes]) -> None:
        """Runs in a thread: waits for the end of each child and starts the next."""
        child: subprocess.Popen[bytes] | None = first
        deaths = 0
        while not self._stopping.is_set():
            code, lived = _outlive(child) if child else (NOT_STARTED, 0.0)
            if self._stopping.is_set():
                return
            deaths = 1 if lived > HEALTHY_SECONDS else deaths + 1
            wait = BACKOFF_SECONDS[min(deaths, len(BACKOFF_SECONDS)) - 1]
            self._on_death(ChildExit(code, wait))
            self._stopping.wait(wait)
            child = self._replace()

    def _replace(self) -> subprocess.Popen[bytes] | None:
        """Start the next child; None where none is needed, or the system has no memory or process for it now."""
        with self._lock:
            self._child = None
            if not self._stopping.is_set():
                with suppress(OSError):
                    self._child = self._spawn()
            return self._child

    def _spawn(self) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C reaches only us, and we stop the child in order.
        child = subprocess.Popen(  # noqa: S603  our own interpreter and module
            self._command, stdin=subprocess.PIPE, pass_fds=self._descriptors, start_new_session=True
        )
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
        return child


def _outlive(child: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for the end of a child: its exit code and how long that took."""
    begin = time.monotonic()
    with child:  # closes our end of the pipe as well
        code = child.wait()
    return code, time.monotonic() - begin


class ServingProcess:
    """One child that answers on one socket, or two.

    The sockets are opened here and inherited by every child: while a dead one is replaced, clients wait in their
    queues instead of being refused, and an address that is taken is known before anything starts.
    """

    def __init__(
        self,
        table: Path,
        address: Address,
        *,
        secure_address: Address | None = None,
        options: ServingOptions | None = None,
        on_death: Callable[[ChildExit], None] = lambda _death: None,
        program: Sequence[str] = SERVING,
        port_stated: str = "serving.port",
    ) -> None:
        self._table = table
        self._port_stated = port_stated
        self._program = program
        self.address = address
        """Address of the listener; once started, with the port that the system chose."""
        self.secure_address = secure_address
        """The address of the listener with TLS, where the options ask for it."""
        self._options = options or ServingOptions()
        self._on_death = on_death
        self._sockets: list[socket.socket] = []
        self._kept: SupervisedChild | None = None

    @property
    def pid(self) -> int | None:
        """The present child."""
        return None if self._kept is None else self._kept.pid

    def start(self) -> None:
        """Listen and start the first child.

        Raises:
            StoreError: nothing can listen on that address.
        """
        self.address, plain = self._listen(self.address, self._port_stated)
        descriptors = {"--fd": plain}
        if self.secure_address is not None:
            self.secure_address, descriptors["--secure-fd"] = self._listen(self.secure_address, "serving.secure.port")
        sockets = [text for option, number in descriptors.items() for text in (option, str(number))]
        encoded = msgspec.json.encode(self._options).decode()
        command = [*self._program, "--with-parent", "--table", str(self._table), *sockets, "--options", encoded]
        self._kept = SupervisedChild("serving", command, descriptors=[*descriptors.values()], on_death=self._on_death)
        self._kept.start()

    def tell(self, message: bytes) -> None:
        """Send whether a table was written, which no table can say, or whether this replica computes tables.

        The latter is repeated now and then, since a child may be a new one.
        """
        if self._kept is not None:
            self._kept.tell(message)

    def stop(self, timeout: float = 10.0) -> None:
        """Let the child finish its requests; after `timeout` seconds kill it."""
        if self._kept is None:
            return
        self._kept.stop(timeout)
        self._close()

    def _listen(self, address: Address, stated: str) -> tuple[Address, int]:
        try:
            listener = listen(address, stated)
        except StoreError:
            self._close()
            raise
        self._sockets.append(listener)
        return Address(*listener.getsockname()[:2]), listener.fileno()

    def _close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()


def scaler_process(
    table: Path,
    keda: KedaSettings,
    stale_after: timedelta | None = None,
    *,
    on_death: Callable[[ChildExit], None] = lambda _death: None,
) -> SupervisedChild:
    """The child that answers KEDA, not yet started.

    Raises:
        StoreError: gRPC is not installed, or nothing can listen on the address.
    """
    if find_spec("grpc") is None:
        raise StoreError("keda.enabled: gRPC is not installed; install kube-forecaster with its extra `keda`")
    address = Address(keda.host, keda.port)
    listen(address, "keda.port").close()  # the child opens it again: that it can is found out before the start
    command = [sys.executable, "-m", "forecaster.serving.keda", "--with-parent"]
    command += ["--table", str(table), "--address", str(address), *_scaler_options(keda, stale_after)]
    return SupervisedChild("keda", command, on_death=on_death)


def _scaler_options(keda: KedaSettings, stale_after: timedelta | None) -> list[str]:
    command: list[str] = []
    files = {"--certificate": keda.certificate_file, "--key": keda.key_file, "--client-ca": keda.client_ca_file}
    for option, path in files.items():
        command += [option, str(path)] if path else []
    for name in keda.client_names:
        command += ["--client-name", name]
    if stale_after is not None:
        command += ["--stale-after", str(stale_after.total_seconds())]
    return command
