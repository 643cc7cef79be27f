"""Writes of forecaster's accounts in the audit log of the API server."""

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
    """One requested change."""

    at: datetime
    """When it arrived."""
    credential: str
    """Credential of the token: one for each replica."""
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
        """Value of minReplicas that a write sets."""
        count: int | None = self.body.get("spec", {}).get("minReplicas")
        return count


def audited(folder: Path, resource: str, namespace: str) -> list[AuditedWrite]:
    """Answered writes in the order in which they arrived."""
    lines = (folder / AUDIT_LOG).read_text().splitlines()
    each = (json.loads(line) for line in lines if line.endswith("}"))
    writes = [_write(event) for event in each if event["verb"] in CHANGES and "responseStatus" in event]
    chosen = [write for write in writes if (write.resource, write.namespace) == (resource, namespace)]
    return sorted(chosen, key=lambda write: write.at)


def _write(event: dict[str, Any]) -> AuditedWrite:
    about = event["objectRef"]
    (credential,) = event["user"].get("extra", {}).get(CREDENTIAL, [""])
    return AuditedWrite(
        datetime.fromisoformat(event["requestReceivedTimestamp"]),
        credential,
        event["verb"],
        about["resource"],
        about.get("namespace", ""),
        about.get("name", ""),
        event["responseStatus"].get("code", 0),
        event.get("requestObject", {}),
    )
