"""The bounds `minReplicas` and `maxReplicas`; those of the policy go before those of the HPA (HPA rules §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.lazy_numpy import np
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts

KEPT_AWAKE = (
    "TooFewReplicas: min_replicas is 0, and no signal that decides is measured without pods, so nothing could bring "
    "the first one back; one that is, as requests at an ingress or the length of a queue, may take the last pod"
)


def limited(count: Counts, at: ClampContext) -> Counts:
    """The count [row] within the bounds of its policy."""
    return bounded(count, at.checked.policy.min_replicas, at.checked.policy.max_replicas)


def bounded(count: Counts, lowest: Counts, highest: Counts) -> Counts:
    """The count [row] within bounds, of which the lowest is not above the highest."""
    return np.minimum(np.maximum(count, lowest), highest)


def sentence(step: Step) -> str:
    """Say which bound applies, and which maximum the load would need."""
    rules = step.row.rules
    lowest, highest = rules.lowest, rules.highest
    rule = "TooFewReplicas" if step.before < lowest else "TooManyReplicas"
    if lowest == 1 and rules.may_sleep and step.before < 1:
        return KEPT_AWAKE
    clause = f"{rule}: {lowest} to {'any number of' if highest == MAX_INT32 else highest} replicas"
    return f"{clause}; the load asks for a maximum of {step.before}" if step.before > highest else clause
