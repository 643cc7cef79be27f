"""AccessControl: delegated authentication and authorization, as the Kubernetes servers have it.

The caller is a user of the front proxy or the owner of a bearer token; the API server reviews tokens and rights.
Reviews for the front proxy have workers and turns of their own: what pods ask for directly cannot take them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from starlette.types import Scope

from forecaster.kube.client import ApiError, AsyncApiClient
from forecaster.kube.rights import MASTERS, NonResourceAttributes, ResourceAttributes, User, is_allowed, token_user
from forecaster.serving.audit import Denial
from forecaster.serving.authentication import BearerToken, FrontProxy, bearer_token, shows_token
from forecaster.serving.external_metrics import watches
from forecaster.serving.reply import HttpReply, failure
from forecaster.serving.review_cache import HoldTimes, ReviewCache, ReviewTurns, TooManyReviewsError

PROBE_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
"""Paths of probes, which show no credentials."""
PATH_MAX = 1024
"""Twice what two names of 253 characters can need. Longer ones are not worth a review, nor the memory of its answer."""
PROXIED_WORKERS = 4
PROXIED_OPEN_MAX = 64
"""Open reviews of one user of the front proxy. An HPA controller syncs five HPAs at a time by default."""
PROXIED_HOLD = HoldTimes(300.0, 10.0)
"""Seconds to keep a review, as the API server does with its authorization webhook: it authorized the request before."""
DIRECT_WORKERS = 2
DIRECT_OPEN_MAX = 8
"""Open reviews of one address (tokens) or one user (rights) on connections that are not the front proxy's."""
DIRECT_HOLD = HoldTimes(30.0, 10.0)
"""Two syncs of an HPA (15 s); a positive answer is renewed after the first."""
REFUSAL_SECONDS = 0.5
"""After which a direct client is refused: one that guesses in a loop must not take the CPU of the others."""


