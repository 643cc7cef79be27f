"""Keeps up with whom the cluster's API server tells its extensions to believe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from forecaster.kube.client import ApiError
from forecaster.kube.objects import ConfigMap
from forecaster.serving.access.front_proxy import CONFIG_MAP, FrontProxy, front_proxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

POLL_SECONDS = 5.0
"""Between two looks at the ConfigMap. It changes when a cluster's CA is rotated, that is, once in a year."""
RETRY_SECONDS = 1.0
"""Before the first good answer: until then no proxy is believed."""


class Reader(Protocol):
    """An API server whose objects can be read."""

    async def get(self, path: str, kind: type[T]) -> T:
        """One object. Raises ApiError."""


class Trust:
    """Reads the ConfigMap again and again and says when it has changed; a failure leaves everything as it is."""

    def __init__(self, reader: Reader, changed: Callable[[FrontProxy], None]) -> None:
        self._reader = reader
        self._changed = changed
        self._seen: FrontProxy | None = None
        self.fault = "extension-apiserver-authentication has not been read yet"
        """Why the newest state is not known; empty when it is."""

    @property
    def known(self) -> bool:
        """Whether it has ever been read."""
        return self._seen is not None

    async def look(self) -> None:
        """Look once."""
        try:
            found = front_proxy((await self._reader.get(CONFIG_MAP, ConfigMap)).data)
        except (ApiError, ValueError) as error:
            self.fault = f"{error}; bind the role extension-apiserver-authentication-reader in kube-system"
            return
        self.fault = ""
        if found != self._seen:
            self._seen = found
            self._changed(found)

    async def keep_looking(self) -> None:
        """For ever."""
        while True:
            await self.look()
            await asyncio.sleep(POLL_SECONDS if self.known else RETRY_SECONDS)
