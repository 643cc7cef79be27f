"""Lists of objects, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from forecaster.kube.objects import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.kube.client import ApiClient

T_co = TypeVar("T_co", covariant=True)


class ListMeta(Wire, frozen=True):
    """Continuation of a page."""

    resource_version: str = ""
    more: str = msgspec.field(default="", name="continue")
    """The token of the next page; empty on the last one."""


class Page(Protocol[T_co]):
    """One page."""

    @property
    def metadata(self) -> ListMeta:
        """What follows."""

    @property
    def items(self) -> tuple[T_co, ...]:
        """The objects."""


def listed(client: ApiClient, path: str, page: type[Page[T_co]], *, limit: int, marked: str = "") -> Iterator[T_co]:
    """All objects of a collection, or those that have the label `marked`. Raises ApiError."""
    selector, after = f"&labelSelector={quote(marked)}" if marked else "", ""
    while True:
        found = client.get(f"{path}?limit={limit}{selector}{after}", page)
        yield from found.items
        if not found.metadata.more:
            return
        after = f"&continue={quote(found.metadata.more, safe='')}"
