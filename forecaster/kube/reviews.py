"""Reviews: the user of a token, and whether a user has a right, as the API server answers them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from forecaster.kube.client import AsyncApiClient
from forecaster.kube.objects import Wire

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AUTHORIZATION = "authorization.k8s.io/v1"
AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"


class User(NamedTuple):
    """An identity as the cluster knows it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class UserInfo(Wire, frozen=True):
    """The user of a token."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class ReviewStatus(Wire, frozen=True):
    """Whether the token is valid, and its user; or whether access is allowed, where no opinion counts as no."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    allowed: bool = False


class ReviewAnswer(Wire, frozen=True):
    """The answer to a review of a token or of access."""

    status: ReviewStatus


class ResourceAttributes(Wire, frozen=True):
    """A verb on a resource."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(Wire, frozen=True):
    """A verb on a path."""

    verb: str
    path: str


async def token_user(reviewer: AsyncApiClient, token: str) -> User | None:
    """The user of a token; None for a token that is not valid. Raises ApiError."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = (await reviewer.create(TOKEN_REVIEWS, review, ReviewAnswer)).status
    info = status.user
    if not status.authenticated or not info.username:
        return None
    return authenticated(User(info.username, info.uid, info.groups, tuple(info.extra.items())))


async def is_allowed(reviewer: AsyncApiClient, user: User, right: ResourceAttributes | NonResourceAttributes) -> bool:
    """Whether a user has a right. Raises ApiError."""
    attributes = "resourceAttributes" if isinstance(right, ResourceAttributes) else "nonResourceAttributes"
    spec = {"user": user.name, "groups": user.groups, "uid": user.uid, "extra": dict(user.extra), attributes: right}
    review = {"apiVersion": AUTHORIZATION, "kind": "SubjectAccessReview", "spec": spec}
    return (await reviewer.create(ACCESS_REVIEWS, review, ReviewAnswer)).status.allowed


def authenticated(user: User) -> User:
    """The user as a member of `system:authenticated`. Requests of the aggregator itself come without any group."""
    return user if AUTHENTICATED in user.groups else user._replace(groups=(*user.groups, AUTHENTICATED))
