"""Facts of single workloads over a local socket, to the processes that explain and replay them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forecaster.cycle.workload_facts import WorkloadFacts
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError, unexpected
from forecaster.serving.options import FACTS_SECONDS_MAX

if TYPE_CHECKING:
    from forecaster.app.telemetry import Log
    from forecaster.serving.settings import ServingSettings

SOCKET = "facts.socket"
"""Socket in the state directory: an account that may read the history there may ask here."""
MAX_PATH = 100
"""Longest path of a socket; the system limits it a little above."""
MAX_QUESTION_BYTES = 4096
"""Bytes of a question: three names."""


_question = msgspec.json.Decoder(WorkloadId)  # made here: threads that each make one at once may end the process


class FactsServer:
    """Server that answers one question per connection, one after the other, in a thread that only passes answers on.

    A question is a namespace, a kind and a name as JSON; the answer is `WorkloadFacts` as msgpack from `known`, empty
    where there is no such workload. An error in `known` is logged and costs that answer only.
    """

    def __init__(
        self, known: Callable[[WorkloadId], bytes], directory: Path, failed: Callable[[str], None] = lambda _: None
    ) -> None:
        self._known, self._failed = known, failed
        self.path = directory / SOCKET
        self._listener: socket.socket | None = None

    def start(self) -> None:
        """Listen.

        Raises:
            StoreError: the path is too long for a socket, or cannot be written.
        """
        if len(os.fsencode(self.path)) > MAX_PATH:
            raise StoreError(f"{self.path}: longer than {MAX_PATH} bytes, which no socket may be")
        listener = self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path.unlink(missing_ok=True)
            listener.bind(str(self.path))
            self.path.chmod(0o600)
            listener.listen(4)
        except OSError as error:
            listener.close()
            raise StoreError(f"{self.path}: {error.strerror}") from error
        threading.Thread(target=self._serve, args=[listener], name="facts", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        if self._listener is not None:
            with self._listener, suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):  # the file system may have become read-only
                self.path.unlink()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                asking, _ = listener.accept()
            except OSError:
                return  # it was closed
            with asking, suppress(OSError, UnicodeDecodeError, msgspec.MsgspecError):  # gone, or no question
                asking.settimeout(FACTS_SECONDS_MAX)
                asking.sendall(self._answer(asking.makefile("rb").readline(MAX_QUESTION_BYTES)))

    def _answer(self, question: bytes) -> bytes:
        id_ = _question.decode(question)
        try:
            return self._known(id_)
        except Exception as error:  # noqa: BLE001  the boundary of a question: those after it are answered
            self._failed(f"{id_}: {unexpected(error)}")
            return b""


def tell_facts(
    serving: ServingSettings, known: Callable[[WorkloadId], bytes], directory: Path, log: Log, parts: ExitStack
) -> None:
    """Start the server of facts where there is a serving process; `parts` stops it.

    A failure to start is a line in the log: everything else continues.
    """
    if not serving.enabled:
        return
    facts = FactsServer(known, directory, lambda fault: log.warning("what_if_failed", error=fault))
    try:
        facts.start()
    except StoreError as error:
        log.warning("what_if_not_offered", error=str(error))
        return
    parts.callback(facts.close)


def requested_facts(path: str, id_: WorkloadId) -> WorkloadFacts | None:
    """Ask the computing process for the facts of a workload; None where it has none of that name.

    Raises:
        OSError: it does not answer.
    """
    from forecaster.serving.workloads import encoded_facts_of  # noqa: PLC0415  only the replaying process asks

    answer = encoded_facts_of(path, id_)
    return msgspec.msgpack.decode(answer, type=WorkloadFacts) if answer else None
