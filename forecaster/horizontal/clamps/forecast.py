"""The forecast: it raises the count of measured demand, and lowers it where the policy says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts


def limited(count: Counts, at: ClampContext) -> Counts:
    """Return the larger side, by `desired`."""
    del count
    return at.desired.joined


def sentence(step: Step) -> str:
    """Say by which rule of sizing the count was raised or lowered."""
    side = "raises" if step.after > step.before else "lowers"
    quantile = step.policy("quantile")
    if step.row.rules.newsvendor:
        price = 1 - quantile
        return f"{side} what the measured demand asks for: each pod is expected to be used for {price:.0%} or more"
    return f"the p{quantile * 100:g} of the coming peak {side} what the measured demand asks for"
