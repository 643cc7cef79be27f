"""Pods to spare, so that as many as are needed stay when the fullest node or zone is lost.

Of the pods a share `s` is in the fullest one. With `count / (1 - s)` pods spread alike, `count` are left without it; at
most as many again are added. Where all pods are in one, a single pod shows whether there is another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts, Floats

SLIVER = 1e-9
"""A sliver above a whole pod is the rounding of a quotient, not a reason for one more."""
MAX_SHARE = 0.5
"""The share in one domain beyond which no more than as many again are added."""


def limited(count: Counts, at: ClampContext) -> Counts:
    """The count [row] with pods to spare; the same where nothing is to be survived, or nothing known of places."""
    shares = at.checked.lost
    return with_spare(count, shares) if (shares > 0).any() else count


def with_spare(count: Counts, shares: Floats) -> Counts:
    """Counts [row] of which `count` are left without the domain that carries these shares [row]; NaN adds nothing."""
    known = np.where(shares > 0, np.minimum(shares, MAX_SHARE), 0.0)
    whole = np.ceil(count / (1.0 - known) - SLIVER).astype(np.int64)
    alone = (shares >= 1.0) & (count > 0)
    return np.where(alone, count + 1, np.maximum(whole, count))


def sentence(step: Step) -> str:
    """Say how many replicas are added, and for which loss."""
    domain, more = step.row.rules.survive, step.after - step.before
    return f"{more} more, so that {step.before} stay when the {domain} with the most of its pods is lost"
