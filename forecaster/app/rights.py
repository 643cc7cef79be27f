"""For `forecaster doctor`: rights that the account lacks, and ScaledObjects that would be left without a fallback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forecaster.app.compose import observed_cluster_client
from forecaster.domain.published import METRICS
from forecaster.domain.report import Check
from forecaster.errors import ForecasterError
from forecaster.kube.client import ApiClient
from forecaster.kube.collection import PAGE_ITEMS, listed
from forecaster.kube.config import client_config_source, is_pod
from forecaster.kube.objects import AnnotatedMeta, Wire
from forecaster.kube.rights import SERVICE, missing, rights_of
from forecaster.resources.neighbours import SCALED_OBJECTS

if TYPE_CHECKING:
    from forecaster.config.settings import Settings

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
    replicas: int = 0


class TriggersSpec(Wire, frozen=True):
    """Specification of a ScaledObject, as far as it is needed."""

    triggers: tuple[KedaTrigger, ...] = ()
    fallback: Fallback | None = None
    min_replica_count: int = 0


class TriggeredObject(Wire, frozen=True):
    """A ScaledObject with its triggers."""

    metadata: AnnotatedMeta
    spec: TriggersSpec = TriggersSpec()


def _unguarded(scaled_object: TriggeredObject, service: str) -> str:
    """Say what leaves a ScaledObject that reads our numbers without a fallback; empty where it has one."""
    name = f"ScaledObject {scaled_object.metadata.namespace}/{scaled_object.metadata.name}"
    fallback = scaled_object.spec.fallback
    if fallback is None:
        return f"{name} states no fallback"
    if fallback.replicas == scaled_object.spec.min_replica_count == 0:
        return f"{name}: by a fallback of 0 replicas KEDA scales to 0 while triggers fail, state 1 or more"
    types = {trigger.type for trigger in scaled_object.spec.triggers if trigger.reads(service)}
    if GRPC in types:
        return f"{name}: its fallback does not count failures of a trigger of type {GRPC}"
    if PUSHED in types and (threshold := fallback.failure_threshold):
        return f"{name}: failureThreshold {threshold} is never reached by a trigger of type {PUSHED}, state 0"
    return ""


def rights_checks(settings: Settings) -> list[Check]:
    """One line for each mode that is on, where an API server is known."""
    return [_checked(settings, mode, kubeconfig) for mode, kubeconfig in modes_of(settings) if kubeconfig or is_pod()]


def modes_of(settings: Settings) -> Iterator[tuple[str, Path | None]]:
    """Modes with the client configuration by which each is carried out; None: the pod's own account."""
    secure = settings.serving.secure
    if settings.kubernetes.live != "off" and settings.source.kind == "prometheus":
        yield "observe", settings.kubernetes.kubeconfig or secure.kubeconfig
    if secure.enabled:
        yield "publish", secure.kubeconfig
    if settings.state.secret:
        yield "state", settings.acting.kubeconfig
    if settings.resources.enabled:
        yield "resources", settings.kubernetes.kubeconfig or secure.kubeconfig
    sized = settings.resize
    enabled = {"floor": settings.floor.enabled, "scale": settings.scale.enabled, "vertical": sized.enabled}
    for mode, on in (enabled | {"initial": sized.initial}).items():
        if on:
            yield mode, settings.acting.kubeconfig


def fallback_checks(settings: Settings) -> list[Check]:
    """Whether KEDA has a fallback for each ScaledObject that reads us; nothing where they may not be listed."""
    client, service = observed_cluster_client(settings), (settings.serving.secure.service or SERVICE).rpartition("/")[2]
    if client is None:
        return []
    try:
        with closing(client.configured()) as connected:
            scaled = listed(connected, SCALED_OBJECTS, TriggeredObject, limit=PAGE_ITEMS)
            users = [each for each in scaled if any(trigger.reads(service) for trigger in each.spec.triggers)]
    except ForecasterError:
        return []
    if faults := [why for user in users if (why := _unguarded(user, service))]:
        remedy = "state `fallback`, and a trigger of type external-push, metrics-api or prometheus: docs/integrate.md"
        return [Check("fallbacks of KEDA", ok=False, detail="; ".join(faults), remedy=remedy)]
    return [Check("fallbacks of KEDA", ok=True, detail=f"each of {len(users)} ScaledObjects has one")] if users else []


def _checked(settings: Settings, mode: str, kubeconfig: Path | None) -> Check:
    """Report each missing right, with its consequence."""
    name = f"rights of mode {mode}"
    needed = rights_of(SERVICE, (mode,), namespace=settings.acting.lease.split("/")[0])
    try:
        with closing(ApiClient(client_config_source(kubeconfig), connections=1).configured()) as client:
            lacking = missing(client, needed)
    except ForecasterError as error:
        return Check(name, ok=False, detail=str(error), remedy="mend the client configuration, or the API server")
    if not lacking:
        return Check(name, ok=True, detail=f"all {sum(len(right.verbs) for right in needed)} are there")
    part = "base" if mode in {"observe", "publish", "state"} else f"components/{mode}"
    remedy = f"apply deploy/{part}/rights.yaml, or bind its roles to the account of this client configuration"
    return Check(name, ok=False, detail="; ".join(map(str, lacking)), remedy=remedy)
