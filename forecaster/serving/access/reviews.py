"""The two questions to the API server, as wire types: whose token is this, and may they."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.serving.access.user import User, authenticated

if TYPE_CHECKING:
    from forecaster.serving.access.attributes import Attributes

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of a review; what is empty is left out."""


class TokenSpec(_Wire, frozen=True):
    """The token in question."""

    token: str


class TokenReview(msgspec.Struct, frozen=True, rename="camel"):
    """authentication.k8s.io/v1, as it is asked."""

    spec: TokenSpec
    kind: str = "TokenReview"
    api_version: str = "authentication.k8s.io/v1"


class UserInfo(_Wire, frozen=True):
    """Whose it is."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenStatus(_Wire, frozen=True):
    """Whether it is anybody's."""

    authenticated: bool = False
    user: UserInfo = UserInfo()


class TokenAnswer(_Wire, frozen=True):
    """authentication.k8s.io/v1, as it is answered."""

    status: TokenStatus


class ResourceAttributes(_Wire, frozen=True):
    """A verb on a resource."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(_Wire, frozen=True):
    """A verb on a path."""

    verb: str
    path: str


class AccessSpec(_Wire, frozen=True):
    """Who would do what."""

    user: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class AccessReview(msgspec.Struct, frozen=True, rename="camel"):
    """authorization.k8s.io/v1, as it is asked."""

    spec: AccessSpec
    kind: str = "SubjectAccessReview"
    api_version: str = "authorization.k8s.io/v1"


class AccessStatus(_Wire, frozen=True):
    """Whether they may. No opinion is no."""

    allowed: bool = False


class AccessAnswer(_Wire, frozen=True):
    """authorization.k8s.io/v1, as it is answered."""

    status: AccessStatus


def token_review(token: str) -> TokenReview:
    """Whose token is this?"""
    return TokenReview(TokenSpec(token))


def user_of(answer: TokenAnswer) -> User | None:
    """The user of a token; None where it is nobody's."""
    status, info = answer.status, answer.status.user
    if not status.authenticated or not info.username:
        return None
    return authenticated(User(info.username, info.uid, info.groups, tuple(info.extra.items())))


def access_review(user: User, what: Attributes) -> AccessReview:
    """May this user do that?"""
    resource = path = None
    if what.path:
        path = NonResourceAttributes(what.verb, what.path)
    else:
        resource = ResourceAttributes(
            what.verb, what.group, what.version, what.resource, what.namespace, what.subresource, what.name
        )
    return AccessReview(AccessSpec(user.name, user.groups, user.uid, dict(user.extra), resource, path))
