"""How many pods of one controller may be down at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one controller in one loop of the updater.

    `tolerance` is how many may be missing; `disrupted` those evicted or being resized in this loop.
    """

    configured: int
    running: int
    tolerance: int
    disrupted: int = 0
    below_minimum: bool = False
    """Fewer live pods than must be there: resizes in place may be allowed, evictions are not."""

    @property
    def disruptable(self) -> bool:
        """Whether one more may go. A single disruption is always allowed when everything runs and none is tolerated."""
        enough = self.running - self.disrupted > self.configured - self.tolerance
        return enough or (self.configured == self.running and self.tolerance == 0 and self.disrupted == 0)

    def disrupt(self) -> Group:
        """One pod less."""
        return replace(self, disrupted=self.disrupted + 1)


def group_of(
    *,
    configured: int,
    live: int,
    running: int,
    tolerance: float,
    min_replicas: int,
    boosting: bool = False,
    skip_minimum: bool = False,
) -> Group | None:
    """The group, unless it has fewer live pods than it must have before anything is touched.

    `skip_minimum`: the updater resizes in place and was told not to mind disruption budgets.
    """
    below = live < min_replicas
    if below and not boosting and not skip_minimum:
        return None
    return Group(configured, running, int(float(configured) * tolerance), below_minimum=below and not boosting)


def can_evict(group: Group | None, *, pending: bool) -> bool:
    """A pod that does not run yet can always go."""
    return group is not None and (pending or (group.disruptable and not group.below_minimum))
