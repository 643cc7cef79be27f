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
    )
