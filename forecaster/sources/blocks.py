"""An answer's series as a `Block`: samples decoded in bulk and placed on the grid, each workload once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from sys import intern
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import Block, PodSamples
from forecaster.domain.workload import WorkloadId, may_be_a_name
from forecaster.sources.wire import MalformedAnswer, QueryAnswer, Series

Id = TypeVar("Id")
_CHUNK = 1 << 22
"""Bytes of text decoded at a time: bounds the memory of decoding to some tens of MB whatever the answer's size."""

_ON_GRID = 2e-3
"""Seconds. Prometheus states times to the millisecond, and rounds."""


_decode_numbers = msgspec.json.Decoder(list[float]).decode


@dataclass(slots=True)
class Remarks:
    """Numbers of samples that were changed or left out, by reason."""

    not_finite: int = 0
    negative: int = 0
    off_grid: int = 0
    duplicate: int = 0

    def sentences(self) -> tuple[str, ...]:
        """One sentence per reason that occurred."""
        counts = {
            "were not finite and left as gaps": self.not_finite,
            "were negative and left as gaps": self.negative,
            "were not at a requested time and dropped": self.off_grid,
            "came twice; the later one was used": self.duplicate,
        }
        return tuple(f"{count} samples {problem}" for problem, count in counts.items() if count)


def matrix_of(
    series: Sequence[Series], *, start: float, step: float, points: int
) -> tuple[NDArray[np.float64], Remarks]:
    """Samples as float64[series, points] with NaN where there is none. `start` and `step` in seconds.

    Order of samples does not matter. Raises `MalformedAnswer`.
    """
    values = np.full((len(series), points), np.nan)
    remarks = Remarks()
    for first, texts in _chunks(series):
        rows, times, amounts = _decoded(texts)
        _place(values, rows + first, (times - start) / step, amounts, tolerance=_ON_GRID / step, remarks=remarks)
    _clean(values, remarks)
    return values, remarks


def single_values(series: Sequence[Series]) -> NDArray[np.float64]:
    """float64[series]: the value of each series of an instant answer, whatever its time; NaN where there is none.

    Raises `MalformedAnswer`.
    """
    values = np.full(len(series), np.nan)
    for first, texts in _chunks(series):
        rows, _, amounts = _decoded(texts)
        values[rows + first] = amounts
    _clean(values, Remarks())
    return values


def _chunks(series: Sequence[Series]) -> Iterator[tuple[int, list[bytes]]]:
    """Sample texts of consecutive series, about `_CHUNK` bytes at a time, with the index of the first."""
    first, texts, size = 0, list[bytes](), 0
    for index, samples in enumerate(each.samples for each in series):
        texts.append(bytes(samples))
        size += len(texts[-1])
        if size >= _CHUNK:
            yield first, texts
            first, texts, size = index + 1, [], 0
    if texts:
        yield first, texts


