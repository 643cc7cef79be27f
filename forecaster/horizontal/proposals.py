"""Replicas of each target, by measured demand and by the forecast, through one formula.

The formula is `hpa.proposals` on arrays [row] (HPA rules §8, §9).

Usage and targets are integer milli-units. Pods that are starting take their share of a high load and use nothing yet;
a pod without a sample does not occur: a total is what was measured of all ready pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecaster.demand.censored import BEYOND
from forecaster.horizontal.checked import Checked
from forecaster.horizontal.columns import Band, Counts, Flags, Floats, ceil_counts, millis, truncated
from forecaster.horizontal.inputs import Kind
from forecaster.horizontal.newsvendor import cut_off, newsvendor_replicas
from forecaster.horizontal.row import UNKNOWN
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32


class ReadyPods(NamedTuple):
    """Pods [row]: `ready` ones that share the usage, `starting` ones beside them, and the `current` replicas."""

    ready: Counts
    starting: Counts
    current: Counts

    @classmethod
    def of(cls, ready: Counts, current: Counts) -> ReadyPods:
        """Ready pods, of which no more than `current` count: the others are leaving; those that lack are starting."""
        staying = np.minimum(ready, current)
        return cls(staying, current - staying, current)

    def take(self, rows: Counts) -> ReadyPods:
        """Return the pods of these rows."""
        return ReadyPods(self.ready[rows], self.starting[rows], self.current[rows])


def proposal(kind: Kind, usage: Counts, goal: Counts, request: Counts, pods: ReadyPods, band: Band) -> Counts:
    """Replicas [row] that one target asks for at a total usage in milli-units, by its kind (HPA rules §8).

    `goal` is whole percent of `request`, or milli-units a pod. The count means nothing where no pod is ready, but for a
    demand that is divided by all pods.
    """
    if kind.of_all_pods:
        return per_pod_value(usage, goal, pods.current, band)
    if kind.of_request:
        return from_utilization(usage, pods.ready * request, pods.starting * request, goal, pods, band)
    return from_average(usage, goal, pods, band)


def from_utilization(
    usage: Counts, requests: Counts, starting_requests: Counts, percent: Counts, pods: ReadyPods, band: Band
) -> Counts:
    """HPA rules §8.1: replicas [row] by utilization; requests are sums over ready and over starting pods."""
    first = utilization_percent(usage, requests) / percent
    rows = _filled(first, pods)
    desired = _undisturbed(first, pods, band)
    if rows.size:
        whole = requests[rows] + starting_requests[rows]
        second = utilization_percent(usage[rows], whole) / percent[rows]
        desired[rows] = _with_starting(second, pods.take(rows), band.take(rows))
    return desired


def from_average(usage: Counts, target: Counts, pods: ReadyPods, band: Band) -> Counts:
    """HPA rules §8.2: replicas [row] by the average over pods."""
    first = truncated(usage, np.maximum(pods.ready, 1)) / target
    rows = _filled(first, pods)
    desired = _undisturbed(first, pods, band)
    if rows.size:
        filled = pods.take(rows)
        second = truncated(usage[rows], filled.ready + filled.starting) / target[rows]
        desired[rows] = _with_starting(second, filled, band.take(rows))
    return desired


def per_pod_value(usage: Counts, target: Counts, current: Counts, band: Band) -> Counts:
    """HPA rules §8.4: replicas [row] by one value shared by all pods; with no pods nothing holds the count."""
    amount, goal = usage.astype(np.float64), target.astype(np.float64)
    ratio = amount / np.maximum(goal * current, 1.0)
    return np.where(band.holds(ratio) & (current > 0), current, ceil_counts(amount / goal))


def utilization_percent(usage: Counts, requests: Counts) -> Counts:
    """HPA rules §8.1: whole percent [row], toward zero; the product wraps at 64 bits, the percentage at 32."""
    percent = truncated(usage * 100, np.maximum(requests, 1))
    if percent.size and (percent.max() > MAX_INT32 or percent.min() < MIN_INT32):
        return percent.astype(np.int32).astype(np.int64)
    return percent


def _undisturbed(ratio: Floats, pods: ReadyPods, band: Band) -> Counts:
    return np.where(band.holds(ratio), pods.current, ceil_counts(ratio * pods.ready))


def _filled(first: Floats, pods: ReadyPods) -> Counts:
    """The rows in which starting pods take their share."""
    return np.flatnonzero((first > 1.0) & (pods.starting > 0))


def _with_starting(second: Floats, pods: ReadyPods, band: Band) -> Counts:
    """The second ratio, over the starting pods too: it may shrink a rise and never turn it around."""
    desired = ceil_counts(second * (pods.ready + pods.starting))
    keeps = band.holds(second) | (second < 1.0) | ((second > 1.0) & (desired < pods.current))
    return np.where(keeps, pods.current, desired)


class Combined(NamedTuple):
    """HPA rules §9 [row]: the largest proposal, whether it may be followed, and whether some target has none."""

    replicas: Counts
    valid: Flags
    partial: Flags


def combined(proposals: Sequence[Counts], current: Counts, lower_bound: Flags | None = None) -> Combined:
    """Return one recommendation of proposals [target][row]; a target without one blocks scaling down, never up.

    So does a target with a `lower_bound` [row] as its proposal. A running maximum of zero is replaced by any later
    proposal, even a negative one.
    """
    if not proposals:
        nowhere = np.zeros(len(current), np.bool_)
        return Combined(np.full_like(current, UNKNOWN), nowhere, ~nowhere)
    replicas, partial = proposals[0], proposals[0] == UNKNOWN
    for counts in proposals[1:]:
        missing = counts == UNKNOWN
        partial = partial | missing
        replicas = np.where((replicas == 0) & ~missing, counts, np.maximum(replicas, counts))
    if lower_bound is not None:
        partial = partial | lower_bound
    return Combined(replicas, (replicas != UNKNOWN) & ~(partial & (replicas < current)), partial)


class Proposals(NamedTuple):
    """Replicas [target][row], `UNKNOWN` where a target has no answer."""

    reactive: list[Counts]
    """Proposals by measured demand."""
    forecast: list[Counts]
    """Proposals by the forecast; none without a measurement: the forecast would come from the same stale samples."""
    keep: list[Counts]
    """Sized by newsvendor: number of pods worth keeping, at least the proposed number. Empty otherwise."""


def proposals_of(checked: Checked, served: Counts) -> Proposals:
    """Return the proposals of each target; `served` is the number of pods [row] ready at the last decision."""
    pods = ReadyPods.of(checked.ready, checked.current)
    counted = (checked.ready > 0) & (checked.current > 0)
    proposals = Proposals([], [], [])
    for target in range(len(checked.rules.kinds)):
        known, awake = checked.known[target] & counted, counted | _woken(checked, target)
        reactive = np.where(known, _by_hpa(checked, target, checked.measured[target], pods), UNKNOWN)
        if checked.rules.sizing == "newsvendor":
            reactive = _newsvendor(
                checked, target, proposals, pods=pods, reactive=reactive, counted=counted, awake=awake, served=served
            )
        else:
            foreseen = checked.foreseen[target] & awake
            proposals.forecast.append(np.where(foreseen, _by_hpa(checked, target, checked.peak[target], pods), UNKNOWN))
        proposals.reactive.append(reactive)
    return proposals


def _woken(checked: Checked, target: int) -> Flags | bool:
    """Return the rows [row] at zero that their HPA may wake by this target, where demand is measured without pods."""
    kind = checked.rules.kinds[target]
    return (checked.current == 0) if checked.rules.woken and kind.survives_zero and kind.of_all_pods else False


def _by_hpa(checked: Checked, target: int, demand: Floats, pods: ReadyPods) -> Counts:
    """Replicas [row] that one target asks for at a total demand, by the HPA's formula."""
    goal, request = checked.targets.goal[target], checked.targets.request[target]
    return proposal(checked.rules.kinds[target], millis(demand), goal, request, pods, checked.policy.band)


