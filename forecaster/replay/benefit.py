"""Whether a policy helped a workload: better, same or worse than the HPA alone, by one definition. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.replay.account import Account

NOTABLE_DIFFERENCE = 0.05
"""Amounts closer than this share of each other count as equal."""
NOTHING_SHORT = 1e-6
"""Shares of the demand below this count as nothing: there is no shortage to remove."""
BENEFIT_MEANS = (
    "better, worse: less or more of the demand short than the HPA alone, at another target, leaves for the same "
    "pod-hours; where neither leaves any, fewer or more pod-hours. Differences up to 5 % are the same."
)


class Benefit(StrEnum):
    """What a policy was worth to a workload, beside the HPA alone."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"


def benefit(plain: Account, ours: Account, equal: Account | None) -> Benefit:
    """`BENEFIT_MEANS` in numbers: `plain` is the HPA at its own targets, `equal` at the pod-hours of `ours`.

    Where the HPA spends as many at none of its targets, `equal` is None: more pod-hours have to leave less short, fewer
    must not leave more, and what is more of one and less of the other is no comparison, and the same.
    """
    if not short(plain) and not short(ours):
        return _less_is_better(ours.pod_hours, plain.pod_hours)
    if equal is not None:
        return _less_is_better(short(ours), short(equal))
    missing = _less_is_better(short(ours), short(plain))
    if ours.pod_hours > plain.pod_hours:
        return Benefit.SAME if missing is Benefit.BETTER else Benefit.WORSE
    return Benefit.SAME if missing is Benefit.WORSE else Benefit.BETTER


def short(one: Account) -> float:
    """Demand above what the ready pods carried, in its unit times hours; 0 where that is nothing."""
    return one.missing if one.missing > NOTHING_SHORT * one.demand else 0.0


def _less_is_better(ours: float, theirs: float) -> Benefit:
    if ours > theirs * (1 + NOTABLE_DIFFERENCE):
        return Benefit.WORSE
    return Benefit.BETTER if theirs > ours * (1 + NOTABLE_DIFFERENCE) else Benefit.SAME
