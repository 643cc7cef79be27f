"""What the API server has noted of writes by accounts of forecaster."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.control_plane.commands import AUDIT_LOG

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = frozenset({"create", "update", "patch", "delete"})
CREDENTIAL = "authentication.kubernetes.io/credential-id"


class AuditedWrite(NamedTuple):
    """One change that was asked for."""

    at: datetime
    """When it arrived."""
    credential: str
    """Of the token: one for each replica."""
    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    body: dict[str, Any]

    @property
    def version(self) -> str:
        """The resourceVersion that it was decided on."""
        return str(self.body.get("metadata", {}).get("resourceVersion", ""))

    @property
    def min_replicas(self) -> int | None:
        """Of a floor."""
        found: int | None = self.body.get("spec", {}).get("minReplicas")
        return found


def audited(folder: Path, resource: str, namespace: str) -> list[AuditedWrite]:
    """In the order in which they arrived, those that were answered."""
    lines = (folder / AUDIT_LOG).read_text().splitlines()
    each = (json.loads(line) for line in lines if line.endswith("}"))
    found = [_write(one) for one in each if one["verb"] in CHANGES and "responseStatus" in one]
    chosen = [one for one in found if (one.resource, one.namespace) == (resource, namespace)]
    return sorted(chosen, key=lambda one: one.at)


def _write(one: dict[str, Any]) -> AuditedWrite:
    about = one["objectRef"]
    (credential,) = one["user"].get("extra", {}).get(CREDENTIAL, [""])
    return AuditedWrite(
        datetime.fromisoformat(one["requestReceivedTimestamp"]),
        credential,
        one["verb"],
        about["resource"],
        about.get("namespace", ""),
        about.get("name", ""),
        one["responseStatus"].get("code", 0),
        one.get("requestObject", {}),
    )
