"""Policies stated by objects of the cluster: watches of the custom resources, and the last known statements."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  msgspec resolves the annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.domain.workload import WorkloadId  # noqa: TC001  msgspec resolves the annotations
from forecaster.kube.collection import Collection
from forecaster.kube.watch import Watch
from forecaster.resources.annotations import ANNOTATION_SETTINGS, PAUSED
from forecaster.resources.objects import (
    AUTOSCALERS,
    DEFAULT_POLICIES,
    AutoscalerResource,
    CustomResource,
    PolicyResource,
    autoscaler_of_resource,
    path_of_all,
    policy_of_resource,
)
from forecaster.resources.stated import AnnotatedObject  # noqa: TC001  msgspec resolves the annotations

if TYPE_CHECKING:
    from collections.abc import Callable


class StatedPolicies:
    """PredictiveAutoscalers and PredictivePolicies, as they were known last.

    A cluster without their definitions, or without the right to list them, has none; the state of each watch says why.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        plurals = (AUTOSCALERS, DEFAULT_POLICIES)
        autoscalers, policies = (Collection(path_of_all(plural), CustomResource) for plural in plurals)
        self.autoscalers = Watch(autoscalers, autoscaler_of_resource, clock=clock)
        self.policies = Watch(policies, policy_of_resource, clock=clock)

    @property
    def watches(self) -> tuple[Watch[Any, Any], ...]:
        """Return the two watches."""
        return self.autoscalers, self.policies


class StatedObjects(msgspec.Struct, frozen=True):
    """Objects of a cluster that state policies, by the collections that they are of."""

    hpas: tuple[AnnotatedObject, ...] = ()
    workloads: tuple[AnnotatedObject, ...] = ()
    autoscalers: tuple[AutoscalerResource, ...] = ()
    defaults: tuple[PolicyResource, ...] = ()
    labels: tuple[tuple[WorkloadId, Mapping[str, str]], ...] = ()
    """Labels of workloads."""

    def persisted(self) -> StatedObjects:
        """Return the objects without what states nothing and changes often: annotations of writes, statuses."""
        return StatedObjects(
            tuple(sorted(filter(None, map(_stating, self.hpas)))),
            tuple(sorted(filter(None, map(_stating, self.workloads)))),
            tuple(msgspec.structs.replace(autoscaler, status=msgspec.Raw(b"{}")) for autoscaler in self.autoscalers),
            tuple(msgspec.structs.replace(policy, status=msgspec.Raw(b"{}")) for policy in self.defaults),
            tuple(sorted(self.labels, key=lambda labels: labels[0])),
        )


@dataclass(slots=True)
class StatedBefore:
    """Last known stated policies, also from an earlier process; they apply to collections that are not listed yet."""

    objects: StatedObjects = field(default_factory=StatedObjects)

    def encoded(self) -> bytes:
        """Encode as JSON."""
        return msgspec.json.encode(self.objects.persisted(), enc_hook=lambda selector: selector.model_dump())

    def restore(self, persisted: bytes) -> None:
        """Restore the statements of an earlier process. Raises `msgspec.MsgspecError` where it is something else."""
        self.objects = msgspec.json.decode(persisted, type=StatedObjects, dec_hook=_read)


def _read(kind: Any, text: Any) -> Any:
    """A selector, which is no type of msgspec."""
    return kind.model_validate(text)


def _stating(annotated: AnnotatedObject) -> AnnotatedObject | None:
    annotations = {
        name: text for name, text in annotated.annotations.items() if name in ANNOTATION_SETTINGS or name == PAUSED
    }
    return annotated._replace(annotations=annotations) if annotations else None
