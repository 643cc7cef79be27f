"""ScaledObjects that read our numbers and would be left without a fallback while nothing here answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.published import METRICS
from forecaster.kube.collection import PAGE_ITEMS, listed
from forecaster.kube.objects import AnnotatedMeta, Wire
from forecaster.resources.neighbours import SCALED_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.kube.client import ApiClient

GRPC = "external"
"""Type of a trigger whose target KEDA asks of the scaler before each value: while it is away, no value fails."""

PUSHED = "external-push"
"""Type of a trigger of which KEDA forgets the scaler and its failures before a threshold is reached."""


class KedaTrigger(Wire, frozen=True):
    """One trigger of a ScaledObject."""

    type: str = ""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)

    def reads(self, service: str) -> bool:
        """Whether it reads our numbers; `service` is the name of our Service."""
        metadata = self.metadata
        match self.type:
            case kind if kind in {GRPC, PUSHED}:
                return service in metadata.get("scalerAddress", "")
            case "metrics-api":
                return any(f"/metrics/{name}/" in metadata.get("url", "") for name in METRICS)
            case "prometheus":
                return any(name in metadata.get("query", "") for name in METRICS)
            case _:
                return False


class Fallback(Wire, frozen=True):
    """Replicas while triggers fail, from a number of failures in a row on; KEDA's definition has other fields, too."""

    failure_threshold: int = 0


class TriggersSpec(Wire, frozen=True):
    """Specification of a ScaledObject, as far as it is needed."""

    triggers: tuple[KedaTrigger, ...] = ()
    fallback: Fallback | None = None


class TriggeredObject(Wire, frozen=True):
    """A ScaledObject with its triggers."""

    metadata: AnnotatedMeta
    spec: TriggersSpec = TriggersSpec()


def triggered_by(client: ApiClient, service: str) -> list[TriggeredObject]:
    """Return the ScaledObjects of the cluster that read our numbers. Raises ApiError."""
    scaled_objects = listed(client, SCALED_OBJECTS, TriggeredObject, limit=PAGE_ITEMS)
    return [scaled for scaled in scaled_objects if any(trigger.reads(service) for trigger in scaled.spec.triggers)]


def without_fallback(scaled_objects: Sequence[TriggeredObject], service: str) -> list[str]:
    """Say of each ScaledObject that reads our numbers what leaves it without a fallback; nothing where it has one."""
    return [why for scaled_object in scaled_objects if (why := _unguarded(scaled_object, service))]


def _unguarded(scaled_object: TriggeredObject, service: str) -> str:
    name = f"ScaledObject {scaled_object.metadata.namespace}/{scaled_object.metadata.name}"
    if scaled_object.spec.fallback is None:
        return f"{name} states no fallback"
    types = {trigger.type for trigger in scaled_object.spec.triggers if trigger.reads(service)}
    threshold = scaled_object.spec.fallback.failure_threshold
    if GRPC in types:
        return f"{name}: its fallback does not count failures of a trigger of type {GRPC}"
    if PUSHED in types and threshold:
        return f"{name}: failureThreshold {threshold} is never reached by a trigger of type {PUSHED}, state 0"
    return ""
