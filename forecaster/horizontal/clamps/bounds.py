"""The bounds: `minReplicas` and `maxReplicas`, the policy's before those of the HPA (HPA rules §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import Cycle, Step
    from forecaster.horizontal.numbers import Counts


def limited(count: Counts, at: Cycle) -> Counts:
    """The count [row] within the bounds of its policy."""
    return bounded(count, at.seen.policy.min_replicas, at.seen.policy.max_replicas)


def bounded(count: Counts, lowest: Counts, highest: Counts) -> Counts:
    """The count [row] within bounds, of which the lowest is not above the highest."""
    return np.minimum(np.maximum(count, lowest), highest)


def sentence(step: Step) -> str:
    """Which bound, and which maximum the load would need where the policy asks for advice."""
    policy = step.decisions.inputs.policy
    lowest, highest = int(policy.min_replicas[step.row]), int(policy.max_replicas[step.row])
    rule = "TooFewReplicas" if step.before < lowest else "TooManyReplicas"
    clause = f"{rule}: {lowest} to {'any number of' if highest == MAX_INT32 else highest} replicas"
    breached = step.before > highest and step.policy.beyond_max == "advise"
    return f"{clause}; the load asks for a maximum of {step.before}" if breached else clause
