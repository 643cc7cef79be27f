"""CycleNeighbours: what KEDA and VPAs own, asked of the API server once a cycle, by whichever effect needs it first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from forecaster.resources.neighbours import neighbours_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from forecaster.kube.client import ApiClient
    from forecaster.kube.followed import Followed
    from forecaster.resources.neighbours import Neighbours

NeighboursAt: TypeAlias = "Callable[[datetime], Neighbours]"
"""Those at the instant of a cycle. Raises ApiError where nothing answers."""


class CycleNeighbours:
    """Those in some collections of one cluster, `NeighboursAt`."""

    def __init__(self, client: ApiClient, paths: Sequence[str], followed: Followed | None = None) -> None:
        self._client, self._paths, self._followed = client, paths, followed
        self._known: tuple[datetime, Neighbours] | None = None

    def __call__(self, now: datetime) -> Neighbours:
        """Asked once for all effects of a cycle; a cycle in which none needs them asks nothing."""
        if self._known is None or self._known[0] != now:
            self._known = (now, neighbours_of(self._client, self._paths, self._followed))
        return self._known[1]
