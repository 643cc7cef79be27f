"""Objects of the API server as they are on the wire, with the fields that are read here; unknown ones are skipped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

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
    """The body of a refusal, and the object of an ERROR in a watch."""

    code: int = 0
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


class TrustedService(Wire, frozen=True):
    """Service called by the API server, and the certificates it trusts; an APIService without a service is local."""

    service: ServiceReference | None = None
    ca_bundle: bytes | None = None


class ApiService(Wire, frozen=True):
    """apiregistration.k8s.io/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: TrustedService = TrustedService()


API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def api_service_path(name: str) -> str:
    """The path of an APIService, e.g. of `v1beta1.external.metrics.k8s.io`."""
    return f"{API_SERVICES}/{name}"


def secret_path(namespace: str, name: str) -> str:
    """The path of a Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


class Webhook(Wire, frozen=True):
    """One webhook of a configuration."""

    name: str = ""
    client_config: TrustedService = TrustedService()


class WebhookConfiguration(Wire, frozen=True):
    """MutatingWebhookConfiguration of admissionregistration.k8s.io/v1."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] = ()


def webhook_path(name: str) -> str:
    """The path of a MutatingWebhookConfiguration."""
    return f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"


class OwnerReference(Wire, frozen=True):
    """An owner of an object."""

    kind: str = ""
    name: str = ""
    controller: bool = False


class WatchedMeta(Wire, frozen=True):
    """Metadata of an object that is watched."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    def controller(self) -> OwnerReference | None:
        """The owner that controls it."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class MetadataOnly(Wire, frozen=True):
    """An object of any kind, of which only metadata is needed, e.g. a ReplicaSet between a pod and its Deployment."""

    metadata: WatchedMeta


Quantities = dict[str, str | int | float]
"""Amounts by resource, as they are written."""


class ResourceRequirements(Wire, frozen=True):
    """Requests and limits."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerObject(Wire, frozen=True):
    """A container; an init container that is always restarted is a native sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class PodSpec(Wire, frozen=True):
    """Spec of a pod or of a template."""

    containers: tuple[ContainerObject, ...] | None = None
    init_containers: tuple[ContainerObject, ...] | None = None
    resources: ResourceRequirements | None = None
    """Resources of the pod as a whole, where it states them."""
    node_name: str = ""


class PodConditionObject(Wire, frozen=True):
    """PodScheduled, Ready and others."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class TerminatedObject(Wire, frozen=True):
    """Last termination of a container."""

    finished_at: datetime | None = None
    reason: str = ""


class ContainerStateObject(Wire, frozen=True):
    """A state of a container, as far as it matters here."""

    terminated: TerminatedObject | None = None


class ContainerStatusObject(Wire, frozen=True):
    """One container of a pod."""

    restart_count: int = 0
    last_state: ContainerStateObject = ContainerStateObject()


class PodStatusObject(Wire, frozen=True):
    """Phase and conditions of a pod."""

    phase: str = ""
    conditions: tuple[PodConditionObject, ...] = ()
    container_statuses: tuple[ContainerStatusObject, ...] = ()


class PodObject(Wire, frozen=True):
    """v1."""

    metadata: WatchedMeta
    spec: PodSpec = PodSpec()
    status: PodStatusObject = PodStatusObject()


class PodTemplate(Wire, frozen=True):
    """The template of a workload."""

    spec: PodSpec = PodSpec()


class ScalableSpec(Wire, frozen=True):
    """Spec of a Deployment, a StatefulSet, or a custom resource of their form."""

    replicas: int | None = None
    selector: dict[str, Any] | None = None
    template: PodTemplate = PodTemplate()


class ScalableStatus(Wire, frozen=True):
    """Pods that there are."""

    replicas: int | None = None
    ready_replicas: int = 0
    update_revision: str = ""
    """Revision of a StatefulSet's template."""


