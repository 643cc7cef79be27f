"""keep_certificate: one look at Secret and APIServices, and whatever it takes to set them right.

A new authority is trusted before the certificate that it signed is shown, and the one before it stays trusted until the
next renewal: while kubelets carry the Secret to the pods, old and new certificates are both believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from forecaster.certificates.issue import Issued, issue
from forecaster.certificates.judge import bundle, why_renew

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta


class Kept(NamedTuple):
    """What a Secret holds; empty texts where it holds nothing. `version` is what it must still have when written."""

    authority: str
    certificate: str
    version: str


class Registered(NamedTuple):
    """An APIService: `namespace/name` of the Service it points to, whom it trusts, and its version."""

    service: str
    bundle: str
    version: str


class Cluster(Protocol):
    """What is read and written. Raises `ChangedError` when somebody else wrote first."""

    def secret(self) -> Kept:
        """The Secret as it is."""

    def write_secret(self, issued: Issued, version: str) -> None:
        """Replace what it holds."""

    def api_service(self, name: str) -> Registered | None:
        """An APIService; None if there is none of that name."""

    def write_bundle(self, name: str, bundle: str, version: str) -> None:
        """Replace whom it trusts."""


class Wanted(NamedTuple):
    """What there should be."""

    service: str
    """`namespace/name` of our Service."""
    api_services: Sequence[str]
    valid: timedelta
    renew_before: timedelta

    @property
    def names(self) -> tuple[str, ...]:
        """What the API server calls us, and what clients inside the cluster do."""
        namespace, name = self.service.split("/")
        host = f"{name}.{namespace}.svc"
        return (host, f"{host}.cluster.local")


def keep_certificate(cluster: Cluster, wanted: Wanted, now: datetime) -> Iterator[str]:
    """Do what is needed, and say it, line by line; nothing when all is well."""
    kept = cluster.secret()
    why = why_renew(kept.certificate, wanted.names, now, wanted.renew_before)
    if not why:
        yield from _trust(cluster, wanted, kept.authority)
        return
    issued = issue(wanted.names, now, wanted.valid)
    yield from _trust(cluster, wanted, bundle(issued.authority, kept.authority), exactly=True)
    cluster.write_secret(issued, kept.version)
    yield f"new certificate until {now + wanted.valid:%Y-%m-%d %H:%M} UTC: {why}"


def _trust(cluster: Cluster, wanted: Wanted, authorities: str, *, exactly: bool = False) -> Iterator[str]:
    """Have these authorities trusted by the APIServices that are ours; others belong to somebody else."""
    for name in wanted.api_services:
        found = cluster.api_service(name)
        if found is None:
            yield f"APIService {name}: there is none"
        elif found.service != wanted.service:
            yield f"APIService {name}: left alone, it belongs to {found.service or 'the API server'}"
        elif not _trusted(found.bundle, authorities, exactly=exactly):
            cluster.write_bundle(name, authorities, found.version)
            yield f"APIService {name}: trusts our authority"


def _trusted(now: str, authorities: str, *, exactly: bool) -> bool:
    return bundle(now) == authorities if exactly else bundle(authorities) in bundle(now)
