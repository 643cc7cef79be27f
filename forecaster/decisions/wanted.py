"""The count before the clamps: what the measured demand asks for, raised (or, if allowed, replaced) by the forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.gate import Standing
from forecaster.decisions.surge import within_radius
from forecaster.domain.decision import Hold, Reason
from forecaster.domain.outlook import Unknown
from forecaster.hpa.proposals import MetricProposal, NoRecommendation, Unmeasured, combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.decisions.asked import Asked
    from forecaster.decisions.gate import Gate
    from forecaster.domain.policy import HorizontalPolicy


class Wanted(NamedTuple):
    """A count, and which side asked for it: `forecast` is None without one, `unbounded` what it would be by itself."""

    replicas: int
    reactive: int
    forecast: int | None
    unbounded: int
    shut: str = ""
    """Why the forecast had no say; empty when it had one."""


def wanted_by(usable: Sequence[Asked], current: int, policy: HorizontalPolicy, gate: Gate | None) -> Wanted | Hold:
    """Both sides, joined; a signal that is missing now blocks going down, as in the HPA (docs/hpa.md §9)."""
    recommendation = combine([one.now for one in usable], current)
    ahead = max((one.ahead.replicas for one in usable if isinstance(one.ahead, MetricProposal)), default=None)
    shut = shut_by(policy, gate)
    if isinstance(recommendation, NoRecommendation):
        if ahead is None or ahead <= current or shut:
            blocked = "not going down while a signal is missing: " + missing(usable)
            return Hold(reason_of_missing(usable), blocked)
        return _bounded(ahead, current, ahead, current, policy)
    reactive = recommendation.replicas
    if ahead is None or shut:
        return Wanted(reactive, reactive, None, reactive, shut if ahead is not None else "")
    if policy.scale_in_by_forecast and not recommendation.partial:
        ahead = _everywhere(usable)
        return _bounded(_kept(usable, ahead, current), reactive, ahead, current, policy)
    return _bounded(max(reactive, _kept(usable, ahead, current)), reactive, ahead, current, policy)


def shut_by(policy: HorizontalPolicy, gate: Gate | None) -> str:
    """Why the forecast has no say; empty when it has one. Without a gate nobody judges it."""
    if not policy.gate or gate is None or gate.standing is Standing.ACTING:
        return ""
    return f"{gate.standing}: {gate.why}"


def _bounded(replicas: int, reactive: int, forecast: int, current: int, policy: HorizontalPolicy) -> Wanted:
    """The forecast's own move stays within the blast radius; what is measured may go as far as it asks."""
    near = within_radius(replicas, current, policy.surge)
    if replicas > reactive:
        near = max(near, reactive)
    elif replicas < reactive:
        near = min(near, reactive)
    else:
        near = replicas
    return Wanted(near, reactive, forecast, replicas)


def _everywhere(usable: Sequence[Asked]) -> int:
    """The forecast count in which a signal without a forecast asks for what it measures: not knowing lowers nothing."""
    sides = (one.now if isinstance(one.ahead, Unmeasured) else one.ahead for one in usable)
    return max(side.replicas for side in sides if isinstance(side, MetricProposal))


def _kept(usable: Sequence[Asked], ahead: int, current: int) -> int:
    """Pods that are there and still worth keeping stay, although they would not be asked for anew."""
    keep = max((one.keep for one in usable if one.keep is not None), default=ahead)
    return max(ahead, min(current, keep))


def reason_of_missing(usable: Sequence[Asked]) -> Reason:
    """Stale when a signal has samples that are too old, else no data."""
    stale = any(isinstance(one.outlook.measured, Unknown) and one.outlook.measured.stale for one in usable)
    return Reason.STALE if stale else Reason.NO_DATA


def missing(usable: Sequence[Asked]) -> str:
    """Which signals are missing, and why."""
    return "; ".join(f"{one.target.signal}: {one.now.message}" for one in usable if isinstance(one.now, Unmeasured))
