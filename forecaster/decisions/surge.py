"""The blast radius: how far a forecast may move a count in one cycle, whatever it says."""

from __future__ import annotations

import math

FEW = 4
"""Pods that a forecast may always add or take: what the HPA, too, allows however small a workload is (its §10)."""


def within_radius(wanted: int, current: int, share: float | None) -> int:
    """`wanted`, no further from `current` than `share` of it or `FEW` pods; None is no bound."""
    if share is None:
        return wanted
    radius = max(FEW, math.ceil(share * current))
    return min(max(wanted, current - radius), current + radius)
