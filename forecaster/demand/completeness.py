"""Whether a measurement is complete: part of a sum is not the sum.

A value is incomplete where the server says that a part is missing, where samples cover a part of the window of its rate
only (after an outage of Prometheus, of a target, of a container), or where ready pods have no samples. It is a lower
bound then, and not learned from. What pods use to start is no demand: while ready pods are too young to count, the
usage of the others is a lower bound, too (HPA rules §6); what all of them use is learned from, and warm-up is taken out
of that. Pods that leave hand their load to others, and their rates show it a window later: until then a sum sags, and
would ask for the next scale-in. An amount that the pods cannot use is none at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.window import Block

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]

COMPLETE, PARTIAL_ANSWER, UNCOVERED, SILENT_PODS, BEYOND_USE, STARTING_PODS, LEAVING_PODS = range(7)
"""Codes of an incomplete value; `BEYOND_USE` is no measurement."""
INCOMPLETE_CAUSES = (
    "",
    "partial-answer",
    "uncovered-window",
    "silent-pods",
    "beyond-limit",
    "starting-pods",
    "leaving-pods",
)
"""The codes as labels of metrics."""
PASSING = (STARTING_PODS, LEAVING_PODS)
"""Codes that follow every change of a count: they end within minutes, and a repeated query would return no more."""
MAX_UNCOVERED_SHARE = 0.05
"""Share of a window that may lack samples: scrapes are late or dropped now and then."""
ROUNDING_OF_SHARE = 1e-9
HALF = 0.5


class CompletenessVerdict(NamedTuple):
    """Completeness of the values of a block, [row, column] each."""

    code: Codes
    actual: Floats
    """The observed part: pods with samples, covered share of a window, or an impossible amount."""
    expected: Floats
    """The expected whole: ready pods, 1, or the most that the pods can use."""


class Expected(NamedTuple):
    """Expected values for the rows of a block; NaN where they are not known."""

    ready: Floats
    """[row, column] ready pods."""
    ready_before: Floats
    """[row, column] the fewest ready pods within the window of a rate: those that can have one."""
    ready_most: Floats
    """[row, column] the most ready pods within the window of a rate."""
    samples: Floats
    """[row] samples of a pod within the window of a rate."""
    most: Floats
    """[row] the most that the pods can use, in the signal's unit."""
    away: NDArray[np.bool_]
    """[column] whether the server itself was away within the window of a rate."""


def judged(block: Block, expected: Expected) -> CompletenessVerdict:
    """The verdict about every value, the weightiest cause first."""
    shape = block.values.shape
    verdict = CompletenessVerdict(np.zeros(shape, np.int8), np.full(shape, np.nan), np.full(shape, np.nan))
    most = np.broadcast_to(expected.most[:, None], shape)
    left = expected.ready < (1.0 - MAX_UNCOVERED_SHARE) * expected.ready_most
    _put(verdict, LEAVING_PODS, left & block.rated, expected.ready, expected.ready_most)
    if block.made_of is not None:
        few = block.made_of.pods < expected.ready
        starting = (block.made_of.starting > 0) | (block.made_of.pods >= expected.ready_before)
        _put(verdict, SILENT_PODS, few & ~starting, block.made_of.pods, expected.ready)
        _put(verdict, STARTING_PODS, few & starting & block.rated, block.made_of.pods, expected.ready)
    if block.rated:
        share = covered(block, expected.samples)
        _put(verdict, UNCOVERED, _uncovered(block, share, expected), share, np.ones(shape))
    if block.partial:
        _put(verdict, PARTIAL_ANSWER, np.ones(shape, np.bool_), verdict.actual, verdict.expected)
    _put(verdict, BEYOND_USE, block.values > most, block.values, most)
    return verdict


def _put(verdict: CompletenessVerdict, code: int, where: NDArray[np.bool_], actual: Floats, expected: Floats) -> None:
    verdict.code[where] = code
    verdict.actual[where], verdict.expected[where] = actual[where], expected[where]


def acting(block: Block, verdict: CompletenessVerdict) -> Floats:
    """The amounts that decisions are made by [row, column]: of pods past their start; NaN where it cannot be."""
    settled = block.values
    if block.rated and block.made_of is not None:
        settled = np.where(np.isnan(block.made_of.pods), block.values, block.made_of.settled)
    return np.where(verdict.code == BEYOND_USE, np.nan, settled)


def learned(block: Block, verdict: CompletenessVerdict) -> Floats:
    """The amounts that are kept as history [row, column]; NaN where they are incomplete."""
    return np.where(np.isin(verdict.code, (COMPLETE, *PASSING)), block.values, np.nan)


def covered(block: Block, usual: Floats) -> Floats:
    """Share of the window of a rate [row, column] that samples cover, by how many a pod has as a rule."""
    if block.made_of is None:
        return np.full(block.values.shape, np.nan)
    return np.asarray(block.made_of.per_pod / usual[:, None])


def _uncovered(block: Block, share: Floats, expected: Expected) -> NDArray[np.bool_]:
    """One sample that a pod lacks may be chance; the more pods, the less it is."""
    if block.made_of is None:
        return np.broadcast_to(expected.away, block.values.shape)
    with np.errstate(invalid="ignore"):
        chance = 1.0 / (expected.samples[:, None] * np.sqrt(np.maximum(block.made_of.pods, 1.0)))
        return np.asarray(share < 1.0 - np.fmax(MAX_UNCOVERED_SHARE, chance) - ROUNDING_OF_SHARE)


def away(share: Floats, verdict: CompletenessVerdict) -> NDArray[np.bool_]:
    """[column] whether the windows of most workloads lack samples: not their pods were away, but the server."""
    known = np.count_nonzero(~np.isnan(share), axis=0)
    return np.asarray(np.count_nonzero(verdict.code == UNCOVERED, axis=0) > HALF * np.maximum(known, 1))


def sentence(code: int, actual: float, expected: float) -> str:
    """Say why a value is incomplete."""
    match code:
        case 1:
            return "the server's answer was partial"
        case 2:
            share = "a part" if np.isnan(actual) else f"{actual:.0%}"
            return f"samples cover {share} of the window of its rate"
        case 3:
            return f"{actual:.0f} of {expected:.0f} ready pods have samples"
        case 4:
            return f"{actual:g} is more than its pods can use ({expected:g})"
        case 5:
            return f"{actual:.0f} of {expected:.0f} ready pods are past their start"
        case _:
            return f"{expected - actual:.0f} of {expected:.0f} pods have left within the window of its rate"
