"""PredictiveAutoscaler and PredictivePolicy as they are on the wire, and the layers of policies that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import msgspec
from pydantic import ValidationError

from forecaster.domain.layers import Layer
from forecaster.domain.policy import PolicySelector
from forecaster.domain.workload import WorkloadId, scaled_workload
from forecaster.kube.objects import NOT_READ, WatchedMeta, Wire

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
    api_version: str = ""


class ResourceMeta(WatchedMeta, frozen=True):
    """Metadata with the count of changes of the specification."""

    generation: int = 0


class CustomResource(Wire, frozen=True):
    """Either kind; `spec` and `status` are JSON as they were written."""

    metadata: ResourceMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class WrittenPolicy(Mapping[str, Any]):
    """All of a `spec` but the target, in the names of the settings.

    The mode is read first, and the rest only when it is needed: of objects that change again and again, most versions
    are never in force.
    """

    def __init__(self, spec: bytes, mode: object) -> None:
        self.spec, self.mode = spec, mode

    @cached_property
    def read(self) -> dict[str, Any]:
        """Return the policy; one that cannot be read is refused with the reason."""
        try:
            stated = _wire.decode(self.spec)
        except NOT_READ as error:
            return {"spec": f"is not understood: {error}"}
        stated.pop("scaleTargetRef", None)
        return dict(in_settings(stated))

    def get(self, name: str, default: Any = None) -> Any:
        """Return one setting; the mode is known without reading the others."""
        return self.mode or default if name == "mode" else self.read.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self.read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)

    def __eq__(self, other: object) -> bool:
        """Whether it is written alike; of a policy of another kind, whether it states the same."""
        return self.spec == other.spec if isinstance(other, WrittenPolicy) else self.read == other

    __hash__ = None  # type: ignore[assignment]  # as a dict


@dataclass(frozen=True)
class WrittenLayer(Layer):
    """The layer of a PredictiveAutoscaler; its events are counted without reading them."""

    counted: int = 0

    @property
    def events(self) -> int:
        """Number of stated events."""
        return self.counted


class AutoscalerResource(msgspec.Struct, frozen=True, dict=True):
    """The needed fields of a PredictiveAutoscaler."""

    namespace: str
    name: str
    uid: str
    generation: int
    target: WorkloadId
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    """The specification as it was written; empty where it is not understood."""
    mode: Any = ""
    events: int = 0
    status: msgspec.Raw = msgspec.Raw(b"{}")
    """Status as last written."""
    fault: str = ""
    """Reason why it states nothing."""

    @cached_property
    def layer(self) -> Layer:
        """Return the layer: all of its `spec` but the target is a policy."""
        policy = WrittenPolicy(bytes(self.spec), self.mode)
        return WrittenLayer(f"{AUTOSCALER} {self.namespace}/{self.name}", policy, self.events)


class PolicyResource(msgspec.Struct, frozen=True):
    """The needed fields of a PredictivePolicy."""

    name: str
    selector: PolicySelector
    layer: Layer
    fault: str = ""
    """Reason why it states nothing."""
    uid: str = ""
    generation: int = 0
    status: msgspec.Raw = msgspec.Raw(b"{}")
    """Status as last written."""


class StatedEvents(Wire, frozen=True):
    """Events as they were written."""

    events: tuple[msgspec.Raw, ...] = ()


class SpecHead(Wire, frozen=True):
    """The fields read of every PredictiveAutoscaler."""

    scale_target_ref: TargetReference = TargetReference()
    mode: Any = ""
    horizontal: msgspec.Raw = msgspec.Raw(b"{}")

    def events(self) -> int:
        """Number of events; events of another form are refused together with the policy."""
        try:
            return len(_events.decode(self.horizontal).events)
        except NOT_READ:
            return 0


_wire, _head = msgspec.json.Decoder(dict[str, Any]), msgspec.json.Decoder(SpecHead)
_events = msgspec.json.Decoder(StatedEvents)
NO_POLICY_SELECTOR = PolicySelector(name="")
"""Selects nothing, because every workload has a name."""


def autoscaler_of_resource(resource: CustomResource) -> AutoscalerResource:
    """Reduce a PredictiveAutoscaler, reading its head."""
    meta, fault, spec, head = resource.metadata, "", resource.spec, SpecHead()
    try:
        head = _head.decode(spec)
    except NOT_READ as error:  # of another version; the schema of ours keeps it out
        fault = f"{AUTOSCALER} {meta.namespace}/{meta.name}: its spec is not understood: {error}"
        spec = msgspec.Raw(b"{}")
    target = scaled_workload(meta.namespace, head.scale_target_ref.kind, head.scale_target_ref.name)
    # Copied: parts of a page would keep all of it.
    copied = spec.copy(), head.mode, head.events(), resource.status.copy()
    return AutoscalerResource(meta.namespace, meta.name, meta.uid, meta.generation, target, *copied, fault)


def policy_of_resource(resource: CustomResource) -> PolicyResource:
    """Reduce a PredictivePolicy: all of its `spec` but the selector is a policy."""
    origin, fault, selector = f"{DEFAULTS} {resource.metadata.name}", "", NO_POLICY_SELECTOR
    spec: dict[str, Any] = {}
    try:
        spec = _wire.decode(resource.spec)
        selector = PolicySelector.model_validate(spec.pop("match", {}))
    except (*NOT_READ, ValidationError) as error:
        fault = f"{origin}: its spec is not understood: {error}"
    meta, layer = resource.metadata, Layer(origin, in_settings(spec))
    status = resource.status.copy()  # alone: it would keep the whole page that it came with
    return PolicyResource(meta.name, selector, layer, fault, meta.uid, meta.generation, status)


_WORD = re.compile(r"_([a-z0-9])")
_NESTED = (dict, list)
_CAPITAL = re.compile(r"([A-Z])")


def camel(name: str) -> str:
    """The name of a setting in an object.

    >>> camel("scale_in_by_forecast")
    'scaleInByForecast'
    """
    return _WORD.sub(lambda match: match[1].upper(), name)


@lru_cache(maxsize=1024)  # the API server drops other names than those of the schema
def snake(name: str) -> str:
    """The setting of a name in an object.

    >>> snake("scaleInByForecast")
    'scale_in_by_forecast'
    """
    return _CAPITAL.sub(lambda match: f"_{match[1].lower()}", name)


def in_settings(value: Any) -> Any:
    """A value of an object in the names of the settings, at every depth."""
    if isinstance(value, dict):
        return {snake(key): in_settings(part) if isinstance(part, _NESTED) else part for key, part in value.items()}
    return [in_settings(part) for part in value] if isinstance(value, list) else value
