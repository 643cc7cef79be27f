"""A server certificate and the authority that signed it, which signs nothing else: its key is discarded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCKS_DIFFER = timedelta(hours=1)
"""Valid from this much before now, so that a clock that is late believes it, too."""


@dataclass(frozen=True, slots=True)
class Issued:
    """PEM texts."""

    authority: str
    certificate: str
    key: str


def end_of(certificate: str) -> datetime:
    """Return when this PEM certificate, or the first of its chain, expires.

    Raises:
        ValueError: it is no certificate.
    """
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def issue(names: Sequence[str], now: datetime, valid: timedelta) -> Issued:
    """A certificate for these DNS names, the first of which is its common name."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key, now, valid)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    certificate = _certificate(names, key.public_key(), (authority, authority_key), now, valid)
    return Issued(_text(authority), _text(certificate), private.decode())


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime, valid: timedelta) -> x509.Certificate:
    name = _name(f"forecaster {now:%Y-%m-%d %H:%M:%S}")
    builder = _builder(name, name, key.public_key(), now, valid)
    usage = _usage(key_cert_sign=True, crl_sign=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())


def _certificate(
    names: Sequence[str],
    key: ec.EllipticCurvePublicKey,
    signer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
    now: datetime,
    valid: timedelta,
) -> x509.Certificate:
    authority, signing_key = signer
    builder = _builder(_name(names[0][:64]), authority.subject, key, now, valid)
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(digital_signature=True), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), False),
    ]
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(signing_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + valid)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(**granted: bool) -> x509.KeyUsage:
    every = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{usage: granted.get(usage, False) for usage in every})


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
