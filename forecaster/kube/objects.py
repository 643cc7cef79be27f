"""Objects of the API server as they are on the wire, with the fields that are read here; unknown ones are skipped."""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of an object; fields are called as in the API, and empty ones are left out."""


class ObjectMeta(Wire, frozen=True):
    """Metadata of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class ApiStatus(Wire, frozen=True):
    """The body of a refusal."""

    message: str = ""


class ConfigMap(Wire, frozen=True):
    """v1."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = msgspec.field(default_factory=dict)


class Secret(Wire, frozen=True):
    """v1; values are base64 on the wire and bytes here."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, bytes] | None = None


class ServiceReference(Wire, frozen=True):
    """The Service behind an API group."""

    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ApiServiceSpec(Wire, frozen=True):
    """Without a service the API server answers itself."""

    service: ServiceReference | None = None
    ca_bundle: bytes | None = None


class ApiService(Wire, frozen=True):
    """apiregistration.k8s.io/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ApiServiceSpec = ApiServiceSpec()


API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def api_service_path(name: str) -> str:
    """The path of an APIService, e.g. of `v1beta1.external.metrics.k8s.io`."""
    return f"{API_SERVICES}/{name}"


def secret_path(namespace: str, name: str) -> str:
    """The path of a Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"