NOT_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding JSON of strangers: another form, no UTF-8, or nested deeper than can be followed."""
ANNOTATION_PREFIX = "forecaster.dev/"
"""Prefix of the labels and annotations that this project reads or writes."""
MIN_REPLICAS_BEFORE, REPLICAS_BEFORE = f"{ANNOTATION_PREFIX}min-replicas-before", f"{ANNOTATION_PREFIX}replicas-before"
COUNT_DIGITS = 10
"""Digits of the largest count that the API server accepts. A longer text may not even be a number for Python."""


def ours(marks: dict[str, str]) -> dict[str, str]:
    """Labels or annotations of ours among these."""
    return {name: value for name, value in marks.items() if name.startswith(ANNOTATION_PREFIX)}


class AnnotatedMeta(WatchedMeta, frozen=True):
    """Metadata with annotations, which may contain ours."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class LabelledOnly(Wire, frozen=True):
    """An object of any kind, of which only labels are needed, e.g. a node."""

    metadata: AnnotatedMeta


class Scalable(Wire, frozen=True):
    """A workload with a scale subresource and a pod template."""

    metadata: AnnotatedMeta
    spec: ScalableSpec = ScalableSpec()
    status: ScalableStatus = ScalableStatus()


class OwnedSpec(msgspec.Struct, frozen=True):
    """Fields of `spec` that a manager owns, as far as they matter here."""

    min_replicas: dict[str, Any] | None = msgspec.field(name="f:minReplicas", default=None)
    replicas: dict[str, Any] | None = msgspec.field(name="f:replicas", default=None)


class OwnedMarks(msgspec.Struct, frozen=True):
    """Our annotations or labels with an owner's value, if a manager owns them."""

    minimum: dict[str, Any] | None = msgspec.field(name=f"f:{MIN_REPLICAS_BEFORE}", default=None)
    count: dict[str, Any] | None = msgspec.field(name=f"f:{REPLICAS_BEFORE}", default=None)


class OwnedFields(msgspec.Struct, frozen=True):
    """`fieldsV1` of a manager."""

    metadata: dict[str, OwnedMarks] = msgspec.field(name="f:metadata", default_factory=dict)
    spec: OwnedSpec = msgspec.field(name="f:spec", default=OwnedSpec())


class ManagedFields(Wire, frozen=True):
    """Fields of one manager."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""
    """The text as it was written: an owner can write the year 0, or 10,000."""
    fields_v1: OwnedFields = OwnedFields()

    @property
    def at(self) -> datetime | None:
        """Instant of its last write; None where that is not known."""
        try:
            return datetime.fromisoformat(self.time)
        except ValueError:
            return None

    @property
    def copied(self) -> bool:
        """Whether the manager copied an object with our marks, as a backup does: it states no value of its own.

        A tool that applies a copy again and again does.
        """
        owned = self.fields_v1.metadata.values()
        return self.operation == "Update" and any(marks != OwnedMarks() for marks in owned)


class HorizontalPodAutoscalerMeta(AnnotatedMeta, frozen=True):
    """Annotations and label, which may describe a floor, and the managed fields of the writers."""

    managed_fields: tuple[ManagedFields, ...] = ()

    def ours(self) -> HorizontalPodAutoscalerMeta:
        """Return the metadata without the managedFields of others: for 10,000 HPAs that is 20 MiB."""
        return msgspec.structs.replace(
            self,
            labels=ours(self.labels),
            annotations=ours(self.annotations),
            managed_fields=tuple(own for own in self.managed_fields if own.fields_v1.spec.min_replicas is not None),
        )

    def owners_minimum(self, least: int) -> int:
        """Return the owner's minReplicas: the one that the annotation of a floor remembers, else `least`, the HPA's."""
        before = self.annotations.get(MIN_REPLICAS_BEFORE, "")
        return min(int(before), least) if before.isdecimal() and len(before) <= COUNT_DIGITS else least

    def writers(self) -> frozenset[str]:
        """Field managers that own `spec.minReplicas`."""
        managers = (entry for entry in self.managed_fields if not (entry.subresource or entry.copied))
        return frozenset(entry.manager for entry in managers if entry.fields_v1.spec.min_replicas is not None)


class HorizontalPodAutoscalerStatus(Wire, frozen=True):
    """Last action of the controller."""

    current_replicas: int = 0
    desired_replicas: int = 0


class HorizontalPodAutoscaler(Wire, frozen=True):
    """autoscaling/v2; `spec` is the JSON as it was written, for `hpa.manifest.spec_from_wire`."""

    metadata: HorizontalPodAutoscalerMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