class AccessControl:
    """Lets a request pass or refuses it; what cannot be reviewed is refused."""

    def __init__(
        self,
        proxied: AsyncApiClient,
        direct: AsyncApiClient,
        denied: Callable[[Denial], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._denied = denied
        self._clock = clock
        self.front_proxy: FrontProxy | None = None
        """None until the cluster's settings have been read; replaced as a whole when they change."""
        turns = ReviewTurns(DIRECT_WORKERS, DIRECT_OPEN_MAX)
        self._tokens: ReviewCache[BearerToken, User | None]
        self._tokens = ReviewCache(partial(_review_token, direct), DIRECT_HOLD, turns)
        self._direct_rights: ReviewCache[UserRequest, bool]
        self._direct_rights = ReviewCache(partial(_review_access, direct), DIRECT_HOLD, turns)
        proxied_turns = ReviewTurns(PROXIED_WORKERS, PROXIED_OPEN_MAX)
        self._proxied_rights: ReviewCache[UserRequest, bool]
        self._proxied_rights = ReviewCache(partial(_review_access, proxied), PROXIED_HOLD, proxied_turns)

    async def refusal(self, scope: Scope) -> HttpReply | None:
        """Return the refusal of a request; None if it may pass."""
        if scope["path"] in PROBE_PATHS:
            return None
        if len(scope["path"]) > PATH_MAX:
            denial = _denial(scope, HTTPStatus.REQUEST_URI_TOO_LONG, f"the path has {len(scope['path'])} characters")
            return await self._refused(denial, proxied=False)
        front_proxy = self.front_proxy
        user = front_proxy.user(scope["state"]["peer"], scope["headers"]) if front_proxy else None
        denial_or_none = await self._denial(scope, user)
        return None if denial_or_none is None else await self._refused(denial_or_none, proxied=user is not None)

    async def _denial(self, scope: Scope, proxied: User | None) -> Denial | None:
        try:
            user = proxied or await self._token_user(scope)
            if user is None:
                return self._unauthorized(scope)
            scope["state"]["user"] = user.name
            return await self._forbidden(scope, user, self._proxied_rights if proxied else self._direct_rights)
        except TooManyReviewsError as error:
            return _denial(scope, HTTPStatus.TOO_MANY_REQUESTS, "too many reviews of this caller are open", str(error))
        except (ApiError, TimeoutError) as error:
            why = str(error) or "the API server does not answer reviews in time"
            return _denial(scope, HTTPStatus.INTERNAL_SERVER_ERROR, "rights cannot be checked now", why)

    async def _token_user(self, scope: Scope) -> User | None:
        """The owner of the bearer token, reviewed at the expense of the client's address."""
        token = bearer_token(scope["headers"], self._clock())
        return await self._tokens.of(token, _address(scope)) if token else None

    def _unauthorized(self, scope: Scope) -> Denial:
        """Before the front proxy is known, its requests look like those of a client without credentials."""
        if self.front_proxy is None and not shows_token(scope["headers"]):
            return _denial(scope, HTTPStatus.SERVICE_UNAVAILABLE, "the cluster's front proxy is not known yet")
        return _denial(scope, HTTPStatus.UNAUTHORIZED, "no credentials that the cluster vouches for")

    async def _forbidden(self, scope: Scope, user: User, rights: ReviewCache[UserRequest, bool]) -> Denial | None:
        if MASTERS in user.groups or _is_discovery(scope["path"]):
            return None
        right = needed_right(scope["method"], scope["path"], watch=watches(scope["query_string"]))
        if await rights.of((user, right), user.name):
            return None
        return _denial(scope, HTTPStatus.FORBIDDEN, f'User "{user.name}" cannot {right_text(right)}', user=user.name)

    async def _refused(self, denial: Denial, *, proxied: bool) -> HttpReply:
        self._denied(denial)
        if not proxied:
            await asyncio.sleep(REFUSAL_SECONDS)
        return failure(denial.status, denial.message)


async def _review_token(reviewer: AsyncApiClient, token: BearerToken) -> User | None:
    user = await token_user(reviewer, token.text)
    token.text = ""
    return user


async def _review_access(reviewer: AsyncApiClient, request: UserRequest) -> bool:
    return await is_allowed(reviewer, *request)


def _denial(scope: Scope, status: HTTPStatus, message: str, why: str = "", user: str = "") -> Denial:
    request = f"{scope['method']} {scope['path'][:200]}"
    return Denial(status, message, why or message, user, _address(scope), request)


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope["client"] else ""


def _is_discovery(path: str) -> bool:
    """Documents that are the same for all users and name no workload. Availability hangs on them: no review."""
    is_document = path.count("/") <= GROUP_PARTS
    return path == "/apis" or path.startswith("/openapi/") or (path.startswith("/apis/") and is_document)


# What a request would do, in the words of a SubjectAccessReview; restates the API server's own RequestInfo.

VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
GROUP_PARTS = 3
"""`apis`, group and version: a path no longer than this is a document and no resource."""
OWN_PATHS = "/forecaster"
"""Prefix of paths in reviews instead of /api: the ClusterRole system:discovery lets every account `get` all below /api.
"""


Right = ResourceAttributes | NonResourceAttributes
UserRequest = tuple[User, Right]


def right_text(right: Right) -> str:
    """Return a verb and its object in the words of the API server."""
    if isinstance(right, NonResourceAttributes):
        return f"{right.verb} path {right.path[:200]}"
    where = f' in the namespace "{right.namespace[:64]}"' if right.namespace else " at the cluster scope"
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    return f'{right.verb} resource "{resource[:128]}" in API group "{right.group}"{where}'


def needed_right(method: str, path: str, *, watch: bool = False) -> Right:
    """The right that a request needs: for several objects to list, for one to get; on a path to do what HTTP says."""
    parts = path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) <= GROUP_PARTS:
        return NonResourceAttributes(method.lower(), f"{OWN_PATHS}{path}" if parts[0] == "api" else path)
    group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:  # noqa: PLR2004  a namespace, and something in it
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    verb = VERBS.get(method, method.lower())
    if verb == "get" and not name:
        verb = "watch" if watch else "list"
    return ResourceAttributes(verb, group, version, rest[0], namespace, "/".join(rest[2:]), name)
