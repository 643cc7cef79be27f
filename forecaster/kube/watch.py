"""Watch: a collection of the API server, listed page by page and then followed event by event, as `Progress` says.

It runs in a thread of its own. What `reduce` leaves of each object lies in a dictionary that any thread may read.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from forecaster.kube.client import ApiClient, ApiError, UnreachableError, refusal
from forecaster.kube.collection import Collection, Key, Progress, T
from forecaster.kube.connections import RESPONSE_MAX, RawAnswer

V = TypeVar("V")

WATCH_SECONDS_RANGE = (300, 600)
"""Duration of one watch, drawn between both, so that watches of many processes do not end together."""
SILENCE_SECONDS = 100.0
"""Seconds without an event or a bookmark after which a stream is taken for that of a quiet collection, or for dead."""
QUIET_SECONDS = 80
"""Duration of the next watch after silence: one that the server does not end in time is dead."""
SPARE_SECONDS = 30.0
"""Longest time that a watch may exceed its requested duration, whatever the server does."""
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before another attempt, the last one repeated; between half and all of it is waited."""
REFUSED_PAUSE = 60.0
"""After a refusal that a person has to mend: a right, or a kind that is not there."""
SHORTEST_SECONDS = 1.0
"""A watch that ends sooner is begun again after this time: there may be a server that ends every one."""
AGED_SECONDS = 60.0
"""Age from which on confirmed facts are no longer used: another source is queried."""
REFUSED_STATUS = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
TOO_LARGE = "Too large resource version"
"""Said of a version that the store does not have yet or, after a restore, no longer."""


@dataclass(slots=True)
class WatchHealth:
    """Health of a watch, for one line in a log or report."""

    fault: str = ""
    """Reason why the watch is interrupted now; empty while it follows, or has not begun."""
    refused: bool = False
    """Whether rights are missing, or the kind does not exist."""
    absent: bool = False
    """Whether the kind does not exist."""
    restarts: int = 0
    """Number of lists begun anew after a failure."""
    requests: int = 0


