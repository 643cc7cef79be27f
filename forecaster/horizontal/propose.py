"""What every target asks for: by the measured demand and by the forecast, through the same formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.demand.censored import BEYOND
from forecaster.horizontal.codes import UNKNOWN
from forecaster.horizontal.newsvendor import cut_off, newsvendor_replicas
from forecaster.horizontal.numbers import ceil_counts, millis
from forecaster.horizontal.proposals import ReadyPods, proposal

if TYPE_CHECKING:
    from forecaster.horizontal.checked import Checked
    from forecaster.horizontal.numbers import Counts, Flags, Floats


class Proposals(NamedTuple):
    """Replicas [target][row], `UNKNOWN` where a target has no answer."""

    reactive: list[Counts]
    """By the measured demand."""
    forecast: list[Counts]
    """By the forecast; nowhere without a measurement, since it would be made of the same stale samples."""
    keep: list[Counts]
    """Sized by newsvendor: pods that are worth keeping, at least as many as are asked for. Empty otherwise."""


def proposals_of(seen: Checked, served: Counts) -> Proposals:
    """What each target asks for; `served` pods [row] were ready when the row was decided last."""
    pods = ReadyPods.of(seen.ready, seen.current)
    counted = (seen.ready > 0) & (seen.current > 0)
    found = Proposals([], [], [])
    for target in range(len(seen.rules.kinds)):
        known, foreseen = seen.known[target] & counted, seen.foreseen[target] & counted
        reactive = np.where(known, _by_hpa(seen, target, seen.measured[target], pods), UNKNOWN)
        if seen.rules.sizing == "newsvendor":
            reactive = _newsvendor(seen, target, found, pods=pods, reactive=reactive, counted=counted, served=served)
        else:
            found.forecast.append(np.where(foreseen, _by_hpa(seen, target, seen.peak[target], pods), UNKNOWN))
        found.reactive.append(reactive)
    return found


def _by_hpa(seen: Checked, target: int, demand: Floats, pods: ReadyPods) -> Counts:
    """Replicas [row] that one target asks for at a total demand, by the HPA's formula."""
    goal, request = seen.targets.goal[target], seen.targets.request[target]
    return proposal(seen.rules.kinds[target], millis(demand), goal, request, pods, seen.policy.band)


def _newsvendor(
    seen: Checked, target: int, found: Proposals, *, pods: ReadyPods, reactive: Counts, counted: Flags, served: Counts
) -> Counts:
    """Adds what one target asks for by newsvendor sizing to `found`, and returns what it asks for now.

    Where only one quantile is known the HPA's formula speaks. A row that may wake from zero needs no pod to be sized:
    a pod is full at its capacity, not at the HPA's target.
    """
    waking = seen.policy.may_wake if seen.rules.wakes else None
    sized = seen.distributed[target] & (counted if waking is None else counted | waking)
    add, keep = _sized(seen, target, served, sized)
    peaked = seen.foreseen[target] & counted & ~sized
    by_peak = _by_hpa(seen, target, seen.peak[target], pods) if peaked.any() else UNKNOWN
    found.forecast.append(np.where(sized, add, np.where(peaked, by_peak, UNKNOWN)))
    found.keep.append(np.where(sized, keep, UNKNOWN))
    if waking is None:
        return reactive
    filled = ceil_counts(seen.measured[target] / seen.targets.full[target])
    return np.where(waking & seen.distributed[target], filled, reactive)


def _sized(seen: Checked, target: int, served: Counts, sized: Flags) -> tuple[Counts, Counts]:
    """Replicas to have and to keep [row], of any number where a row is not `sized`.

    The peak is at least what is there now, or more where pods are full.
    """
    if not seen.quantiles:
        return seen.current, seen.current
    if sized.all():
        return _newsvendor_of(seen, target, served, slice(None))
    rows = np.flatnonzero(sized)
    add, keep = seen.current.copy(), seen.current.copy()
    if rows.size:
        add[rows], keep[rows] = _newsvendor_of(seen, target, served, rows)
    return add, keep


def _newsvendor_of(seen: Checked, target: int, served: Counts, rows: Counts | slice) -> tuple[Counts, Counts]:
    """The same of these rows alone."""
    measured, full = seen.measured[target][rows], seen.targets.full[target][rows]
    cut = cut_off(measured, seen.ready[rows], full) | cut_off(measured, served[rows], full)
    share = (1.0 + seen.policy.headroom[rows]) / full
    least = np.where(cut, measured * BEYOND, measured) * share
    peaks = seen.quantiles[target][:, rows] * share
    price = seen.policy.price[rows] if seen.policy.single_price is None else seen.policy.single_price
    return newsvendor_replicas(seen.rules.levels, peaks, price, at_least=least)
