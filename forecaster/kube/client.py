"""ApiClient and AsyncApiClient: requests to one API server, over a bounded number of kept connections.

Credentials, authorities and addresses are rotated while a process runs. What the client uses is read anew every five
minutes, before it expires, and at once when the server refuses it (401) or shows a certificate of another authority.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Self, TypeVar
from weakref import WeakSet

import msgspec
from urllib3.exceptions import ClosedPoolError, HTTPError, ProtocolError, SSLError

from forecaster.errors import ForecasterError
from forecaster.kube.config import ClientConfig, ClientConfigError
from forecaster.kube.connections import BodyTooLargeError, RawAnswer, RawRequest, Session
from forecaster.kube.objects import ApiStatus

T = TypeVar("T")
CLIENT_CONNECTIONS = 4
TIMEOUT_SECONDS = 10.0
ERROR_TEXT_MAX = 300
RENEW_SECONDS = 300.0
"""Seconds between two reads of certificate files, as in client-go. Connections end then: a removed CA loses trust."""
RELOAD_SECONDS = 10.0
"""Between two attempts to get other credentials, however many requests are refused meanwhile."""
EXPIRY_SECONDS = 60.0
"""Seconds before their end at which credentials are renewed."""
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(ForecasterError):
    """The API server refused; `status` is that of HTTP, 0 where there was no answer or none that is understood."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(ApiError):
    """The API server did not answer, or not in time."""