class Watch(Generic[T, V]):
    """Objects of a collection as they are now, each reduced by `reduce`; None leaves the object out.

    `on_change` is called for each key that changed, with the value before and after (None: it is absent);
    it is called in the thread of the watch and must not take long.
    """

    def __init__(
        self,
        collection: Collection[T],
        reduce: Callable[[T], V | None],
        on_change: Callable[[Key, V | None, V | None], None] = lambda *_: None,
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
        """Set once a whole list was known; from then on the objects are known, though perhaps old."""
        self._reduce = reduce
        self._on_change = on_change
        self._clock, self._drawn, self._seconds = clock, drawn, seconds
        self._streams = self._quiet = False
        self._until = self._heard_at = self._begun = 0.0
        self._listed_keys: set[Key] = set()
        self._failures = self._anew = 0  # failed requests, and lists begun anew, since one that helped

    @property
    def path(self) -> str:
        """Return the API path of its collection."""
        return self.progress.collection.path

    def confirmed(self) -> float:
        """The instant, in seconds since 1970, up to which all is known; 0 where nothing is."""
        return self._clock() if self._streams else self._until

    @property
    def fresh(self) -> bool:
        """Whether all was known lately. By a clock that went back it may have been later than now."""
        return self.synced.is_set() and abs(self._clock() - self.confirmed()) <= AGED_SECONDS

    @property
    def known(self) -> bool:
        """Whether its objects are known, now or lately, or their kind is not there."""
        return self.synced.is_set() or self.health.absent

    def listed_or_refused(self, until: float) -> bool:
        """Wait until a whole list is known or refused; whether that came before an instant of `time.monotonic`."""
        while not self.synced.wait(0.02):
            if self.health.refused:
                return True
            if time.monotonic() > until:
                return False
        return True

    def run(self, client: ApiClient, stop: threading.Event) -> None:
        """List and follow until stopped, whatever the server does meanwhile."""
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
            raise refusal(request, answer)
        for object_ in self.progress.listed(answer.body):
            self._listed_keys.add(_key(object_))
            self._put(object_)
        if not self.progress.listing:
            for key in self.objects.keys() - self._listed_keys:
                self._drop(key)
            self._listed_keys = set()
            self._until = self._begun  # pages are of the version of the first one
            self.synced.set()

    def _follow(self, client: ApiClient, stop: threading.Event) -> None:
        low, high = WATCH_SECONDS_RANGE
        seconds = QUIET_SECONDS if self._quiet else int(low + (high - low) * self._drawn())
        request = self.progress.request(seconds)
        began = self._seconds()
        latest = began + seconds + SPARE_SECONDS
        try:
            with client.stream(request, SILENCE_SECONDS) as answer:
                if isinstance(answer, RawAnswer):
                    raise refusal(request, answer)
                self._heard(streams=True)
                self.health.fault = ""
                for line in lines(answer):
                    if line:
                        self._take(line)
                    if stop.is_set() or self._seconds() > latest:
                        return
        except UnreachableError as error:
            if self._streams and self._seconds() - self._heard_at >= SILENCE_SECONDS:
                self._streams, dead, self._quiet = False, self._quiet, not self._quiet
                if dead:
                    raise ApiError(f"{error}; nothing came for {SILENCE_SECONDS:g} s", HTTPStatus.GONE) from error
                return
            raise
        finally:
            if self._streams:
                self._heard(streams=False)
                if self._seconds() - began >= SHORTEST_SECONDS:
                    self._failures = self._anew = 0

    def _heard(self, *, streams: bool) -> None:
        """Up to now all is known. A stream that ends by its silence may have been silent long before."""
        self._until, self._heard_at, self._streams = self._clock(), self._seconds(), streams

    def _take(self, line: bytes) -> None:
        self._quiet = False
        change = self.progress.followed(line)
        if change is not None:
            self._drop(change.key) if change.object is None else self._put(change.object)
        self._heard(streams=True)

    def _put(self, object_: T) -> None:
        key, value = _key(object_), self._reduced(object_)
        if value is None:
            self._drop(key)
            return
        before = self.objects.get(key)
        if before != value:
            self.objects[key] = value
            self._on_change(key, before, value)

    def _reduced(self, object_: T) -> V | None:
        try:
            return self._reduce(object_)
        except Exception as error:
            if not self.progress.collection.spares:
                raise
            self.progress.misread[_key(object_)] = f"{type(error).__name__}: {error}"
            return None

    def _drop(self, key: Key) -> None:
        if (before := self.objects.pop(key, None)) is not None:
            self._on_change(key, before, None)

    def _failed(self, fault: str, status: int) -> float:
        """Note a failure; the seconds to wait."""
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and self.progress.page > 1:
            self.progress.smaller()
            return 0.0
        continued = self.progress.begun or not self.progress.listing
        never = TOO_LARGE in fault and self._failures >= 1  # once it may be a server that is behind another one
        if never or status == HTTPStatus.GONE or self._failures >= len(PAUSES):
            self.progress.restart()
        if self.progress.listing and not self.progress.begun:
            self._listed_keys = set()
            self.health.restarts += 1
            self._anew += continued
        self.health.fault, self.health.refused = fault, status in REFUSED_STATUS
        self.health.absent = status == HTTPStatus.NOT_FOUND
        step = min(max(self._failures, self._anew - 1), len(PAUSES) - 1)
        pause = REFUSED_PAUSE if self.health.refused else PAUSES[step]
        self._failures += 1
        return pause * (1.0 + self._drawn()) / 2


def lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a stream, however it is cut into pieces; an empty one for a piece in which no line ends.

    Raises:
        UnreachableError: one of them has no end.
    """
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole or [b""]
        if len(rest) > RESPONSE_MAX:
            raise UnreachableError(f"an event has more than {RESPONSE_MAX // 2**20} MiB")
    yield rest


def _key(object_: Any) -> Key:
    return object_.metadata.namespace, object_.metadata.name


FOLLOWED_CONNECTIONS = 8
"""Connections of the client: one for each collection, and one for lists."""


class Followed:
    """Collections that are watched from the moment at which they could be listed, by path; `close` ends their watches.

    A kind that may not be installed, or may not be listed, is requested by its reader at each look; once the server
    answers, its reader gets the objects from the watch, and requests no more.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.time) -> None:
        self._client, self._clock = client, clock
        self._watches: dict[str, Watch[Any, Any]] = {}
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def objects(self, path: str) -> list[Any] | None:
        """All of a collection as they are now; None where they are not watched, or not known."""
        watch = self._watches.get(path)
        if watch is None or watch.health.refused or not watch.fresh:
            return None
        return list(watch.objects.values())

    def begin(self, path: str, kind: type[Any], reduce: Callable[[Any], V]) -> None:
        """Watch a collection, if it is not watched yet; `reduce` returns the needed parts of an object."""
        if path in self._watches or self._stop.is_set():
            return
        watch = self._watches[path] = Watch(Collection(path, kind), reduce, clock=self._clock)
        thread = threading.Thread(target=watch.run, args=(self._client, self._stop), name=f"watch {path}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self, timeout: float = 5.0) -> None:
        """End all watches."""
        self._stop.set()
        self._client.close()
        for thread in self._threads:
            thread.join(timeout)
