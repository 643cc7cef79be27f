"""Certificates of a test cluster: its own authority, the front proxy's, and those that a test issues."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, NamedTuple

import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path


class KeyPair(NamedTuple):
    """Files of a certificate with its chain and of its key, in PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose files lie in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA(organization_name=name)
        self.certificate = folder / f"{name}.crt"
        self.key = folder / f"{name}.key"
        self._ca.cert_pem.write_to_path(self.certificate)
        self._ca.private_key_pem.write_to_path(self.key)

    @property
    def bundle(self) -> str:
        """The certificate as manifests carry it."""
        return base64.b64encode(self.certificate.read_bytes()).decode()

    def issue(
        self,
        file: str,
        *names: str,
        common_name: str | None = None,
        organization: str | None = None,
        until: datetime | None = None,
    ) -> KeyPair:
        """A certificate for clients and servers, written to `file`.crt and `file`.key; an old one is replaced."""
        # Go refuses a certificate with an empty list of names.
        names = names or ("client.test",)
        leaf = self._ca.issue_cert(*names, common_name=common_name, organization_name=organization, not_after=until)
        pair = KeyPair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        pair.certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        leaf.private_key_pem.write_to_path(pair.key)
        return pair


def signing_keys(folder: Path) -> KeyPair:
    """The public and the private key of service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / "tokens.pub", folder / "tokens.key")
    pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    pair.certificate.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return pair


def kubeconfig(file: Path, server: str, authority: Authority, user: KeyPair) -> Path:
    """Client configuration for a user with a certificate."""
    cluster = {"server": server, "certificate-authority-data": authority.bundle}
    identity = {"client-certificate": str(user.certificate), "client-key": str(user.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": identity}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "default"}}],
    }
    file.write_text(json.dumps(document))  # JSON is YAML
    return file
