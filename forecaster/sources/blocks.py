"""An answer's series as a `Block`: who is who, each workload once."""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from forecaster.domain.window import Block
from forecaster.domain.workload import WorkloadId
from forecaster.sources.samples import matrix_of
from forecaster.sources.wire import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.sources.wire import Answer

REMEMBERED = 1 << 17
"""Identities that are kept ready, 400 bytes each: one for every text of labels that names a workload."""
_REMARKS_KEPT = 10
_REMARK_LENGTH = 200


def block_of(answer: Answer, signal: Signal, start: datetime, step: timedelta, points: int) -> Block:
    """The demand in `answer` on the grid that was asked for. Raises `MalformedAnswer`."""
    whose = [(one, id_) for one in answer.series if (id_ := owner_of(one))]
    named, ids = [one for one, _ in whose], [id_ for _, id_ in whose]
    values, remarks = matrix_of(named, start=start.timestamp(), step=step.total_seconds(), points=points)
    unique, values, doubled = _each_once(ids, values)
    sentences = (*_short(answer.remarks), *_nameless(answer.series, named), *doubled, *remarks.sentences())
    return Block(signal, unique, start, step, values, tuple(f"{signal}: {sentence}" for sentence in sentences))


def owner_of(series: Series) -> WorkloadId | None:
    """Whose series this is; None when its labels do not say. Raises `MalformedAnswer`.

    The same series come in every cycle, so an identity is read once from the text of its labels.
    """
    return _owner(bytes(series.labels))


@lru_cache(maxsize=REMEMBERED)
def _owner(labels: bytes) -> WorkloadId | None:
    return workload_of(Series(msgspec.Raw(labels)).metric)


def workload_of(labels: Mapping[str, str]) -> WorkloadId | None:
    """Whose series this is; None when its labels do not say.

    Its words are interned: identities are looked up some twenty times in a cycle, and equal words that are the same
    object are not compared letter by letter.
    """
    namespace, kind, name = labels.get("namespace"), labels.get("workload_kind"), labels.get("workload")
    return WorkloadId(intern(namespace), intern(kind), intern(name)) if namespace and kind and name else None


def _short(remarks: Sequence[str]) -> tuple[str, ...]:
    return tuple(remark[:_REMARK_LENGTH] for remark in remarks[:_REMARKS_KEPT])


def _nameless(every: Sequence[Series], named: Sequence[Series]) -> tuple[str, ...]:
    count = len(every) - len(named)
    return (f"{count} series lack namespace, workload_kind or workload and were dropped",) if count else ()


def _each_once(
    ids: Sequence[WorkloadId], values: NDArray[np.float64]
) -> tuple[tuple[WorkloadId, ...], NDArray[np.float64], tuple[str, ...]]:
    """Merge rows of one workload into their maximum: a query with a label too many must not lose demand silently."""
    if len(set(ids)) == len(ids):
        return tuple(ids), values, ()
    rows = {one: row for row, one in enumerate(dict.fromkeys(ids))}
    merged = np.full((len(rows), values.shape[1]), np.nan)
    for one, row in zip(ids, values, strict=True):
        merged[rows[one]] = np.fmax(merged[rows[one]], row)
    count = len(ids) - len(rows)
    return tuple(rows), merged, (f"{count} series name a workload that another one names; the larger value was kept",)