def _newsvendor(
    checked: Checked,
    target: int,
    proposals: Proposals,
    *,
    pods: ReadyPods,
    reactive: Counts,
    counted: Flags,
    awake: Flags,
    served: Counts,
) -> Counts:
    """Add one target's proposal by newsvendor sizing, and return its present need.

    Where only one quantile is known the HPA's formula speaks. A row that may wake from zero needs no pod to be sized:
    a pod is full at its capacity, not at the HPA's target.
    """
    waking = checked.policy.may_wake if checked.rules.wakes else None
    sized = checked.distributed[target] & (counted if waking is None else counted | waking)
    add, keep = _sized(checked, target, served, sized)
    peaked = checked.foreseen[target] & awake & ~sized
    by_peak = _by_hpa(checked, target, checked.peak[target], pods) if peaked.any() else UNKNOWN
    proposals.forecast.append(np.where(sized, add, np.where(peaked, by_peak, UNKNOWN)))
    proposals.keep.append(np.where(sized, keep, UNKNOWN))
    if waking is None:
        return reactive
    filled = ceil_counts(checked.measured[target] / checked.targets.full[target])
    return np.where(waking & checked.distributed[target], filled, reactive)


def _sized(checked: Checked, target: int, served: Counts, sized: Flags) -> tuple[Counts, Counts]:
    """Return the replicas to have and to keep [row]; arbitrary numbers in rows that are not `sized`.

    The peak is at least the present demand, or more where pods are full.
    """
    if not checked.quantiles:
        return checked.current, checked.current
    if sized.all():
        return _newsvendor_of(checked, target, served, slice(None))
    rows = np.flatnonzero(sized)
    add, keep = checked.current.copy(), checked.current.copy()
    if rows.size:
        add[rows], keep[rows] = _newsvendor_of(checked, target, served, rows)
    return add, keep


def _newsvendor_of(checked: Checked, target: int, served: Counts, rows: Counts | slice) -> tuple[Counts, Counts]:
    """Return the newsvendor proposals of these rows alone."""
    measured, full = checked.measured[target][rows], checked.targets.full[target][rows]
    cut = cut_off(measured, checked.ready[rows], full) | cut_off(measured, served[rows], full)
    least = np.where(cut, measured * BEYOND, measured) / full
    peaks = checked.quantiles[target][:, rows] / full
    price = checked.policy.price[rows] if checked.policy.single_price is None else checked.policy.single_price
    return newsvendor_replicas(checked.rules.levels, peaks, price, at_least=least)
