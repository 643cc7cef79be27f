"""What the computing process tells the serving one at its start: one JSON argument."""

from __future__ import annotations

import msgspec


class PreviousAdapter(msgspec.Struct, frozen=True, omit_defaults=True):
    """The adapter that had the group of external metrics before us."""

    host: str
    port: int
    ca_file: str
    token_file: str


class Secure(msgspec.Struct, frozen=True, omit_defaults=True):
    """The door with TLS, authentication and authorisation."""

    certificate: str
    key: str
    kubeconfig: str = ""
    """Empty: the pod's own service account."""
    service: str = ""
    """`namespace/name` of our Service, by which the owner of an API group is told from others."""
    previous: PreviousAdapter | None = None


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything beside the table and the sockets."""

    stale_after_seconds: float | None = None
    """None: three intervals of the table."""
    secure: Secure | None = None
