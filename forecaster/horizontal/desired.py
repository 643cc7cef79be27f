"""The count before the clamps: what the measured demand asks for, raised (or, if allowed, replaced) by the forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.horizontal.codes import INCOMPLETE, UNKNOWN
from forecaster.horizontal.proposals import combined

if TYPE_CHECKING:
    from forecaster.horizontal.checked import Checked
    from forecaster.horizontal.numbers import Counts, Flags
    from forecaster.horizontal.proposals import Proposals


class Desired(NamedTuple):
    """Reactive and forecast replicas, and the two joined, [row] each."""

    reactive: Counts
    """Replicas by measured demand; the current ones where a missing target blocks going down."""
    forecast: Counts
    """Replicas by the forecast, `UNKNOWN` where it has no say."""
    joined: Counts
    """Replicas by both."""
    measured: Flags
    """Whether any target has an answer now."""
    blocked: Flags
    """Whether nothing may be said: a target is missing or incomplete, and no forecast raises the count."""
    shut: Flags
    """Whether there is a forecast and the gate keeps it from having its say."""


def desired_of(seen: Checked, proposals: Proposals, acting: Flags) -> Desired:
    """Join both sides; a target that is missing or incomplete blocks going down, as in the HPA (HPA rules §9)."""
    incomplete = seen.unseen == INCOMPLETE
    recommended = combined(proposals.reactive, seen.current, incomplete.any(axis=0) if incomplete.any() else None)
    highest = _highest(proposals.forecast, seen.current)
    there = highest != UNKNOWN
    says = there & acting
    reactive = np.where(recommended.valid, recommended.replicas, seen.current)
    forecast = np.where(says, highest, UNKNOWN)
    replaced = None
    if seen.rules.scale_in_by_forecast:
        replaced = says & recommended.valid & ~recommended.partial
        forecast = np.where(replaced, _everywhere(proposals, seen.current), forecast)
    kept = _kept(proposals, forecast, seen.current)
    joined = np.maximum(reactive, kept)
    if replaced is not None:
        joined = np.where(replaced, kept, joined)
    return Desired(
        reactive=reactive,
        forecast=forecast,
        joined=joined,
        measured=recommended.replicas != UNKNOWN,
        blocked=~recommended.valid & (forecast <= seen.current),
        shut=there & ~acting & recommended.valid,
    )


def _highest(counts: list[Counts], current: Counts) -> Counts:
    """The largest of counts [target][row]; `UNKNOWN` where none is known."""
    if not counts:
        return np.full_like(current, UNKNOWN)
    highest = counts[0]
    for one in counts[1:]:
        highest = np.maximum(highest, one)
    return highest


def _everywhere(proposals: Proposals, current: Counts) -> Counts:
    """The forecast count [row] in which a target without a forecast asks for what it measures.

    Not knowing lowers nothing.
    """
    sides = zip(proposals.reactive, proposals.forecast, strict=True)
    return _highest([np.where(ahead == UNKNOWN, now, ahead) for now, ahead in sides], current)


def _kept(proposals: Proposals, forecast: Counts, current: Counts) -> Counts:
    """The forecast count [row] without giving back pods that are there and still worth keeping."""
    if not proposals.keep:
        return forecast
    keep = np.minimum(current, _highest(proposals.keep, current))
    return np.where(forecast == UNKNOWN, UNKNOWN, np.maximum(forecast, keep))
