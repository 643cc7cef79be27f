"""Whether what was measured is all there is: part of a sum is not the sum.

A value is incomplete where the server says that a part is missing, where samples cover a part of the window of its rate
only (after an outage of Prometheus, of a target, of a container), or where ready pods have no samples. It is a lower
bound then. An amount that the pods cannot use is none at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.domain.window import Block

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int8]

COMPLETE, PARTIAL_ANSWER, UNCOVERED, SILENT_PODS, BEYOND = range(5)
"""Why a value is not all there is; `BEYOND` is no measurement."""
CAUSES = ("", "partial-answer", "uncovered-window", "silent-pods", "beyond-limit")
"""The codes as labels of metrics."""
LEAST_COVERED = 0.05
"""Share of a window that may lack samples: scrapes are late or dropped now and then."""
ROUNDING = 1e-9
HALF = 0.5


class Verdict(NamedTuple):
    """How complete the values of a block are, [row, column] each."""

    code: Codes
    seen: Floats
    """What is there: pods with samples, the covered share of a window, or an amount that cannot be."""
    of: Floats
    """What should be: ready pods, 1, or the most that the pods can use."""

    def column(self, number: int) -> Verdict:
        """One column of it, [row] each."""
        return Verdict(self.code[:, number], self.seen[:, number], self.of[:, number])


class Expected(NamedTuple):
    """What the rows of a block are held against; NaN where it is not known."""

    ready: Floats
    """[row, column] ready pods."""
    samples: Floats
    """[row] samples of a pod within the window of a rate."""
    most: Floats
    """[row] the most that the pods can use, in the signal's unit."""
    away: NDArray[np.bool_]
    """[column] whether the server itself was away within the window of a rate."""


def judged(block: Block, expected: Expected) -> Verdict:
    """The verdict about every value, the weightiest cause first."""
    shape = block.values.shape
    verdict = Verdict(np.zeros(shape, np.int8), np.full(shape, np.nan), np.full(shape, np.nan))
    most = np.broadcast_to(expected.most[:, None], shape)
    _put(verdict, SILENT_PODS, *_silent(block, expected))
    if block.rated:
        share = covered(block, expected.samples)
        _put(verdict, UNCOVERED, _uncovered(block, share, expected), share, np.ones(shape))
    if block.partial:
        _put(verdict, PARTIAL_ANSWER, np.ones(shape, np.bool_), verdict.seen, verdict.of)
    _put(verdict, BEYOND, block.values > most, block.values, most)
    return verdict


def _put(verdict: Verdict, code: int, where: NDArray[np.bool_], seen: Floats, of: Floats) -> None:
    verdict.code[where] = code
    verdict.seen[where], verdict.of[where] = seen[where], of[where]


def _silent(block: Block, expected: Expected) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Where ready pods have no samples."""
    pods = np.full(block.values.shape, np.nan) if block.made_of is None else block.made_of.pods
    return pods < expected.ready, pods, expected.ready


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
        return np.asarray(share < 1.0 - np.fmax(LEAST_COVERED, chance) - ROUNDING)


def away(share: Floats, verdict: Verdict) -> NDArray[np.bool_]:
    """[column] whether the windows of most workloads lack samples: not their pods were away, but the server."""
    known = np.count_nonzero(~np.isnan(share), axis=0)
    return np.asarray(np.count_nonzero(verdict.code == UNCOVERED, axis=0) > HALF * np.maximum(known, 1))


def sentence(code: int, seen: float, of: float) -> str:
    """Why a value is not all there is."""
    match code:
        case 1:
            return "the server's answer was partial"
        case 2:
            share = "a part" if np.isnan(seen) else f"{seen:.0%}"
            return f"samples cover {share} of the window of its rate"
        case 3:
            return f"{seen:.0f} of {of:.0f} ready pods have samples"
        case _:
            return f"{seen:g} is more than its pods can use ({of:g})"
