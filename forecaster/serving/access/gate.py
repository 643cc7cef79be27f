"""The gate: every request of the secure door passes here, and leaves with a refusal or goes on."""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from forecaster.kube.client import ApiError
from forecaster.kube.reviews import MASTERS, User, is_allowed, token_user
from forecaster.serving.access.attributes import Attributes, attributes
from forecaster.serving.access.front_proxy import FrontProxy
from forecaster.serving.access.remembered import Remembered, TooManyError
from forecaster.serving.reply import HttpReply, failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

    from forecaster.kube.reviews import Reviewer

OPEN = frozenset({"/healthz", "/livez", "/readyz"})
"""For probes, which show no credentials."""
TOKEN_MAX = 16 * 1024
PATH_MAX = 1024
"""Twice what two names of 253 characters can need. Longer ones are not worth a review, nor the memory of its answer."""


class Denial(NamedTuple):
    """One request that was refused, for the log."""

    status: HTTPStatus
    why: str
    user: str
    client: str
    what: str


class Gate:
    """Authentication by front proxy or token, then authorisation; what cannot be checked is refused."""

    def __init__(self, reviewer: Reviewer, denied: Callable[[Denial], None]) -> None:
        self._reviewer = reviewer
        self._denied = denied
        self.front_proxy = FrontProxy()
        """Replaced as a whole when the cluster's settings change."""
        self._tokens: Remembered[_Token, User | None] = Remembered(self._review_token)
        self._rights: Remembered[tuple[User, Attributes], bool] = Remembered(self._review_access)

    async def refusal(self, scope: Scope) -> HttpReply | None:
        """None for those who may pass."""
        path = scope["path"]
        if path in OPEN or path.startswith("/openapi/"):
            return None
        if len(path) > PATH_MAX:
            return self._refused(HTTPStatus.REQUEST_URI_TOO_LONG, f"the path has {len(path)} characters", scope)
        try:
            return await self._judged(scope)
        except (ApiError, TooManyError) as error:
            why = str(error) or "too many questions to the API server"
            return self._refused(HTTPStatus.INTERNAL_SERVER_ERROR, "rights cannot be checked now", scope, detail=why)

    async def _judged(self, scope: Scope) -> HttpReply | None:
        user, path = await self._user(scope), scope["path"]
        if user is None:
            return self._refused(HTTPStatus.UNAUTHORIZED, "no credentials that anybody vouches for", scope)
        if MASTERS in user.groups or _is_discovery(path):
            return None
        what = attributes(scope["method"], path, watch=b"watch=" in scope["query_string"])
        if await self._rights.of((user, what)):
            return None
        return self._refused(HTTPStatus.FORBIDDEN, f'User "{user.name}" cannot {what}', scope, user=user.name)

    async def _user(self, scope: Scope) -> User | None:
        user = self.front_proxy.user(scope["state"]["peer"], scope["headers"])
        if user is not None:
            return user
        token = _bearer(scope)
        return await self._tokens.of(token) if token else None

    async def _review_token(self, token: _Token) -> User | None:
        user = await token_user(self._reviewer, token.text)
        token.text = ""
        return user

    async def _review_access(self, key: tuple[User, Attributes]) -> bool:
        user, what = key
        return await is_allowed(self._reviewer, user, what.right)

    def _refused(
        self, status: HTTPStatus, message: str, scope: Scope, *, user: str = "", detail: str = ""
    ) -> HttpReply:
        client = scope["client"][0] if scope["client"] else ""
        what = f"{scope['method']} {scope['path'][:200]}"
        self._denied(Denial(status, detail or message, user, client, what))
        return failure(status, message)


class _Token:
    """A token, known by its hash: the text is forgotten as soon as it has been asked about."""

    __slots__ = ("_digest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._digest = hashlib.sha256(text.encode()).digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Token) and self._digest == other._digest


def _bearer(scope: Scope) -> _Token | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.partition(b" ")
            known = kind.lower() == b"bearer" and 0 < len(token) <= TOKEN_MAX
            return _Token(token.strip().decode("latin-1")) if known else None
    return None


def _is_discovery(path: str) -> bool:
    """Documents that are the same for all and say nothing of any workload. Availability hangs on them: no review."""
    return path == "/apis" or (path.startswith("/apis/") and path.count("/") <= 3)  # noqa: PLR2004  /apis/group/version
