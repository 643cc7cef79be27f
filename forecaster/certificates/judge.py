"""Is a certificate still good, and which authorities have to be trusted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

BEGIN = "-----BEGIN CERTIFICATE-----"


def why_renew(certificate: str, names: Sequence[str], now: datetime, renew_before: timedelta) -> str:
    """Why this PEM text needs a successor; empty if it does not."""
    if not certificate:
        return "there is none"
    try:
        found = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError:
        return "it cannot be read"
    if missing := set(names) - _names_of(found):
        return f"it does not name {', '.join(sorted(missing))}"
    if now + renew_before >= found.not_valid_after_utc:
        return f"it ends at {found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    return ""


def bundle(*authorities: str) -> str:
    """These authorities, each once, the first first; a bundle may be given where one is expected."""
    certificates = [BEGIN + part.rstrip() + "\n" for text in authorities for part in text.split(BEGIN)[1:]]
    return "".join(dict.fromkeys(certificates))


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return set(names.get_values_for_type(x509.DNSName))
