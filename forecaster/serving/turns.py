"""The order in which callers get reviews and handshakes: in turns."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairTurns(Generic[T]):
    """Items of callers, in turns: one of each caller before the second of any."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, caller: str, item: T) -> None:
        """One more item, behind the others of its caller."""
        self._waiting.setdefault(caller, deque()).append(item)
        self._count += 1

    def take(self) -> T:
        """Remove and return the first item of the caller that is next in turn.

        Raises:
            KeyError: there is none.
        """
        caller, items = self._waiting.popitem(last=False)
        item = items.popleft()
        if items:
            self._waiting[caller] = items
        self._count -= 1
        return item

    def drop(self) -> T:
        """The first item of the caller that has the most, which is taken out.

        Raises:
            ValueError: there is none.
        """
        caller, items = max(self._waiting.items(), key=lambda waiting: len(waiting[1]))
        item = items.popleft()
        if not items:
            del self._waiting[caller]
        self._count -= 1
        return item
