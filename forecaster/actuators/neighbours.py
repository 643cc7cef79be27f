"""CycleNeighbours: objects of KEDA, VPAs and HPAs, read once a cycle, and again right before each write.

A cycle decides by its first reading; writes follow one after the other, for up to a minute. Objects created meanwhile
are known by their watch: the write is left to the next cycle, which decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.collection import Key
from forecaster.kube.watch import Followed
from forecaster.resources.neighbours import HPAS, SCALED_OBJECTS, VPAS, Neighbours, neighbours_of

NeighboursAt: TypeAlias = "Callable[[datetime], Neighbours]"
"""Return the other autoscalers at the instant of a cycle. Raises ApiError where nothing answers."""


class Concern(NamedTuple):
    """Other autoscalers that a write must respect."""

    paths: frozenset[str]
    """API paths of their collections."""
    resource: str = ""
    """Resource whose requests a VPA must not write; empty for any resource."""


NOT_WATCHED: Mapping[WorkloadId, Collection[Key]] = MappingProxyType({})


class CycleNeighbours:
    """Other autoscalers in some collections of one cluster, read once a cycle (`NeighboursAt`)."""

    def __init__(
        self,
        client: ApiClient,
        paths: Sequence[str],
        followed: Followed | None = None,
        hpas: Mapping[WorkloadId, Collection[Key]] = NOT_WATCHED,
    ) -> None:
        """`hpas` are the watched HPAs of each workload; another thread may change them."""
        self._client, self._paths, self._followed, self._hpas = client, paths, followed, hpas
        self._known: tuple[datetime, Neighbours] | None = None
        self._scaling: Mapping[WorkloadId, frozenset[Key]] = {}

    def begin(self) -> None:
        """Begin a cycle: objects created from now on are new to it, unless it reads after that."""
        self._known = None
        self._scaling = {id_: frozenset(keys) for id_, keys in list(self._hpas.items())}

    def __call__(self, now: datetime) -> Neighbours:
        """Asked once for all effects of a cycle; a cycle in which none needs them asks nothing."""
        if self._known is None or self._known[0] != now:
            self._known = (now, neighbours_of(self._client, self._paths, self._followed))
        return self._known[1]

    def since(self, id_: WorkloadId, concern: Concern) -> str:
        """Name the controllers of a workload that were not there when this cycle began; empty without any.

        Only watched collections can change within a cycle: the others were listed in it.
        """
        new = frozenset(self._hpas.get(id_, ())) - self._scaling.get(id_, frozenset())
        reasons = [f"HPA {name} scales it" for _, name in sorted(new) if HPAS in concern.paths]
        if self._known is not None:
            known = self._known[1]
            reasons += sorted({*_words(self._now(id_, known), id_, concern)} - {*_words(known, id_, concern)})
        return "; ".join(reasons)

    def _now(self, id_: WorkloadId, listed: Neighbours) -> Neighbours:
        """Return the other autoscalers of one workload as they are watched, or as the last list had them."""
        watched, vpas = (self._followed.objects(path) if self._followed else None for path in (SCALED_OBJECTS, VPAS))
        scaled = listed.scaled_objects if watched is None else watched
        return Neighbours(
            scaled_objects=[scaled_object for scaled_object in scaled if scaled_object.target == id_],
            vpas=[vpa for vpa in (listed.vpas if vpas is None else vpas) if vpa.target == id_],
            unknown=listed.unknown,
        )


def _words(neighbours: Neighbours, id_: WorkloadId, concern: Concern) -> list[str]:
    scaled = neighbours.scaled_object(id_) if SCALED_OBJECTS in concern.paths else None
    sized = neighbours.writes_sizes(id_, concern.resource) if VPAS in concern.paths else ""
    return [*([f"{scaled} scales it"] if scaled else []), *([sized] if sized else [])]
