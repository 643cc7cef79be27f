"""A collection of the API server: its next request, and the meaning of an answer. Pure.

Where a collection spares the others one object that is not of the form of its kind, `Progress.misread` says why it was
left out: of custom resources a tenant can write anything that their definition leaves open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from forecaster.kube.client import ApiClient, ApiError, decoded, decoder_of
from forecaster.kube.connections import JSON, RawRequest
from forecaster.kube.objects import ApiStatus, Wire

METADATA_TYPE = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
"""Accepted of objects of which specification and status are not needed; a list of them is called so."""
PAGE_ITEMS = 500

Key = tuple[str, str]
"""Namespace and name."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Collection(Generic[T]):
    """Objects of one kind in all namespaces, and the Struct with their needed fields."""

    path: str
    kind: type[T]
    metadata_only: bool = False
    """Whether the server sends metadata only, a small part of the object."""
    spares: bool = False
    """Whether one object that is not of the form of its kind is left out; else nothing of the collection is known,
    because one that is missing would be taken for none."""

    def accept(self, *, listing: bool) -> str:
        """Return the requested form."""
        return METADATA_TYPE.format("List" if listing else "") if self.metadata_only else JSON


class ListMeta(Wire, frozen=True):
    """Metadata of a page: version, and token of the next page."""

    resource_version: str = ""
    more: str = msgspec.field(default="", name="continue")
    """The token of the next page; empty on the last one."""


class ObjectPage(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list of objects."""

    metadata: ListMeta
    items: list[T] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """Change of one object, as a line of a watch states it."""

    type: str
    object: msgspec.Raw


class NamedMeta(Wire, frozen=True):
    """Identity and version of an object."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class NamedObject(Wire, frozen=True):
    """Identity of an object that could not be decoded; of a bookmark, the version up to which the watch is complete."""

    metadata: NamedMeta


class ObjectChange(NamedTuple, Generic[T]):
    """An object that is new or another one than before; None where it is gone, or not understood."""

    key: Key
    object: T | None


class Progress(Generic[T]):
    """Progress of a collection, which decides the next request. Pure.

    A list is read page by page; the watch begins at its version, and every event or bookmark advances it. Where the
    server has forgotten the version (410 Gone), the list begins anew; so it does after a stream without any line, not
    even its end, and where no attempt succeeds: after a restore of etcd no event is newer than the version.
    """

    def __init__(self, collection: Collection[T], page: int = PAGE_ITEMS) -> None:
        self.collection = collection
        self.page = self._most = page
        """Objects per page; halved where an answer is too large, doubled again with each whole list."""
        self.version = ""
        self.misread: dict[Key, str] = {}
        """Objects that are left out, since they are not of the form of their kind, and why."""
        self._more = ""
        self._pages: type[ObjectPage[T]] = ObjectPage[collection.kind]  # type: ignore[name-defined]  # a value here

    @property
    def begun(self) -> bool:
        """Whether a page of the list is known, and another one is to come."""
        return bool(self._more)

    @property
    def listing(self) -> bool:
        """Whether the next request is for a page."""
        return not self.version

    def request(self, seconds: int = 0) -> RawRequest:
        """Return the next request: a page, or a watch for so many seconds."""
        query = f"limit={self.page}" + (f"&continue={quote(self._more, safe='')}" if self._more else "")
        if not self.listing:
            query = f"watch=1&allowWatchBookmarks=true&resourceVersion={self.version}&timeoutSeconds={seconds}"
        return RawRequest("GET", f"{self.collection.path}?{query}", accept=self.collection.accept(listing=self.listing))

    def listed(self, body: bytes) -> list[T]:
        """The objects of a page. After the last page `listing` is over. Raises ApiError."""
        if not self.begun:
            self.misread.clear()
        try:
            page = self._page(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"{self.collection.path}: a page is not understood ({error})") from error
        if not (page.metadata.more or page.metadata.resource_version):
            raise ApiError(f"{self.collection.path}: its list has no version, so it cannot be watched")
        self._more = page.metadata.more
        if not self._more:
            self.version, self.page = page.metadata.resource_version, min(2 * self.page, self._most)
        return page.items or []

    def followed(self, line: bytes) -> ObjectChange[T] | None:
        """Return the change in a line of the watch; None where there is none.

        Raises:
            ApiError: the server ends the watch; with 410 where it cannot be continued.
        """
        try:
            event = decoded(line, WatchEvent)
            if event.type == "BOOKMARK":
                self.version = decoder_of(NamedObject).decode(event.object).metadata.resource_version
                return None
            if event.type == "ERROR":
                failure = decoder_of(ApiStatus).decode(event.object)
                raise ApiError(f"{self.collection.path}: {failure.code} {failure.message}", failure.code)
            return self._change(event)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"{self.collection.path}: an event is not understood ({error})", HTTPStatus.GONE) from error

    def restart(self) -> None:
        """Start the list from its first page."""
        self.version = self._more = ""

    def smaller(self) -> None:
        """Halve the number of objects per page."""
        self.page = max(1, self.page // 2)

    def _page(self, body: bytes) -> ObjectPage[T]:
        """Decode a page at once, or object by object where one cannot be decoded."""
        try:
            return decoded(body, self._pages)
        except msgspec.ValidationError:
            if not self.collection.spares:
                raise
            page = decoded(body, ObjectPage[msgspec.Raw])
            understood = map(self._understood, page.items or ())
            return ObjectPage(page.metadata, [object_ for object_ in understood if object_ is not None])

    def _change(self, event: WatchEvent) -> ObjectChange[T]:
        named = decoder_of(NamedObject).decode(event.object).metadata
        key = named.namespace, named.name
        self.misread.pop(key, None)
        change = ObjectChange(key, None if event.type == "DELETED" else self._understood(event.object))
        self.version = named.resource_version
        return change

    def _understood(self, raw: msgspec.Raw) -> T | None:
        try:
            return decoder_of(self.collection.kind).decode(raw)
        except msgspec.ValidationError as error:
            if not self.collection.spares:
                raise
            meta = decoder_of(NamedObject).decode(raw).metadata
            self.misread[meta.namespace, meta.name] = str(error)
            return None


def listed(client: ApiClient, path: str, kind: type[T], *, limit: int, marked: str = "") -> Iterator[T]:
    """All objects of a collection, or those that have the label `marked`. Raises ApiError."""
    page: type[ObjectPage[T]] = ObjectPage[kind]  # type: ignore[valid-type]  # the kind is a value here
    selector, after = f"&labelSelector={quote(marked)}" if marked else "", ""
    while True:
        answer = client.get(f"{path}?limit={limit}{selector}{after}", page)
        yield from answer.items or ()
        if not answer.metadata.more:
            return
        after = f"&continue={quote(answer.metadata.more, safe='')}"
