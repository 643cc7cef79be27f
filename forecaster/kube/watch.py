"""Watch: a collection of the API server, listed page by page and then followed event by event.

`Progress` says what to ask next and what an answer means, without network and clock. `Watch` keeps what `reduce` leaves
of each object, in a dictionary that any thread may read, and runs in a thread of its own:

    watch = Watch(Collection("/apis/apps/v1/deployments", Deployment), reduce=lambda one: one.spec.replicas)
    threading.Thread(target=watch.run, args=(client, stop), daemon=True).start()
    watch.synced                        # a whole list is known
    watch.confirmed(now)                # up to when all is known: now while the server streams
    watch.objects["shop", "web"]        # by namespace and name
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from forecaster.kube.client import ApiError, UnreachableError, decoder_of, refusal_message
from forecaster.kube.connections import BODY_MAX, JSON, RawAnswer, RawRequest
from forecaster.kube.objects import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.kube.client import ApiClient

METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
"""Accepted of objects of which specification and status are not needed; a list of them is called so."""
PAGE = 500
WATCH_SECONDS = (300, 600)
"""How long one watch lasts, drawn between both, so that watches of many processes do not end together."""
SILENCE_SECONDS = 100.0
"""Without an event or a bookmark, which comes every minute, a stream is taken for dead."""
SPARE_SECONDS = 30.0
"""So much longer than was asked for no watch lasts, whatever the server does."""
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before another attempt, the last one repeated; between half and all of it is waited."""
REFUSED_PAUSE = 60.0
"""After a refusal that a person has to mend: a right, or a kind that is not there."""
SHORTEST_SECONDS = 1.0
"""A watch that ends sooner is begun again after this time: there may be a server that ends every one."""
REFUSED = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})

Key = tuple[str, str]
"""Namespace and name."""


class _Metadata(Protocol):
    """What a watch reads of any object."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class _Object(Protocol):
    """An object of the API server, of which only the fields that are needed are decoded."""

    @property
    def metadata(self) -> _Metadata: ...


T = TypeVar("T", bound=_Object)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Collection(Generic[T]):
    """Objects of one kind in all namespaces, and the Struct that has what is needed of one."""

    path: str
    kind: type[T]
    metadata_only: bool = False
    """Whether the server leaves the rest out, which is most of it."""

    def accept(self, *, listing: bool) -> str:
        """The form that is asked for."""
        return METADATA.format("List" if listing else "") if self.metadata_only else JSON


class ListMeta(Wire, frozen=True):
    """Where a page ends."""

    resource_version: str = ""
    more: str = msgspec.field(default="", name="continue")


class ObjectPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list."""

    metadata: ListMeta
    items: list[T] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class BookmarkMeta(Wire, frozen=True):
    """The version up to which all is told."""

    resource_version: str = ""


class Bookmark(Wire, frozen=True):
    """The object of a bookmark: nothing has happened to it."""

    metadata: BookmarkMeta = BookmarkMeta()


class WatchFailure(Wire, frozen=True):
    """The object of an ERROR: a Status."""

    code: int = 0
    message: str = ""


class ObjectChange(NamedTuple, Generic[T]):
    """An object that is new, another one than before, or gone."""

    object: T
    gone: bool = False


