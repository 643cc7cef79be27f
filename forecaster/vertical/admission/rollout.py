"""What a rolling update charges to a quota while both generations of pods exist, and the most it may (§6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.quota import matches, usage

if TYPE_CHECKING:
    from forecaster.vertical.admission.context import AdmissionContext, Rollout
    from forecaster.vertical.cluster_rules.pod import Pod
    from forecaster.vertical.cluster_rules.quota import Quota


def least_needed(rollout: Rollout, old: int, new: int) -> int:
    """The charge that a rollout cannot do without, one new pod at a time, in the unit of `old` and `new`.

    With j new pods there are still `replicas - unavailable - (j - 1)` old ones. That sum is convex in j, so its
    largest value is at the first new pod or at the last.
    """
    replicas = rollout.replicas
    if not replicas:
        return 0
    return max(_old_beside(rollout, j) * old + j * new for j in (1, replicas))


def most_needed(rollout: Rollout, old: int, new: int) -> int:
    """The charge of a rollout that nothing slows down: `surge` pods on top of the larger generation."""
    return rollout.replicas * max(old, new) + rollout.surge * min(old, new) if rollout.replicas else 0


def pods_until_stall(rollout: Rollout, old: int, new: int, left: int) -> int:
    """How many new pods fit in before a rollout stalls; all of them if it does not."""
    for j in range(1, rollout.replicas + 1):
        if _old_beside(rollout, j) * old + j * new > left:
            return j - 1
    return rollout.replicas


def _old_beside(rollout: Rollout, j: int) -> int:
    return max(rollout.replicas - rollout.unavailable - (j - 1), 0)


def most_charged_per_pod(quota: Quota, name: str, pod: Pod, before: Pod, context: AdmissionContext) -> int | None:
    """In milli-units; None where this quota does not limit it. Never below what a pod is charged today."""
    if name not in quota.tracked or not matches(quota, pod, context.server) or not context.rollout.replicas:
        return None
    old = usage(before, context.server).get(name, 0) if matches(quota, before, context.server) else 0
    replicas = context.rollout.replicas
    left = quota.hard[name] - max(quota.used.get(name, 0) - replicas * old, 0)
    if context.in_place:
        return max(left // replicas, old)
    beside_first = max(replicas - context.rollout.unavailable, 0) * old
    beside_last = max(1 - context.rollout.unavailable, 0) * old
    return max(min(left - beside_first, (left - beside_last) // replicas), old)
