"""renew_certificate: one reading of the Secret and its registrations, and the writes that they need.

A new authority is trusted before the certificate that it signed is shown, and the one before it stays trusted until the
next renewal: while kubelets carry the Secret to the pods, old and new certificates are both believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from cryptography import x509

from forecaster.certificates.issue import Issued, issue
from forecaster.errors import ForecasterError
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.objects import (
    ApiService,
    ObjectMeta,
    Secret,
    TrustedService,
    Webhook,
    WebhookConfiguration,
    api_service_path,
    secret_path,
    webhook_path,
)

if TYPE_CHECKING:
    import msgspec

CERTIFICATE_HEAD = "-----BEGIN CERTIFICATE-----"


class StoredCertificate(NamedTuple):
    """Contents of a Secret; empty texts where it is empty. `version` must be unchanged when it is written."""

    authority: str
    certificate: str
    version: str


API_SERVICE, WEBHOOK = "APIService", "MutatingWebhookConfiguration"


class Registered(NamedTuple):
    """An object by which the API server asks us; as text its kind and name."""

    kind: str
    """`API_SERVICE` or `WEBHOOK`."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Registration(NamedTuple):
    """An APIService or a webhook: `namespace/name` of its Service, the authorities it trusts, and its version."""

    service: str
    bundle: str
    version: str


class CertificateStore(Protocol):
    """Reads and writes the Secret. Raises `ChangedError` when another client wrote first."""

    def secret(self) -> StoredCertificate:
        """The Secret as it is."""

    def write_secret(self, issued: Issued, version: str) -> None:
        """Replace the contents."""

    def registration(self, registered: Registered) -> Registration | None:
        """Return one object as it is; None if there is none."""

    def write_bundle(self, registered: Registered, bundle: str, version: str) -> None:
        """Replace the authorities that it trusts."""


class CertificateSpec(NamedTuple):
    """The certificate that there should be."""

    service: str
    """`namespace/name` of our Service."""
    registered: Sequence[Registered]
    valid: timedelta
    renew_before: timedelta

    @property
    def names(self) -> tuple[str, ...]:
        """DNS names of the Service: that of the API server, and that of clients inside the cluster."""
        namespace, name = self.service.split("/")
        host = f"{name}.{namespace}.svc"
        return (host, f"{host}.cluster.local")


def renew_certificate(store: CertificateStore, spec: CertificateSpec, now: datetime) -> Iterator[str]:
    """Renew the certificate if needed; yield a line for each action."""
    stored = store.secret()
    why = why_renew(stored, spec.names, now, spec.renew_before)
    if not why:
        yield from _trust(store, spec, stored.authority)
        return
    issued = issue(spec.names, now, spec.valid)
    yield from _trust(store, spec, bundle(issued.authority, stored.authority), exactly=True)
    store.write_secret(issued, stored.version)
    yield f"new certificate until {now + spec.valid:%Y-%m-%d %H:%M} UTC: {why}"


def _trust(store: CertificateStore, spec: CertificateSpec, authorities: str, *, exactly: bool = False) -> Iterator[str]:
    """Register these authorities as trusted where we are registered; other registrations stay unchanged."""
    for registered in spec.registered:
        registration = store.registration(registered)
        trusted = bundle(registration.bundle) if registration else ""
        if registration is None:
            yield f"{registered}: there is none"
        elif registration.service != spec.service:
            yield f"{registered}: left alone, it belongs to {registration.service or 'the API server'}"
        elif trusted != authorities if exactly else bundle(authorities) not in trusted:
            others = "" if exactly else trusted  # by another run at the same moment: pods show the one before still
            store.write_bundle(registered, bundle(authorities, others), registration.version)
            yield f"{registered}: trusts our authority"


def why_renew(stored: StoredCertificate, names: Sequence[str], now: datetime, renew_before: timedelta) -> str:
    """Say why this certificate needs a successor; empty if it does not."""
    if not stored.certificate:
        return "there is none"
    try:
        certificate = x509.load_pem_x509_certificate(stored.certificate.encode())
    except ValueError:
        return "it cannot be read"
    if missing := set(names) - _names_of(certificate):
        return f"it does not name {', '.join(sorted(missing))}"
    if not bundle(stored.authority):
        return "its authority, ca.crt of the Secret, is missing"
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now + renew_before >= end:
        return f"it ends at {end:%Y-%m-%d %H:%M} UTC"
    return f"it begins at {begin:%Y-%m-%d %H:%M} UTC only" if now < begin else ""


