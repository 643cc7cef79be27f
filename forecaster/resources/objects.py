"""PredictiveAutoscaler and PredictivePolicy as they are on the wire, and the layers of policies that they are."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import ValidationError

from forecaster.domain.layers import Layer
from forecaster.domain.policy import PolicySelector
from forecaster.domain.workload import WorkloadId, scaled_workload
from forecaster.kube.objects import WatchedMeta, Wire
from forecaster.resources.spelling import in_settings

GROUP, VERSION = "autoscaling.forecaster.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
AUTOSCALER, AUTOSCALERS = "PredictiveAutoscaler", "predictiveautoscalers"
DEFAULTS, DEFAULT_POLICIES = "PredictivePolicy", "predictivepolicies"


def path_of_all(plural: str) -> str:
    """Return the API path of the objects in all namespaces."""
    return f"/apis/{API_VERSION}/{plural}"


class TargetReference(Wire, frozen=True):
    """The workload that is meant; the API server fills in the kind."""

    kind: str = "Deployment"
    name: str = ""


class ResourceMeta(WatchedMeta, frozen=True):
    """Metadata with the count of changes of the specification."""

    generation: int = 0


class CustomResource(Wire, frozen=True):
    """Either kind; `spec` and `status` are JSON as they were written."""

    metadata: ResourceMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class AutoscalerResource(msgspec.Struct, frozen=True):
    """What is kept of a PredictiveAutoscaler."""

    namespace: str
    name: str
    uid: str
    generation: int
    target: WorkloadId
    layer: Layer
    status: msgspec.Raw = msgspec.Raw(b"{}")
    """Status as last written."""
    fault: str = ""
    """Why it states nothing."""


class PolicyResource(msgspec.Struct, frozen=True):
    """What is kept of a PredictivePolicy."""

    name: str
    selector: PolicySelector
    layer: Layer
    fault: str = ""
    """Why it states nothing."""
    uid: str = ""
    generation: int = 0
    status: msgspec.Raw = msgspec.Raw(b"{}")
    """Status as last written."""


_wire = msgspec.json.Decoder(dict[str, Any])
NO_POLICY_SELECTOR = PolicySelector(name="")
"""No workload has no name."""


def autoscaler_of_resource(one: CustomResource) -> AutoscalerResource:
    """What is kept of a PredictiveAutoscaler: all of its `spec` but the target is a policy."""
    meta, origin = one.metadata, f"{AUTOSCALER} {one.metadata.namespace}/{one.metadata.name}"
    fault = ""
    try:
        spec = _wire.decode(one.spec)
        reference = msgspec.convert(spec.pop("scaleTargetRef", {}), TargetReference)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # of another version; the schema of ours keeps it out
        spec, reference, fault = {}, TargetReference(), f"{origin}: its spec is not understood: {error}"
    target = scaled_workload(meta.namespace, reference.kind, reference.name)
    layer = Layer(origin, in_settings(spec))
    status = one.status.copy()  # alone: it would keep the whole page that it came with
    return AutoscalerResource(meta.namespace, meta.name, meta.uid, meta.generation, target, layer, status, fault)


def policy_of_resource(one: CustomResource) -> PolicyResource:
    """What is kept of a PredictivePolicy: all of its `spec` but the selector is a policy."""
    origin, fault, selector = f"{DEFAULTS} {one.metadata.name}", "", NO_POLICY_SELECTOR
    spec: dict[str, Any] = {}
    try:
        spec = _wire.decode(one.spec)
        selector = PolicySelector.model_validate(spec.pop("match", {}))
    except (msgspec.DecodeError, UnicodeDecodeError, ValidationError) as error:
        fault = f"{origin}: its spec is not understood: {error}"
    meta, layer = one.metadata, Layer(origin, in_settings(spec))
    status = one.status.copy()  # alone: it would keep the whole page that it came with
    return PolicyResource(meta.name, selector, layer, fault, meta.uid, meta.generation, status)
