"""Consecutive slices of a long answer: the next is asked for while the one before is decoded and taken.

Decoding costs us a quarter of a microsecond per sample, and Prometheus more than that to compute and write it; where
both have a core, only the slower of the two is waited for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from forecaster.sources.failures import TooMuch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor, Future

    from forecaster.sources.slices import Grid, Slices
    from forecaster.sources.wire import Answer


def read_ahead(slices: Slices, ask: Callable[[Grid], Answer]) -> Iterator[tuple[Grid, Answer]]:
    """Every slice with its answer, in order. A slice that is too much comes as smaller ones.

    Raises what `ask` raises; `TooMuch` only for a slice of a single point.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as ahead:
        coming = _ask_for_next(ahead, slices, ask)
        while coming:
            piece, future = coming
            answer = _unless_too_much(slices, piece, future)
            coming = _ask_for_next(ahead, slices, ask)
            if answer is not None:
                yield piece, answer


def _ask_for_next(ahead: Executor, slices: Slices, ask: Callable[[Grid], Answer]) -> tuple[Grid, Future[Answer]] | None:
    piece = slices.next()
    return (piece, ahead.submit(ask, piece)) if piece else None


def _unless_too_much(slices: Slices, piece: Grid, future: Future[Answer]) -> Answer | None:
    """The answer, and what it teaches about the size of slices."""
    try:
        answer = future.result()
    except TooMuch:
        if piece.points == 1:
            raise
        slices.refused(piece)
        return None
    slices.answered(len(answer.series))
    return answer