def bundle(*authorities: str) -> str:
    """These authorities, each once, the first first; a bundle may be given where one is expected."""
    certificates = [
        CERTIFICATE_HEAD + part.rstrip() + "\n" for text in authorities for part in text.split(CERTIFICATE_HEAD)[1:]
    ]
    return "".join(dict.fromkeys(certificates))


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return set(names.get_values_for_type(x509.DNSName))


T = TypeVar("T", bound="msgspec.Struct")


class ClusterError(ForecasterError):
    """The API server refused or did not answer; the text says what to do."""


class ChangedError(ClusterError):
    """The object was written by another client between our reading and our writing."""


class ApiCluster:
    """`CertificateStore` with the rights of an account: get and patch on one Secret and its registrations.

    Its methods raise `ClusterError` for what is not allowed, and those that write `ChangedError`.
    """

    def __init__(self, client: ApiClient, secret: str) -> None:
        self._client = client
        self._secret = secret_path(*secret.split("/"))

    def secret(self) -> StoredCertificate:
        """Return the Secret; raises ClusterError also where there is none."""
        secret = self._found(self._secret, Secret)
        if secret is None:
            raise ClusterError(f"{self._secret}: there is no such Secret; apply the manifest that has it, empty")
        meta, data = secret.metadata, secret.data or {}
        return StoredCertificate(_text(data.get("ca.crt")), _text(data.get("tls.crt")), meta.resource_version)

    def write_secret(self, issued: Issued, version: str) -> None:
        """Replace certificate, key and authority."""
        texts = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.authority}
        data = {key: text.encode("ascii") for key, text in texts.items()}
        self._patch(self._secret, Secret(ObjectMeta(resource_version=version), data))

    def registration(self, registered: Registered) -> Registration | None:
        """Return one object as it is; None if there is none."""
        configuration: WebhookConfiguration | ApiService | None
        if registered.kind == WEBHOOK:
            configuration = self._found(webhook_path(registered.name), WebhookConfiguration)
            clients = [webhook.client_config for webhook in configuration.webhooks] if configuration else []
        else:
            configuration = self._found(api_service_path(registered.name), ApiService)
            clients = [configuration.spec] if configuration else []
        if not configuration or not clients:
            return None
        service = clients[0].service
        return Registration(
            str(service) if service else "", _text(clients[0].ca_bundle), configuration.metadata.resource_version
        )

    def write_bundle(self, registered: Registered, bundle: str, version: str) -> None:
        """Replace the authorities that it trusts."""
        meta, trusted = ObjectMeta(resource_version=version), bundle.encode("ascii")
        if registered.kind == WEBHOOK:
            path = webhook_path(registered.name)
            configuration = self._found(path, WebhookConfiguration) or WebhookConfiguration()
            service = TrustedService(ca_bundle=trusted)
            webhooks = tuple(Webhook(webhook.name, service) for webhook in configuration.webhooks)
            self._patch(path, WebhookConfiguration(meta, webhooks), self._client.merge_strategically)
        else:
            self._patch(api_service_path(registered.name), ApiService(meta, TrustedService(ca_bundle=trusted)))

    def _found(self, path: str, kind: type[T]) -> T | None:
        """Return an object; None where there is none."""
        try:
            return self._client.get(path, kind)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise ClusterError(str(error)) from error

    def _patch(self, path: str, change: T, sent: Callable[[str, T, type[T]], T] | None = None) -> None:
        """Send a merge patch, or use `sent` to send the change."""
        try:
            (sent or self._client.patch)(path, change, type(change))
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                raise ChangedError(f"{error}; another client wrote it meanwhile, run this again") from error
            raise ClusterError(str(error)) from error


def _text(value: bytes | None) -> str:
    """Return the text of a field; empty where it is not text, in which case it is replaced."""
    return value.decode("ascii") if value and value.isascii() else ""
