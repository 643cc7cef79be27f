"""The most that one pod may be charged so that a quota lets the whole change through (§6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.vertical.rules.quota import matches, usage

if TYPE_CHECKING:
    from forecaster.vertical.admission.surroundings import Surroundings
    from forecaster.vertical.rules.pod import Pod
    from forecaster.vertical.rules.quota import Quota


def most_per_pod(quota: Quota, name: str, pod: Pod, before: Pod, around: Surroundings) -> int | None:
    """In milli-units; None where this quota does not limit it. Never below what a pod is charged today."""
    if name not in quota.tracked or not matches(quota, pod, around.server) or not around.rollout.replicas:
        return None
    old = usage(before, around.server).get(name, 0) if matches(quota, before, around.server) else 0
    replicas = around.rollout.replicas
    room = quota.hard[name] - max(quota.used.get(name, 0) - replicas * old, 0)
    if around.in_place:
        return max(room // replicas, old)
    beside_first = max(replicas - around.rollout.unavailable, 0) * old
    beside_last = max(1 - around.rollout.unavailable, 0) * old
    return max(min(room - beside_first, (room - beside_last) // replicas), old)
