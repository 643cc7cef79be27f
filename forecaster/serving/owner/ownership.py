"""Who serves a group in this cluster: us, nobody, or somebody else, whom we leave alone. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.kube.objects import ApiService


class Owner(StrEnum):
    """Of one API group."""

    US = "us"
    NOBODY = "nobody"
    OTHER = "other"
    UNKNOWN = "unknown"
    """The API server would not say."""


def owner_of(registered: ApiService | None, ours: str) -> Owner:
    """Whose a registration is; `ours` is `namespace/name` of our Service."""
    service = registered.spec.service if registered else None
    if service is None:
        return Owner.NOBODY
    return Owner.US if str(service) == ours else Owner.OTHER


def advice(group: str, registered: ApiService | None, ours: str) -> str:
    """What a person should know; empty where all is as it should be."""
    if owner_of(registered, ours) is not Owner.OTHER or registered is None:
        return ""
    return (
        f"{group} belongs to the Service {registered.spec.service}, which we leave alone: serve through KEDA or "
        "Prometheus, or stand in front of it (serving.secure.previous) before you point its APIService here"
    )
