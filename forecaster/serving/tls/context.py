"""One TLS context of the server. A changed certificate or CA gives a new context; none is ever changed in place."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def server_context(certificate: Path, key: Path, proxy_ca: str = "") -> ssl.SSLContext:
    """TLS 1.2 and 1.3, HTTP/1.1, no session tickets; client certificates are asked for if there is a CA to verify them.

    Only the CA of proxies is loaded. With a second one nobody could tell which of them vouched for a certificate, and
    any user's certificate with the right name would make its owner a proxy, that is, everybody. A ticket would outlive
    the CA that the session was verified with.

    Raises:
        OSError: a file cannot be read or is no certificate, the key does not belong to it, or the CA is no CA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    if proxy_ca:
        context.load_verify_locations(cadata=proxy_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
