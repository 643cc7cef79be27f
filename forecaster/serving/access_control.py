"""What a request would do, in the words of a SubjectAccessReview. Pure; restates the API server's own RequestInfo."""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from forecaster.kube.client import ApiError
from forecaster.kube.reviews import MASTERS, NonResourceAttributes, ResourceAttributes, User, is_allowed, token_user
from forecaster.serving.authentication import FrontProxy
from forecaster.serving.reply import HttpReply, failure
from forecaster.serving.review_cache import ReviewCache, TooManyReviewsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

    from forecaster.kube.reviews import Reviewer


VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
GROUP_PARTS = 3
"""`apis`, group and version: a path no longer than this is a document and no resource."""


class RequestAttributes(NamedTuple):
    """A verb on a resource, or on a path where `path` is not empty."""

    verb: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""

    @property
    def right(self) -> ResourceAttributes | NonResourceAttributes:
        """The right that the request needs, as a review names it."""
        if self.path:
            return NonResourceAttributes(self.verb, self.path)
        return ResourceAttributes(
            self.verb, self.group, self.version, self.resource, self.namespace, self.subresource, self.name
        )

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} path {self.path[:200]}"
        where = f' in the namespace "{self.namespace[:64]}"' if self.namespace else " at the cluster scope"
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f'{self.verb} resource "{what[:128]}" in API group "{self.group}"{where}'


def request_attributes(method: str, path: str, *, watch: bool = False) -> RequestAttributes:
    """A request for several objects lists, one for an object gets; on a path it is called as HTTP calls it."""
    parts = path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) <= GROUP_PARTS:
        return RequestAttributes(method.lower(), path=path)
    group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:  # noqa: PLR2004  a namespace, and something in it
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    verb = VERBS.get(method, method.lower())
    if verb == "get" and not name:
        verb = "watch" if watch else "list"
    return RequestAttributes(verb, group, version, namespace, rest[0], "/".join(rest[2:]), name)


PROBE_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
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


class AccessControl:
    """Authentication by front proxy or token, then authorisation; what cannot be checked is refused."""

    def __init__(self, reviewer: Reviewer, denied: Callable[[Denial], None]) -> None:
        self._reviewer = reviewer
        self._denied = denied
        self.front_proxy = FrontProxy()
        """Replaced as a whole when the cluster's settings change."""
        self._tokens: ReviewCache[BearerToken, User | None] = ReviewCache(self._review_token)
        self._rights: ReviewCache[tuple[User, RequestAttributes], bool] = ReviewCache(self._review_access)

    async def refusal(self, scope: Scope) -> HttpReply | None:
        """None for those who may pass."""
        path = scope["path"]
        if path in PROBE_PATHS or path.startswith("/openapi/"):
            return None
        if len(path) > PATH_MAX:
            return self._refused(HTTPStatus.REQUEST_URI_TOO_LONG, f"the path has {len(path)} characters", scope)
        try:
            return await self._judged(scope)
        except (ApiError, TooManyReviewsError) as error:
            why = str(error) or "too many questions to the API server"
            return self._refused(HTTPStatus.INTERNAL_SERVER_ERROR, "rights cannot be checked now", scope, detail=why)

    async def _judged(self, scope: Scope) -> HttpReply | None:
        user, path = await self._user(scope), scope["path"]
        if user is None:
            return self._refused(HTTPStatus.UNAUTHORIZED, "no credentials that anybody vouches for", scope)
        if MASTERS in user.groups or _is_discovery(path):
            return None
        what = request_attributes(scope["method"], path, watch=b"watch=" in scope["query_string"])
        if await self._rights.of((user, what)):
            return None
        return self._refused(HTTPStatus.FORBIDDEN, f'User "{user.name}" cannot {what}', scope, user=user.name)

    async def _user(self, scope: Scope) -> User | None:
        user = self.front_proxy.user(scope["state"]["peer"], scope["headers"])
        if user is not None:
            return user
        token = _bearer(scope)
        return await self._tokens.of(token) if token else None

    async def _review_token(self, token: BearerToken) -> User | None:
        user = await token_user(self._reviewer, token.text)
        token.text = ""
        return user

    async def _review_access(self, key: tuple[User, RequestAttributes]) -> bool:
        user, what = key
        return await is_allowed(self._reviewer, user, what.right)

    def _refused(
        self, status: HTTPStatus, message: str, scope: Scope, *, user: str = "", detail: str = ""
    ) -> HttpReply:
        client = scope["client"][0] if scope["client"] else ""
        what = f"{scope['method']} {scope['path'][:200]}"
        self._denied(Denial(status, detail or message, user, client, what))
        return failure(status, message)


class BearerToken:
    """A token, known by its hash: the text is forgotten as soon as it has been asked about."""

    __slots__ = ("_digest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._digest = hashlib.sha256(text.encode()).digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BearerToken) and self._digest == other._digest


def _bearer(scope: Scope) -> BearerToken | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.partition(b" ")
            known = kind.lower() == b"bearer" and 0 < len(token) <= TOKEN_MAX
            return BearerToken(token.strip().decode("latin-1")) if known else None
    return None


def _is_discovery(path: str) -> bool:
    """Documents that are the same for all and say nothing of any workload. Availability hangs on them: no review."""
    return path == "/apis" or (path.startswith("/apis/") and path.count("/") <= 3)  # noqa: PLR2004  /apis/group/version
