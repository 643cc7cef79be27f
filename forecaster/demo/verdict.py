"""The outcome in sentences, whichever way it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.demo.comparison import NOTABLE, in_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.demo.comparison import Compared
    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.account import Account


def verdict(compared: Mapping[WorkloadId, Compared]) -> list[str]:
    """What acting on the recommendations would have cost and brought, and whether that was worth a forecast."""
    everything = in_all(list(compared.values()))
    worse = [str(id_) for id_, one in compared.items() if one.worse]
    sentences = [_against_plain(everything), _against_equal(everything)]
    if worse:
        sentences.append(f"For the same pod-hours the forecast left more short on {', '.join(worse)}.")
    return sentences


def _against_plain(one: Compared) -> str:
    plain, floored = one.plain, one.floored
    return (
        f"With the recommended count as the HPA's floor: {_change(plain.pod_hours, floored.pod_hours)} pod-hours; "
        f"{minutes(floored)} instead of {minutes(plain)} workload-minutes short, "
        f"{percent(floored.missing_share)} instead of {percent(plain.missing_share)} of the demand above capacity."
    )


def _against_equal(one: Compared) -> str:
    if one.equal is None:
        return "Some HPA spends its pod-hours at none of the targets tried, so there is no figure at equal cost."
    return (
        "The plain HPA with targets lowered until it spends the same pod-hours: "
        f"{minutes(one.equal)} workload-minutes, {percent(one.equal.missing_share)}. "
        f"{_worth(one.floored.missing, one.equal.missing)}"
    )


def _worth(ours: float, equal: float) -> str:
    if abs(ours - equal) <= NOTABLE * equal:
        return "So on this load the forecast brought no more than those pods bring without it."
    if ours > equal:
        return "So on this load the forecast was the worse way to spend them."
    return f"So for the same cost the forecast removed {1 - ours / equal:.0%} of what was short."


def _change(before: float, after: float) -> str:
    return f"{(after - before) / before:+.1%}" if before else f"{after:.0f} instead of no"


def minutes(account: Account) -> str:
    """Minutes with any shortage."""
    return f"{account.short.total_seconds() / 60:.0f}"


def percent(share: float | None) -> str:
    """A share for a reader; a dash where there is none."""
    return "–" if share is None else f"{share:.3%}"
