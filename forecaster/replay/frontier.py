"""Cost against shortage: what a policy leaves short when it spends what another one spends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.replay.account import Account

if TYPE_CHECKING:
    from collections.abc import Iterable


def at_pod_hours(curve: Iterable[Account], spent: float) -> Account | None:
    """The account of a policy at `spent` pod-hours, linear between the two points of its curve around it.

    `curve` holds one policy at different settings over the same time. None where it spends more, or less, at all of
    them: outside the sweep there is no value.
    """
    points = sorted(curve, key=lambda one: (one.pod_hours, -one.missing))
    below = [one for one in points if one.pod_hours <= spent]
    above = [one for one in points if one.pod_hours >= spent]
    if not below or not above:
        return None
    return _between(below[-1], above[0], spent)


def at_missing(curve: Iterable[Account], missing: float) -> float | None:
    """The fewest pod-hours at which a policy leaves no more than `missing`, linear between the points of its curve.

    None where it leaves more at all of them. The leanest point counts as it is: how much leaner would do is not known.
    """
    points = sorted(curve, key=lambda one: (one.pod_hours, -one.missing))
    safe = next((i for i, one in enumerate(points) if one.missing <= missing), None)
    if not safe:
        return None if safe is None else points[0].pod_hours
    before, after = points[safe - 1], points[safe]
    weight = (before.missing - missing) / (before.missing - after.missing)
    return before.pod_hours + weight * (after.pod_hours - before.pod_hours)


def _between(low: Account, high: Account, spent: float) -> Account:
    if low.pod_hours == spent:
        return low
    weight = (spent - low.pod_hours) / (high.pod_hours - low.pod_hours)
    return Account(
        spent,
        low.measured,
        low.short + weight * (high.short - low.short),
        low.demand,
        low.missing + weight * (high.missing - low.missing),
        round(low.changes + weight * (high.changes - low.changes)),
    )
