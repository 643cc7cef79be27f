"""ApiCluster: the Secret, the APIServices and the webhook of a real cluster, through its API server."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from forecaster.certificates.renew import WEBHOOK, Registration, StoredCertificate
from forecaster.errors import ForecasterError
from forecaster.kube.client import ApiError
from forecaster.kube.objects import (
    ApiService,
    ApiServiceSpec,
    ObjectMeta,
    Secret,
    Webhook,
    WebhookClient,
    WebhookConfiguration,
    api_service_path,
    secret_path,
    webhook_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from forecaster.certificates.issue import Issued
    from forecaster.certificates.renew import Registered
    from forecaster.kube.client import ApiClient

T = TypeVar("T", bound="msgspec.Struct")


class ClusterError(ForecasterError):
    """The API server refused or did not answer; the text says what to do."""


class ChangedError(ClusterError):
    """The object was written by another client between our reading and our writing."""


class ApiCluster:
    """`CertificateStore` with the rights of an account: get and patch on one Secret and on what is registered."""

    def __init__(self, client: ApiClient, secret: str) -> None:
        self._client = client
        self._secret = secret_path(*secret.split("/"))

    def secret(self) -> StoredCertificate:
        """The Secret as it is.

        Raises:
            ClusterError: it does not exist, or may not be read.
        """
        found = self._found(self._secret, Secret)
        if found is None:
            raise ClusterError(f"{self._secret}: there is no such Secret; apply the manifest that has it, empty")
        data = found.data or {}
        return StoredCertificate(_text(data.get("ca.crt")), _text(data.get("tls.crt")), found.metadata.resource_version)

    def write_secret(self, issued: Issued, version: str) -> None:
        """Replace certificate, key and authority.

        Raises:
            ClusterError: this is not allowed.
            ChangedError: it is another version by now.
        """
        texts = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.authority}
        data = {key: text.encode("ascii") for key, text in texts.items()}
        self._patch(self._secret, Secret(ObjectMeta(resource_version=version), data))

    def registration(self, registered: Registered) -> Registration | None:
        """One object as it is; None if there is none.

        Raises:
            ClusterError: it may not be read.
        """
        if registered.kind == WEBHOOK:
            configured = self._found(webhook_path(registered.name), WebhookConfiguration)
            asked = [one.client_config for one in configured.webhooks] if configured else []
            version, clients = configured.metadata.resource_version if configured else "", asked
        else:
            found = self._found(api_service_path(registered.name), ApiService)
            version = found.metadata.resource_version if found else ""
            clients = [WebhookClient(found.spec.service, found.spec.ca_bundle)] if found else []
        if not clients:
            return None
        service = clients[0].service
        return Registration(str(service) if service else "", _text(clients[0].ca_bundle), version)

    def write_bundle(self, registered: Registered, bundle: str, version: str) -> None:
        """Replace the authorities that it trusts.

        Raises:
            ClusterError: this is not allowed.
            ChangedError: it is another version by now.
        """
        meta, trusted = ObjectMeta(resource_version=version), bundle.encode("ascii")
        if registered.kind == WEBHOOK:
            path = webhook_path(registered.name)
            found = self._found(path, WebhookConfiguration) or WebhookConfiguration()
            each = tuple(Webhook(one.name, WebhookClient(ca_bundle=trusted)) for one in found.webhooks)
            self._patch(path, WebhookConfiguration(meta, each), self._client.merge_strategically)
        else:
            self._patch(api_service_path(registered.name), ApiService(meta, ApiServiceSpec(ca_bundle=trusted)))

    def _found(self, path: str, kind: type[T]) -> T | None:
        """An object; None where there is none."""
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
    """The text of a field; empty where it is none, which is then replaced."""
    return value.decode("ascii") if value and value.isascii() else ""
