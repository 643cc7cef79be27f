"""Who is asking."""

from __future__ import annotations

from typing import NamedTuple

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"


class User(NamedTuple):
    """An identity as the cluster knows it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def authenticated(user: User) -> User:
    """The same user as a member of all who are known. Requests of the aggregator itself come without any group."""
    return user if AUTHENTICATED in user.groups else user._replace(groups=(*user.groups, AUTHENTICATED))
