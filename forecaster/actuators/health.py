"""How well a workload is, and whether it is worse off since a change of ours. Pure.

Evidence is what can be compared: pods that both counts have and that do not serve, pods that restarted, and a signal of
errors. What is not known is no evidence, neither of harm nor of health.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from forecaster.domain.workload import WorkloadId


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is seen of one workload at one instant; None is not known."""

    wanted: int | None = None
    """Pods that are asked for."""
    ready: int | None = None
    """Pods that serve, with those that have not been ready for less than a minute."""
    restarted: int | None = None
    """Pods with a container that restarted lately; of new pods those where that happened more than once."""
    release: str = ""
    """What its pods are made from; it changes when its owner rolls something out."""
    errors: float | None = None
    """The signal of errors that its policy names."""
    limit: float | None = None
    """Above which that signal may speak; None: the policy names none."""
    failing: int | None = None
    """Pods that served and do not, on a node that answers: others that are missing say nothing of the count."""

    @property
    def told(self) -> bool:
        """Whether there is anything to compare with."""
        return not (self.ready is None and self.restarted is None and self.errors is None)

    @property
    def known(self) -> bool:
        """Whether nothing is missing."""
        return None not in {self.wanted, self.ready, self.restarted} and (self.limit is None or self.errors is not None)


UNKNOWN = Health()
HealthAt: TypeAlias = "Callable[[Mapping[WorkloadId, datetime], datetime], Mapping[WorkloadId, Health]]"
"""Return the health of workloads now, restarts counted since an instant each. Never raises: unread is unknown."""


def unseen(_since: Mapping[WorkloadId, datetime], _now: datetime) -> Mapping[WorkloadId, Health]:
    """Return no health: nothing is read here."""
    return {}


def worse(before: Health, now: Health, worse_by: float) -> str:
    """Why a workload is worse off than `before`, by more than `worse_by`, a share of its pods; empty where it is not.

    Only while its pods are made from the same release: what its owner rolled out meanwhile is no change of ours.
    """
    if before.release != now.release:
        return ""
    pods = _pods_worse(before, now, worse_by) if before.release else ""
    return pods or errors_worse(before.errors, now.errors, now.limit, worse_by)


def errors_worse(before: float | None, now: float | None, limit: float | None, worse_by: float) -> str:
    """Why a signal of errors is worse: above its limit, and by `worse_by`, a share, above what it was."""
    if before is None or now is None or limit is None or now <= limit or now <= before * (1 + worse_by):
        return ""
    return f"errors are {now:.3g}, above the limit of {limit:g}, and were {before:.3g}"


def _pods_worse(before: Health, now: Health, worse_by: float) -> str:
    """Say how many more pods than before are unready or restarted, among those in both counts; empty if none."""
    if before.wanted is None or now.wanted is None:
        return ""
    kept = min(before.wanted, now.wanted)
    allowed = worse_by * max(kept, 1)
    if before.ready is not None and now.ready is not None:
        seen = ((now.ready, now.failing), (before.ready, before.failing))
        missing, were = (min(max(0, kept - ready), kept if failing is None else failing) for ready, failing in seen)
        if missing - were > allowed:
            return f"{missing} of {kept} pods are not ready, {were} were before"
    if before.restarted is not None and now.restarted is not None and now.restarted - before.restarted > allowed:
        return f"{now.restarted} pods restarted, {before.restarted} had before"
    return ""
