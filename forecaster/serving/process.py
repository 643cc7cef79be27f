"""ServingProcess: how the computing process starts the serving one, keeps it alive and stops it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError
from forecaster.serving.address import Address, listen
from forecaster.serving.kept import Death, KeptChild
from forecaster.serving.options import Options

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from pathlib import Path


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
        options: Options | None = None,
        on_death: Callable[[Death], None] = lambda _death: None,
    ) -> None:
        self._table = table
        self.address = address
        """Where it answers; once started, with the port that the system chose."""
        self.secure_address = secure_address
        """The same with TLS, where the options ask for it."""
        self._options = options or Options()
        self._on_death = on_death
        self._sockets: list[socket.socket] = []
        self._kept: KeptChild | None = None

    @property
    def pid(self) -> int | None:
        """The present child."""
        return None if self._kept is None else self._kept.pid

    def start(self) -> None:
        """Listen and start the first child.

        Raises:
            StoreError: nothing can listen on that address.
        """
        self.address, plain = self._listen(self.address)
        descriptors = {"--fd": plain}
        if self.secure_address is not None:
            self.secure_address, descriptors["--secure-fd"] = self._listen(self.secure_address)
        command = _command(self._table, descriptors, self._options)
        self._kept = KeptChild("serving", command, descriptors=[*descriptors.values()], on_death=self._on_death)
        self._kept.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Let the child finish its requests; after `timeout` seconds kill it."""
        if self._kept is None:
            return
        self._kept.stop(timeout)
        self._close()

    def _listen(self, address: Address) -> tuple[Address, int]:
        try:
            listener = listen(address)
        except OSError as error:
            self._close()
            raise StoreError(f"serving: {error.strerror}") from error
        self._sockets.append(listener)
        return Address(*listener.getsockname()[:2]), listener.fileno()

    def _close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()


def _command(table: Path, descriptors: Mapping[str, int], options: Options) -> list[str]:
    sockets = [text for option, number in descriptors.items() for text in (option, str(number))]
    told = msgspec.json.encode(options).decode()
    given = ["--with-parent", "--table", str(table), *sockets, "--options", told]
    return [sys.executable, "-m", "forecaster.serving", *given]
