"""From the proposals of all metrics to one recommendation (HPA rules §9)."""

from collections.abc import Sequence
from typing import NamedTuple

from forecaster.hpa.proposals import Proposal
from forecaster.hpa.unmeasured import Unmeasured


class Recommendation(NamedTuple):
    """The largest proposal, the index of the metric credited for it, and whether some other metric had no answer.

    `replicas` may be negative (negative samples).
    """

    replicas: int
    metric: int
    partial: bool = False


class NoRecommendation(NamedTuple):
    """The metrics allow no change; `metric` is the index of the first one that failed, which the condition names."""

    metric: int


def combine(proposals: Sequence[Proposal | Unmeasured], current: int) -> Recommendation | NoRecommendation:
    """HPA rules §9: the largest valid proposal wins; a metric without an answer blocks scaling down, never up.

    The first metric to reach the maximum is credited, except that a running maximum of zero is replaced by any later
    proposal, even a smaller one. There is always at least one metric.
    """
    replicas, credited, first_failure = 0, None, None
    for index, proposal in enumerate(proposals):
        if isinstance(proposal, Unmeasured):
            first_failure = index if first_failure is None else first_failure
        elif replicas == 0 or proposal.replicas > replicas:
            replicas, credited = proposal.replicas, index
    if credited is None or (first_failure is not None and replicas < current):
        return NoRecommendation(first_failure or 0)
    return Recommendation(replicas, credited, partial=first_failure is not None)