class Progress(Generic[T]):
    """How far a collection is known, and so what is to be asked next. Pure.

    A list is taken page by page; its version is where the watch begins, and every event or bookmark moves that on.
    Where the server has forgotten the version (410 Gone), the list begins anew; so it does after a stream on which not
    even a bookmark came, and where no attempt succeeds: after a restore of etcd no event is newer than the version.
    """

    def __init__(self, collection: Collection[T], page: int = PAGE) -> None:
        self.collection = collection
        self.page = page
        """Objects asked for at once; halved where their answer is too large."""
        self.version = ""
        self._more = ""
        self._pages = decoder_of(ObjectPage[collection.kind])  # type: ignore[name-defined]  # the kind is a value here
        self._objects = decoder_of(collection.kind)

    @property
    def begun(self) -> bool:
        """Whether a page of the list is known, and another one is to come."""
        return bool(self._more)

    @property
    def listing(self) -> bool:
        """Whether the next request is for a page."""
        return not self.version

    def request(self, seconds: int = WATCH_SECONDS[0]) -> RawRequest:
        """What is to be asked; a watch for so many seconds."""
        query = f"limit={self.page}" + (f"&continue={quote(self._more, safe='')}" if self._more else "")
        if not self.listing:
            query = f"watch=1&allowWatchBookmarks=true&resourceVersion={self.version}&timeoutSeconds={seconds}"
        return RawRequest("GET", f"{self.collection.path}?{query}", accept=self.collection.accept(listing=self.listing))

    def listed(self, body: bytes) -> list[T]:
        """The objects of a page. After the last page `listing` is over. Raises ApiError."""
        try:
            page = self._pages.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"{self.collection.path}: a page is not understood ({error})") from error
        self._more = page.metadata.more
        self.version = "" if self._more else page.metadata.resource_version
        return page.items or []

    def followed(self, line: bytes) -> ObjectChange[T] | None:
        """What a line of the watch says; None where nothing has happened.

        Raises:
            ApiError: the server ends the watch; with 410 where it cannot be gone on with.
        """
        try:
            event = decoder_of(WatchEvent).decode(line)
            if event.type == "BOOKMARK":
                self.version = decoder_of(Bookmark).decode(event.object).metadata.resource_version
                return None
            if event.type == "ERROR":
                failure = decoder_of(WatchFailure).decode(event.object)
                raise ApiError(f"{self.collection.path}: {failure.code} {failure.message}", failure.code)
            found = self._objects.decode(event.object)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"{self.collection.path}: an event is not understood ({error})", HTTPStatus.GONE) from error
        self.version = found.metadata.resource_version
        return ObjectChange(found, gone=event.type == "DELETED")

    def restart(self) -> None:
        """Begin the list anew."""
        self.version = self._more = ""

    def smaller(self) -> None:
        """Ask for half as many objects at once."""
        self.page = max(1, self.page // 2)


def ignored(_key: Key, _before: object, _after: object) -> None:
    """Nothing waits for changes."""


@dataclass(slots=True)
class WatchHealth:
    """How a watch is doing, for one line in a log or report."""

    fault: str = ""
    """Why it does not follow just now; empty while it does, or has not begun."""
    refused: bool = False
    """Whether that is a matter of rights, or of a kind that is not there."""
    absent: bool = False
    """Whether there is no such kind."""
    restarts: int = 0
    """How often the list was begun anew after a failure."""
    requests: int = 0


class Watch(Generic[T, V]):
    """The present objects of a collection, each as what `reduce` leaves of it; None leaves nothing.

    `on_change` hears of each key whose value differs, with the value before and after (None: it was not, is not there);
    it is called in the thread of the watch and must not take long.
    """

    def __init__(
        self,
        collection: Collection[T],
        reduce: Callable[[T], V | None],
        on_change: Callable[[Key, V | None, V | None], None] = ignored,
        *,
        clock: Callable[[], float] = time.time,
        drawn: Callable[[], float] = random.random,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.progress = Progress(collection)
        self.objects: dict[Key, V] = {}
        """Changed by the thread of the watch alone; `list(objects.items())` is a copy that others may go through."""
        self.health = WatchHealth()
        self.synced = threading.Event()
        """Set once a whole list was known; from then on what is known is at most old."""
        self._reduce = reduce
        self._on_change = on_change
        self._clock, self._drawn, self._seconds = clock, drawn, seconds
        self._streams = False
        self._until = self._heard_at = 0.0
        self._seen: set[Key] = set()
        self._failures = 0
        self._begun = 0.0

    @property
    def path(self) -> str:
        """Of its collection."""
        return self.progress.collection.path

    def confirmed(self) -> float:
        """The instant, in seconds since 1970, up to which all is known; 0 where nothing is."""
        return self._clock() if self._streams else self._until

    def run(self, client: ApiClient, stop: threading.Event) -> None:
        """List and follow until told to stop, whatever the server does meanwhile."""
        while not stop.is_set():
            stop.wait(self.step(client, stop))

    def step(self, client: ApiClient, stop: threading.Event) -> float:
        """One page, or one watch until it ends; the seconds to wait before the next."""
        self.health.requests += 1
        began, follows = self._seconds(), not self.progress.listing
        try:
            self._follow(client, stop) if follows else self._page(client)
        except ApiError as error:
            return self._failed(str(error), error.status)
        except Exception as error:  # noqa: BLE001  the boundary of a thread: it goes on, and the fault is told
            self.progress.restart()
            return self._failed(f"{self.progress.collection.path}: {type(error).__name__}: {error}", 0)
        self._failures = 0
        self.health.fault, self.health.refused, self.health.absent = "", False, False
        return SHORTEST_SECONDS if follows and self._seconds() - began < SHORTEST_SECONDS else 0.0

    def _page(self, client: ApiClient) -> None:
        request = self.progress.request()
        if not self.progress.begun:
            self._begun = self._clock()
        answer = client.exchange(request)
        if answer.status != HTTPStatus.OK:
            raise _refusal(request, answer)
        for one in self.progress.listed(answer.body):
            self._seen.add(_key(one))
            self._put(one)
        if not self.progress.listing:
            for key in self.objects.keys() - self._seen:
                self._drop(key)
            self._seen = set()
            self._until = self._begun  # pages are of the version of the first one
            self.synced.set()

    def _follow(self, client: ApiClient, stop: threading.Event) -> None:
        low, high = WATCH_SECONDS
        seconds = int(low + (high - low) * self._drawn())
        request = self.progress.request(seconds)
        latest = self._seconds() + seconds + SPARE_SECONDS
        try:
            with client.stream(request, SILENCE_SECONDS) as answer:
                if isinstance(answer, RawAnswer):
                    raise _refusal(request, answer)
                self._heard(streams=True)
                self._failures, self.health.fault = 0, ""
                for line in lines(answer):
                    self._changed(self.progress.followed(line))
                    self._heard(streams=True)
                    if stop.is_set() or self._seconds() > latest:
                        return
        except UnreachableError as error:
            if self._streams and self._seconds() - self._heard_at >= SILENCE_SECONDS:
                self._streams = False
                raise ApiError(f"{error}; nothing came for {SILENCE_SECONDS:g} s", HTTPStatus.GONE) from error
            raise
        finally:
            if self._streams:
                self._heard(streams=False)

    def _heard(self, *, streams: bool) -> None:
        """Up to now all is known. A stream that ends by its silence may have been silent long before."""
        self._until, self._heard_at, self._streams = self._clock(), self._seconds(), streams

    def _changed(self, change: ObjectChange[T] | None) -> None:
        if change is None:
            return
        if change.gone:
            self._drop(_key(change.object))
        else:
            self._put(change.object)

    def _put(self, one: T) -> None:
        key, value = _key(one), self._reduce(one)
        if value is None:
            self._drop(key)
            return
        before = self.objects.get(key)
        if before != value:
            self.objects[key] = value
            self._on_change(key, before, value)

    def _drop(self, key: Key) -> None:
        before = self.objects.pop(key, None)
        if before is not None:
            self._on_change(key, before, None)

    def _failed(self, fault: str, status: int) -> float:
        """Note a failure; the seconds to wait."""
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and self.progress.page > 1:
            self.progress.smaller()
            return 0.0
        if status == HTTPStatus.GONE or self._failures >= len(PAUSES):
            self.progress.restart()
        if self.progress.listing and not self.progress.begun:
            self._seen = set()
            self.health.restarts += 1
        self.health.fault, self.health.refused = fault, status in REFUSED
        self.health.absent = status == HTTPStatus.NOT_FOUND
        pause = REFUSED_PAUSE if self.health.refused else PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1
        return pause * (1.0 + self._drawn()) / 2


def lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a stream, however it is cut into pieces.

    Raises:
        UnreachableError: one of them has no end.
    """
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
        if len(rest) > BODY_MAX:
            raise UnreachableError(f"an event has more than {BODY_MAX // 2**20} MiB")


def _key(one: Any) -> Key:
    return one.metadata.namespace, one.metadata.name


def _refusal(request: RawRequest, answer: RawAnswer) -> ApiError:
    return ApiError(f"{request}: {answer.status}{refusal_message(answer.body)}", answer.status)
