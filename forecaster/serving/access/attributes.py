"""What a request would do, in the words of a SubjectAccessReview. Pure; restates the API server's own RequestInfo."""

from __future__ import annotations

from typing import NamedTuple

from forecaster.kube.reviews import NonResourceAttributes, ResourceAttributes

VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
GROUP_PARTS = 3
"""`apis`, group and version: a path no longer than this is a document and no resource."""


class Attributes(NamedTuple):
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


def attributes(method: str, path: str, *, watch: bool = False) -> Attributes:
    """A request for several objects lists, one for an object gets; on a path it is called as HTTP calls it."""
    parts = path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) <= GROUP_PARTS:
        return Attributes(method.lower(), path=path)
    group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:  # noqa: PLR2004  a namespace, and something in it
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    verb = VERBS.get(method, method.lower())
    if verb == "get" and not name:
        verb = "watch" if watch else "list"
    return Attributes(verb, group, version, namespace, rest[0], "/".join(rest[2:]), name)