class ApiClient:
    """Requests from any number of threads. The configuration is read at the first one, or by `configured`."""

    def __init__(
        self,
        source: Callable[[], ClientConfig],
        *,
        connections: int = CLIENT_CONNECTIONS,
        timeout: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.time,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_write` is asked before each request that changes something: one write may consist of several."""
        self._source, self._may_write = source, may_write
        self._connections, self._timeout, self._clock = connections, timeout, clock
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._opened: WeakSet[Any] = WeakSet()  # connections of all sessions: streams outlive theirs
        self._due = self._tried = 0.0
        self._fault = ""

    def configured(self) -> Self:
        """The client, its configuration read.

        Raises:
            ClientConfigError: there is no way to the API server.
        """
        self._current()
        return self

    def get(self, path: str, kind: type[T]) -> T:
        """An object. Raises ApiError."""
        return self._decoded(RawRequest("GET", path), kind)

    def create(self, path: str, body: msgspec.Struct | dict[str, Any], kind: type[T]) -> T:
        """The answer to a review. Raises ApiError."""
        return self._decoded(RawRequest("POST", path, msgspec.json.encode(body)), kind)

    def patch(self, path: str, change: msgspec.Struct, kind: type[T]) -> T:
        """The object after a merge patch, which names the resourceVersion that it changes. Raises ApiError."""
        return self._decoded(RawRequest("PATCH", path, msgspec.json.encode(change), MERGE_PATCH), kind)

    def merge_strategically(self, path: str, change: msgspec.Struct, kind: type[T]) -> T:
        """The object after a strategic merge patch: items of lists are found by name. Raises ApiError."""
        return self._decoded(RawRequest("PATCH", path, msgspec.json.encode(change), STRATEGIC_PATCH), kind)

    def apply(self, path: str, fields: msgspec.Struct | dict[str, Any], kind: type[T]) -> T:
        """The object after server-side apply; the path names the field manager. Raises ApiError."""
        return self._decoded(RawRequest("PATCH", path, msgspec.json.encode(fields), APPLY_PATCH), kind)

    def exchange(self, request: RawRequest) -> RawAnswer:
        """The answer, refusals included. Raises ApiError, with status 413 where the answer is too large."""
        if request.method != "GET" and not self._may_write():
            raise ApiError(f"{request}: not sent, this replica leads no longer", HTTPStatus.CONFLICT)
        with self._translated(request):
            return self._exchange(request)

    @contextmanager
    def stream(self, request: RawRequest, silence: float) -> Iterator[RawAnswer | Iterator[bytes]]:
        """The pieces of a body that goes on while the block lasts, or a refusal; `silence` as of `Session.stream`.

        A refusal for credentials or trust has renewed them for the next request, where there are others.

        Raises:
            UnreachableError: there is no answer, or it has ended before its end.
        """
        with self._translated(request):
            session = self._current()
            try:
                with session.stream(request, silence) as answer:
                    if isinstance(answer, RawAnswer) and answer.status == HTTPStatus.UNAUTHORIZED:
                        self._renewed(session)
                    yield answer
            except SSLError:
                self._renewed(session)
                raise

    def close(self) -> None:
        """End all connections; requests under way fail at once, or at their timeout if still in the TLS handshake."""
        if self._session is not None:
            self._session.close(abort=True)

    @contextmanager
    def _translated(self, request: RawRequest) -> Iterator[None]:
        try:
            yield
        except BodyTooLargeError as error:
            raise UnreachableError(f"{request}: {error}", HTTPStatus.REQUEST_ENTITY_TOO_LARGE) from error
        except (HTTPError, OSError) as error:
            raise UnreachableError(f"{request}: {type(error).__name__} {error}{self._note}") from error
        except ClientConfigError as error:
            raise UnreachableError(f"{request}: {error}") from error

    @property
    def _note(self) -> str:
        """Say why refused credentials are not renewed, for the end of a message."""
        return f"; credentials are not renewed: {self._fault}" if self._fault else ""

    def _decoded(self, request: RawRequest, kind: type[T]) -> T:
        answer = self.exchange(request)
        if answer.status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
            raise refusal(request, answer, self._note)
        try:
            return decoded(answer.body, kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"{request}: the answer is not understood ({error})") from error

    def _exchange(self, request: RawRequest) -> RawAnswer:
        session = self._current()
        try:
            answer = session.exchange(request)
        except (ProtocolError, ClosedPoolError):  # a kept connection that had ended meanwhile
            return self._current().exchange(request)
        except SSLError:
            if (renewed := self._renewed(session)) is session:
                raise
            return renewed.exchange(request)
        if answer.status == HTTPStatus.UNAUTHORIZED and (renewed := self._renewed(session)) is not session:
            return renewed.exchange(request)
        return answer

    def _current(self) -> Session:
        """The session; one thread renews it when that is due, and the others go on with what there is."""
        if self._passed(self._due) and self._lock.acquire(blocking=self._session is None):
            try:
                if self._passed(self._due):
                    self._reload()
            finally:
                self._lock.release()
        if self._session is None:
            raise ClientConfigError(self._fault)
        return self._session

    def _renewed(self, refused: Session) -> Session:
        """Return another session than the refused one, or the same one where there is no other yet."""
        with self._lock:
            if self._session is refused and self._passed(self._tried + RELOAD_SECONDS):
                self._reload()
            return self._session or refused

    def _passed(self, instant: float) -> bool:
        """Whether an instant after the last attempt has come; a clock that went back may never reach it."""
        return not self._tried <= self._clock() < instant

    def _reload(self) -> None:
        """Another session in place of the present one, which stays where the configuration cannot be read."""
        before, self._tried = self._session, self._clock()
        try:
            self._session, self._due = self._loaded()
        except ClientConfigError as error:
            self._due = self._tried + RELOAD_SECONDS
            self._fault = str(error)
            return
        self._fault = ""
        if before is not None:
            before.close()

    def _loaded(self) -> tuple[Session, float]:
        """A session by the present configuration, and when it is to be renewed."""
        config, now = self._source(), self._clock()
        ends = now + RENEW_SECONDS if config.expires is None else config.expires - EXPIRY_SECONDS
        try:
            session = Session(config, self._connections, self._timeout, self._opened)
        except OSError as error:
            raise ClientConfigError(f"{config.server}: CA or client certificate cannot be used: {error}") from error
        return session, min(now + RENEW_SECONDS, max(now + RELOAD_SECONDS, ends))


@contextmanager
def suppress_conflict() -> Iterator[None]:
    """Another version by now is no fault."""
    try:
        yield
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


class AsyncApiClient:
    """The requests of an event loop, each in one of a few threads, so that none waits for another one's answer."""

    def __init__(self, client: ApiClient, threads: int = CLIENT_CONNECTIONS) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="api-server")

    async def get(self, path: str, kind: type[T]) -> T:
        """An object. Raises ApiError."""
        return await self._run(self._client.get, path, kind)

    async def create(self, path: str, body: msgspec.Struct | dict[str, Any], kind: type[T]) -> T:
        """The answer to a review. Raises ApiError."""
        return await self._run(self._client.create, path, body, kind)

    async def patch(self, path: str, change: msgspec.Struct, kind: type[T]) -> T:
        """The object after a merge patch. Raises ApiError."""
        return await self._run(self._client.patch, path, change, kind)

    async def exchange(self, request: RawRequest) -> RawAnswer:
        """The answer, refusals included. Raises UnreachableError."""
        return await self._run(self._client.exchange, request)

    def close(self) -> None:
        """End all connections without waiting for requests under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_building = threading.Lock()


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, built by one thread.

    msgspec 0.22 reads the fields of a struct at its first use, and a second thread that decodes meanwhile follows a
    null pointer: two reviews at the same time after a start ended the process.
    """
    with _building:
        decoder = _decoders.get(kind)
        if decoder is None:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
        return decoder


DEEPEST = 100
"""Levels of nesting that are read of JSON that has too many to be read whole. No kind of object has half as many."""
_MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]')


def decoded(text: bytes, kind: type[T]) -> T:
    """Decode JSON. An owner can nest managedFields 10,000 levels deep: then levels below `DEEPEST` are left out.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: it is no JSON, or of another form.
    """
    decoder = decoder_of(kind)
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(_shallow(text))


def _shallow(text: bytes) -> bytes:
    """Empty everything nested deeper than `DEEPEST`; input that is not JSON may come out as anything."""
    pieces, depth, begin = [], 0, 0
    for bracket in _MARKS.finditer(text):
        if bracket[0] in {b"{", b"["}:
            depth += 1
            if depth == DEEPEST:
                pieces.append(text[begin : bracket.end()])
        elif bracket[0] in {b"}", b"]"}:
            begin = bracket.start() if depth == DEEPEST else begin
            depth -= 1
    return b"".join([*pieces, text[begin:]])


def refusal(request: RawRequest, answer: RawAnswer, note: str = "") -> ApiError:
    """Return the API server's refusal as an error, with its message if it states one."""
    try:
        message = decoder_of(ApiStatus).decode(answer.body).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = ""
    stated = f" {message[:ERROR_TEXT_MAX]}" if message else ""
    return ApiError(f"{request}: {answer.status}{stated}{note}", answer.status)
