"""What a path under /apis names. Nothing is normalised: a path that is not exactly one of these does not exist."""

from __future__ import annotations

from typing import NamedTuple

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/"
KINDS = {"deployments.apps": "Deployment", "statefulsets.apps": "StatefulSet"}
"""Resources whose objects have values."""
SUBRESOURCES = frozenset({"status", "finalize"})
"""The path of a metric of such a name means part of the namespace itself."""


class ExternalValue(NamedTuple):
    """A value call of the external group."""

    namespace: str
    metric: str


class ObjectValue(NamedTuple):
    """A value call of the custom group for one object."""

    namespace: str
    resource: str
    name: str
    metric: str


def value_call(path: str) -> ExternalValue | ObjectValue | None:
    """The value that a path asks for."""
    if path.startswith(EXTERNAL):
        return _external(path[len(EXTERNAL) :].split("/"))
    if path.startswith(CUSTOM):
        return _custom(path[len(CUSTOM) :].split("/"))
    return None


def _external(parts: list[str]) -> ExternalValue | None:
    if len(parts) != len(ExternalValue._fields) or not all(parts) or parts[1] in SUBRESOURCES:
        return None
    return ExternalValue(*parts)


def _custom(parts: list[str]) -> ObjectValue | None:
    if len(parts) != len(ObjectValue._fields) or not all(parts):
        return None
    return ObjectValue(*parts)
