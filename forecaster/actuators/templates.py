"""Templates of workloads through the API server: what their new pods are made from. Wire types and requests only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.kube.objects import Wire
from forecaster.vertical.cluster_rules.manifest import pod_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.client import ApiClient
    from forecaster.sources.live_objects import ScalableKind
    from forecaster.vertical.cluster_rules.pod import Pod


class TemplateSpec(Wire, frozen=True):
    """What is needed of a workload's specification."""

    template: dict[str, Any]


class TemplateOwner(Wire, frozen=True):
    """A workload."""

    spec: TemplateSpec


class TemplateOwners(Wire, frozen=True):
    """The answer about one of them."""

    items: tuple[TemplateOwner, ...] = ()


class Templates:
    """Pod templates of the given kinds, which we may list."""

    def __init__(self, client: ApiClient, kinds: Iterable[ScalableKind]) -> None:
        self._client = client
        self._kinds = {one.kind: one for one in kinds}

    def of(self, id_: WorkloadId) -> Pod | None:
        """A new pod of a workload; None where that is gone, or of another kind. Raises ApiError and ManifestError."""
        kind = self._kinds.get(id_.kind)
        if kind is None:
            return None
        path = f"/apis/{kind.group}/{kind.version}/namespaces/{id_.namespace}/{kind.plural}"
        found = self._client.get(f"{path}?fieldSelector=metadata.name%3D{id_.name}", TemplateOwners)
        return next((pod_of(one.spec.template) for one in found.items), None)
