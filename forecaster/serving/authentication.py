"""Authentication: the user that the cluster's front proxy names, and bearer tokens that are worth a review.

Which proxy is trusted is in ConfigMap `kube-system/extension-apiserver-authentication`, which the API server writes for
servers like this one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from forecaster.kube.client import ApiError, AsyncApiClient, UnreachableError
from forecaster.kube.objects import NOT_READ, ConfigMap
from forecaster.kube.rights import User, authenticated
from forecaster.serving.connection import Peer

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
Headers = Sequence[tuple[bytes, bytes]]


class FrontProxy(NamedTuple):
    """The CA and names of the front proxy's certificate, and its headers. Without a CA there is no front proxy."""

    ca: str = ""
    allowed_names: frozenset[str] = frozenset()
    """Empty: any certificate of that CA."""
    user_headers: tuple[bytes, ...] = (b"x-remote-user",)
    group_headers: tuple[bytes, ...] = (b"x-remote-group",)
    uid_headers: tuple[bytes, ...] = ()
    """Only those that are configured: API servers before 1.32 pass on such a header of the caller's own."""
    extra_prefixes: tuple[bytes, ...] = (b"x-remote-extra-",)

    def shown_by(self, peer: Peer | None) -> bool:
        """Whether the client showed the proxy's certificate, which is the API server's own."""
        named = peer is not None and (not self.allowed_names or peer.common_name in self.allowed_names)
        return named and bool(self.ca)

    def user(self, peer: Peer | None, headers: Headers) -> User | None:
        """The user that the proxy names; None where the peer is not the proxy."""
        if not self.shown_by(peer):
            return None
        starts = self.user_headers + self.group_headers + self.uid_headers + self.extra_prefixes
        return _named(self, tuple(header for header in headers if header[0].startswith(starts)))


@lru_cache(maxsize=4096)
def _named(proxy: FrontProxy, headers: Headers) -> User | None:
    """Return the user of the headers, cached: the same few users ask again and again."""
    name = next((value for header in proxy.user_headers for value in _values(headers, header) if value), "")
    if not name:
        return None
    groups = tuple(value for header in proxy.group_headers for value in _values(headers, header))
    uid = next((value for header in proxy.uid_headers for value in _values(headers, header) if value), "")
    return authenticated(User(name, uid, groups, _extra(headers, proxy.extra_prefixes)))


def front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """Return the settings of a ConfigMap. Raises ValueError where a list in it has other values than strings."""
    if not (ca := data.get("requestheader-client-ca-file", "")):
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
    try:
        names = msgspec.json.decode(data.get(key) or "[]", type=list[str] | None) or []
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{key} of extension-apiserver-authentication is no list of names: {error}") from error
    return [name for name in names if name]


def _headers(data: Mapping[str, str], key: str, default: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(name.lower().encode("latin-1") for name in _list(data, key)) or default


def _values(headers: Headers, name: bytes) -> Iterable[str]:
    return (value.decode("utf-8", "replace") for key, value in headers if key == name)


def _extra(headers: Headers, prefixes: tuple[bytes, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        for prefix in prefixes:
            if key.startswith(prefix):
                name = unquote(key[len(prefix) :].decode("latin-1")).lower()
                extra.setdefault(name, []).append(value.decode("utf-8", "replace"))
    return tuple((name, tuple(values)) for name, values in extra.items())


# The settings of the front proxy, kept up with.

PROXY_POLL_SECONDS = 5.0
"""Between two looks at the ConfigMap. It changes when a cluster's CA is rotated, that is, once in a year."""
PROXY_RETRY_SECONDS = 0.5
"""Before the first good answer: until then no connection is accepted."""
UNREADABLE = "bind the role extension-apiserver-authentication-reader in kube-system"


class FrontProxyWatch:
    """Reads the ConfigMap again and again and says when it has changed; a failure leaves everything as it is."""

    def __init__(self, reader: AsyncApiClient, changed: Callable[[FrontProxy], None]) -> None:
        self._reader = reader
        self._changed = changed
        self._latest: FrontProxy | None = None
        self._read = asyncio.Event()
        self.fault = "extension-apiserver-authentication has not been read yet"
        """Reason why the latest state is not known; empty when it is."""

    @property
    def known(self) -> bool:
        """Whether the settings have ever been read."""
        return self._read.is_set()

    async def until_known(self, seconds: float) -> None:
        """Return when the settings have been read for the first time, or after so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._read.wait(), seconds)

    async def refresh(self) -> None:
        """Read once."""
        try:
            latest = front_proxy((await self._reader.get(CONFIG_MAP, ConfigMap)).data)
        except (ApiError, ValueError) as error:
            self.fault = str(error) if isinstance(error, UnreachableError) else f"{error}; {UNREADABLE}"
            return
        self.fault = ""
        if latest != self._latest:
            self._latest = latest
            self._changed(latest)
        self._read.set()

    async def keep_current(self) -> None:
        """Watch until the process ends."""
        while True:
            await self.refresh()
            await asyncio.sleep(PROXY_POLL_SECONDS if self.known else PROXY_RETRY_SECONDS)


# Bearer tokens.

TOKEN_MAX = 16 * 1024
TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, section 2.1."""
JWT_BEGIN = b"eyJ"
"""`{"` in base64: the header of a JSON Web Token."""
JWT_DOTS = 2
EXPIRED_SECONDS = 300.0
"""A token that ended longer ago is expired by any clock that TLS would work with."""


class BearerToken:
    """A token, known by its hash: the text is forgotten as soon as it has been reviewed."""

    __slots__ = ("_digest", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text.decode("ascii")
        self._digest = hashlib.sha256(text).digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BearerToken) and self._digest == other._digest


class JwtHeader(msgspec.Struct, frozen=True):
    """Statement of a JSON Web Token about its signature."""

    alg: str


class JwtClaims(msgspec.Struct, frozen=True):
    """The claim that can be judged without a key."""

    exp: float | None = None


def bearer_token(headers: Headers, now: float) -> BearerToken | None:
    """Return the token of a request; None without one that an API server could accept."""
    for name, value in headers:
        if name == b"authorization":
            kind, _, token = value.partition(b" ")
            token = token.strip()
            return BearerToken(token) if kind.lower() == b"bearer" and _is_possible(token, now) else None
    return None


def _is_possible(token: bytes, now: float) -> bool:
    if len(token) > TOKEN_MAX or not TOKEN.fullmatch(token):
        return False
    if not token.startswith(JWT_BEGIN) or token.count(b".") != JWT_DOTS:
        return True  # opaque: only the cluster's own authenticators can tell
    header, claims, _ = token.split(b".")
    try:
        msgspec.json.decode(_base64url(header), type=JwtHeader)
        ends = msgspec.json.decode(_base64url(claims), type=JwtClaims).exp
    except (binascii.Error, *NOT_READ):
        return False
    return ends is None or ends + EXPIRED_SECONDS > now


def _base64url(part: bytes) -> bytes:
    return base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))


def shows_token(headers: Headers) -> bool:
    """Whether a request has an Authorization header, of whatever kind."""
    return any(name == b"authorization" for name, _ in headers)
