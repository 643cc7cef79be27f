"""Request-header authentication: what the cluster's front proxy says of the caller, if it is that proxy. Pure.

From ConfigMap `kube-system/extension-apiserver-authentication`, which the API server writes for servers like this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote

import msgspec

from forecaster.kube.client import ApiError
from forecaster.kube.objects import ConfigMap
from forecaster.kube.reviews import User, authenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from forecaster.serving.connection import Peer

    T = TypeVar("T")


CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
Headers = Sequence[tuple[bytes, bytes]]


class FrontProxy(NamedTuple):
    """Whom to believe, and in which headers. Without a CA nobody is believed."""

    ca: str = ""
    allowed_names: frozenset[str] = frozenset()
    """Empty: any certificate of that CA."""
    user_headers: tuple[bytes, ...] = (b"x-remote-user",)
    group_headers: tuple[bytes, ...] = (b"x-remote-group",)
    uid_headers: tuple[bytes, ...] = (b"x-remote-uid",)
    extra_prefixes: tuple[bytes, ...] = (b"x-remote-extra-",)

    def user(self, peer: Peer | None, headers: Headers) -> User | None:
        """The caller that the proxy names; None from anybody who is not the proxy."""
        if peer is None or not self.ca or (self.allowed_names and peer.common_name not in self.allowed_names):
            return None
        starts = self.user_headers + self.group_headers + self.uid_headers + self.extra_prefixes
        return _named(self, tuple(header for header in headers if header[0].startswith(starts)))


@lru_cache(maxsize=4096)
def _named(proxy: FrontProxy, headers: Headers) -> User | None:
    """The same few users ask again and again: their headers are read once."""
    name = next((value for header in proxy.user_headers for value in _values(headers, header) if value), "")
    if not name:
        return None
    groups = tuple(value for header in proxy.group_headers for value in _values(headers, header))
    uid = next((value for header in proxy.uid_headers for value in _values(headers, header) if value), "")
    return authenticated(User(name, uid, groups, _extra(headers, proxy.extra_prefixes)))


def front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """The settings of a ConfigMap.

    Raises:
        ValueError: a list in it is no JSON list of strings.
    """
    ca = data.get("requestheader-client-ca-file", "")
    if not ca:
        return FrontProxy()
    default = FrontProxy()
    return FrontProxy(
        ca=ca,
        allowed_names=frozenset(_list(data, "requestheader-allowed-names")),
        user_headers=_headers(data, "requestheader-username-headers", default.user_headers),
        group_headers=_headers(data, "requestheader-group-headers", default.group_headers),
        uid_headers=_headers(data, "requestheader-uid-headers", default.uid_headers),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix", default.extra_prefixes),
    )


def _list(data: Mapping[str, str], key: str) -> list[str]:
    text = data.get(key, "")
    try:
        found = msgspec.json.decode(text or "[]", type=list[str] | None) or []
    except msgspec.DecodeError as error:
        raise ValueError(f"{key} of extension-apiserver-authentication is no list of names: {error}") from error
    return [name for name in found if name]


def _headers(data: Mapping[str, str], key: str, default: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(name.lower().encode("latin-1") for name in _list(data, key)) or default


def _values(headers: Headers, name: bytes) -> Iterable[str]:
    return (value.decode("utf-8", "replace") for key, value in headers if key == name)


def _extra(headers: Headers, prefixes: tuple[bytes, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for key, value in headers:
        for prefix in prefixes:
            if key.startswith(prefix):
                name = unquote(key[len(prefix) :].decode("latin-1")).lower()
                found.setdefault(name, []).append(value.decode("utf-8", "replace"))
    return tuple((name, tuple(values)) for name, values in found.items())


POLL_SECONDS = 5.0
"""Between two looks at the ConfigMap. It changes when a cluster's CA is rotated, that is, once in a year."""
RETRY_SECONDS = 1.0
"""Before the first good answer: until then no proxy is believed."""


class ObjectReader(Protocol):
    """An API server whose objects can be read."""

    async def get(self, path: str, kind: type[T]) -> T:
        """One object. Raises ApiError."""


class FrontProxyWatch:
    """Reads the ConfigMap again and again and says when it has changed; a failure leaves everything as it is."""

    def __init__(self, reader: ObjectReader, changed: Callable[[FrontProxy], None]) -> None:
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