def _decoded(texts: list[bytes]) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Row, time and value of every sample. Values are quoted and times are not, so quotes count the samples."""
    counts = np.array([text.count(b'"') // 2 for text in texts], dtype=np.intp)
    numbers = _numbers(b",".join(text for text, count in zip(texts, counts, strict=True) if count))
    if numbers.size != 2 * counts.sum():
        raise MalformedAnswer(f"expected {counts.sum()} samples, found {numbers.size / 2:g}")
    return np.repeat(np.arange(len(texts)), counts), numbers[0::2], numbers[1::2]


def _numbers(text: bytes) -> NDArray[np.float64]:
    """All numbers of a text in their order. The reader of JSON is twice as fast, but knows no NaN and no infinity."""
    bare = text.translate(None, b'[]" \t\r\n')
    try:
        numbers = _decode_numbers(b"[%b]" % bare)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _any_numbers(bare)
    return np.fromiter(numbers, np.float64, len(numbers))


def _any_numbers(bare: bytes) -> NDArray[np.float64]:
    try:
        return np.fromstring(bare, sep=",", dtype=np.float64)
    except (ValueError, DeprecationWarning) as error:
        raise MalformedAnswer("a sample is not a number") from error


def _place(
    values: NDArray[np.float64],
    rows: NDArray[np.intp],
    positions: NDArray[np.float64],
    amounts: NDArray[np.float64],
    *,
    tolerance: float,
    remarks: Remarks,
) -> None:
    nearest = np.rint(positions)
    fits = (np.abs(positions - nearest) <= tolerance) & (nearest >= 0) & (nearest < values.shape[1])
    if not fits.all():
        remarks.off_grid += int((~fits).sum())
        rows, nearest, amounts = rows[fits], nearest[fits], amounts[fits]
    cells = rows * values.shape[1] + nearest.astype(np.intp)
    if cells.size > 1 and not (np.diff(cells) > 0).all():
        remarks.duplicate += cells.size - np.unique(cells).size
    values.reshape(-1)[cells] = amounts
    remarks.not_finite += int((~np.isfinite(amounts)).sum())


def _clean(values: NDArray[np.float64], remarks: Remarks) -> None:
    with np.errstate(invalid="ignore"):
        negative = values < 0
    remarks.negative += int(np.isfinite(values[negative]).sum())
    values[negative | np.isinf(values)] = np.nan


MAX_CACHED_ROWS = 1 << 17
"""Identities that are kept ready, 400 bytes each: one for every text of labels that names a workload."""
_MAX_REMARKS = 10
_REMARK_LENGTH = 200


def block_of(answer: QueryAnswer, signal: Signal, start: datetime, step: timedelta, points: int) -> Block:
    """Return the demand in `answer` on the requested grid. Raises `MalformedAnswer`."""
    owned = [(series, id_) for series in answer.series if (id_ := owner_of(series))]
    named, ids = [series for series, _ in owned], [id_ for _, id_ in owned]
    values, remarks = matrix_of(named, start=start.timestamp(), step=step.total_seconds(), points=points)
    unique, values, doubled = each_once(ids, values)
    server_remarks = (remark[:_REMARK_LENGTH] for remark in answer.remarks[:_MAX_REMARKS])
    nameless = len(answer.series) - len(named)
    dropped = (
        (f"{nameless} series lack a usable namespace, workload_kind or workload and were dropped",) if nameless else ()
    )
    sentences = (*server_remarks, *dropped, *doubled, *remarks.sentences())
    warnings = tuple(f"{signal}: {sentence}" for sentence in sentences)
    return Block(signal, unique, start, step, values, warnings, partial=answer.partial)


SAMPLES_OF_A_POD = 1e9
"""More samples than all pods of a workload have within a window: `pods * SAMPLES_OF_A_POD + samples` is exact."""
SETTLED_PODS, SAMPLES_OF_PODS = "settled", "samples"
"""The label `what` of an answer about pods."""
SAME_SUM = 1e-6
"""Two sums of the same rates differ by rounding: relative, and cores."""


def pod_samples(usage: Block, answer: QueryAnswer) -> PodSamples:
    """Return the pods behind sums of CPU, from the answer to the query `cpu_pods` on the same grid.

    A workload missing from the answer has no pods past their start; if the answer has no workload at all, the pods are
    not known. Raises `MalformedAnswer`.
    """
    settled, counted = (_rows_like(usage, answer, kind) for kind in (SETTLED_PODS, SAMPLES_OF_PODS))
    pods = np.floor(counted / SAMPLES_OF_A_POD)
    samples = counted - pods * SAMPLES_OF_A_POD
    counted_any = ~np.isnan(counted).all(axis=0)
    known = np.where(np.isnan(pods) & counted_any, 0.0, pods)
    more = usage.values > np.nan_to_num(settled) * (1.0 + SAME_SUM) + SAME_SUM
    per_pod = np.divide(samples, pods, out=np.full(pods.shape, np.nan), where=pods > 0)
    return PodSamples(known, per_pod, settled, np.where(counted_any, more, np.nan))


def _rows_like(usage: Block, answer: QueryAnswer, kind: str) -> NDArray[np.float64]:
    """The values of one kind for the rows of `usage`."""
    of_kind = [bare for series in answer.series if (bare := _of_kind(series, kind))]
    block = block_of(QueryAnswer(of_kind), PODS, usage.start, usage.step, int(usage.values.shape[1]))
    at = rows_among(usage.ids, {id_: row for row, id_ in enumerate(block.ids)})
    values = np.full(usage.values.shape, np.nan)
    values[at >= 0] = block.values[at[at >= 0]]
    return values


def of_containers(answer: QueryAnswer, named: Mapping[WorkloadId, str]) -> QueryAnswer:
    """Return the series of these containers, each without its label `container`."""
    of_named = [bare for series in answer.series if (bare := _of_container(series, named))]
    return QueryAnswer(of_named, answer.remarks, answer.partial)


def _of_container(series: Series, named: Mapping[WorkloadId, str]) -> Series | None:
    owner, container = _container(bytes(series.labels))
    if owner is None or named.get(owner) != container:
        return None
    text = msgspec.json.encode({name: value for name, value in series.metric.items() if name != "container"})
    return Series(msgspec.Raw(text), series.value, series.values)


@lru_cache(maxsize=MAX_CACHED_ROWS)
def _container(labels: bytes) -> tuple[WorkloadId | None, str]:
    metric = Series(msgspec.Raw(labels)).metric
    return workload_of(metric), metric.get("container", "")


def _of_kind(series: Series, kind: str) -> Series | None:
    """A series of this kind, without the label that says so: its text is then that of the other signals."""
    text, label = bytes(series.labels), b'"what":"%b",' % kind.encode()
    if label in text:
        return Series(msgspec.Raw(text.replace(label, b"", 1)), series.value, series.values)
    if b'"what":"' in text:
        return None
    return series if series.metric.get("what") == kind else None


def samples_of(known: PodSamples, ids: Sequence[WorkloadId], among: Sequence[WorkloadId]) -> PodSamples:
    """The rows of some workloads; not known of those that are not there."""
    at = rows_among(ids, {id_: row for row, id_ in enumerate(among)})
    return PodSamples(*(np.vstack([layer, np.full((1, layer.shape[1]), np.nan)])[at] for layer in known.layers))


def owner_of(series: Series) -> WorkloadId | None:
    """The workload of a series; None when its labels do not say. Raises `MalformedAnswer`.

    The same series come in every cycle, so an identity is read once from the text of its labels.
    """
    return _owner(bytes(series.labels))


@lru_cache(maxsize=MAX_CACHED_ROWS)
def _owner(labels: bytes) -> WorkloadId | None:
    return workload_of(Series(msgspec.Raw(labels)).metric)


def workload_of(labels: Mapping[str, str]) -> WorkloadId | None:
    """Return the workload of a series; None when its labels do not name one, or its name is no object's.

    Its words are interned: identities are looked up some twenty times in a cycle, and equal words that are the same
    object are not compared letter by letter.
    """
    path = [intern(labels.get(label, "")) for label in ("namespace", "workload_kind", "workload")]
    return WorkloadId(*path) if all(map(may_be_a_name, path)) else None


def each_once(
    ids: Sequence[Id], values: NDArray[np.float64]
) -> tuple[tuple[Id, ...], NDArray[np.float64], tuple[str, ...]]:
    """Merge rows of one identity into their maximum: a query with a label too many must not lose demand silently."""
    if len(set(ids)) == len(ids):
        return tuple(ids), values, ()
    rows = {id_: row for row, id_ in enumerate(dict.fromkeys(ids))}
    merged = np.full((len(rows), values.shape[1]), np.nan)
    for id_, row in zip(ids, values, strict=True):
        merged[rows[id_]] = np.fmax(merged[rows[id_]], row)
    count = len(ids) - len(rows)
    return tuple(rows), merged, (f"{count} series name a workload that another one names; the larger value was used",)
