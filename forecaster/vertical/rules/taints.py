"""Taints and tolerations (§6.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.vertical.rules.placement import Taint, Toleration

REPELLING = frozenset({"NoSchedule", "NoExecute"})


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Rules §6.13: the first taint that keeps a pod away; PreferNoSchedule never does."""
    for taint in taints:
        if taint.effect in REPELLING and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Rules §6.13: effect empty or equal, key equal (or empty, with Exists), and Exists or the same value."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and bool(toleration.key) and toleration.value == taint.value
