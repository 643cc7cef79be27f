"""The blast radius: how far a forecast may move a count in one cycle, whatever it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts, Floats

FEW = 4
"""Pods that a forecast may always add or remove: as many as the HPA allows however small a workload is (its §10)."""


def limited(count: Counts, at: ClampContext) -> Counts:
    """No further from the current replicas than the radius, but as far as the measured demand asks, up or down."""
    if "surge" not in at.checked.policy.in_use:
        return count
    return within_radius(count, at.checked.current, at.checked.policy["surge"], at.desired.reactive)


def within_radius(count: Counts, current: Counts, surge: Floats, reactive: Counts) -> Counts:
    """The count [row], between what lies `surge` of `current` or `FEW` pods around it and `reactive`; NaN: no bound."""
    free = np.isnan(surge)
    radius = np.maximum(FEW, np.ceil(np.where(free, 0.0, surge) * current)).astype(np.int64)
    lowest, highest = np.minimum(current - radius, reactive), np.maximum(current + radius, reactive)
    return np.where(free, count, np.minimum(np.maximum(count, lowest), highest))


def sentence(step: Step) -> str:
    """Say how far the count may move."""
    return f"a forecast moves {step.policy('surge'):.0%} at most"
