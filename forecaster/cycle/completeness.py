"""Completeness of the answers of a source, and which instants are queried again.

An incomplete value is a lower bound: decisions use it, but history gets a gap. The instant is queried again once after
`SETTLED_AFTER`, because samples come late; when answers are complete again, all incomplete instants are queried at
once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import CachedRows
from forecaster.demand.completeness import (
    BEYOND_USE,
    COMPLETE,
    INCOMPLETE_CAUSES,
    PARTIAL_ANSWER,
    PASSING,
    CompletenessVerdict,
    Expected,
    acting,
    away,
    covered,
    judged,
    learned,
)
from forecaster.demand.completeness import sentence as why
from forecaster.demand.latest import SPARE_ROWS, LatestCache
from forecaster.domain.signal import CPU, PODS, Signal
from forecaster.domain.window import EPOCH, HOUR, MINUTE, Block, Gap, Window
from forecaster.domain.workload import Resources, Workload, WorkloadId
from forecaster.ports import Histories

Floats = NDArray[np.float64]

SETTLED_AFTER = 2 * MINUTE
"""Age at which an incomplete instant is queried again."""
LAST_QUERY_AFTER = 10 * MINUTE
"""When answers are complete again, earlier instants are queried at once, and once more after this time."""
YOUNG = 2
"""Minutes: a pod that became ready later may have no rate yet."""
LATELY = 5 * MINUTE
"""Workloads with a value since then are expected in an answer; if it has no value at all, all that ever had one."""
FORGET_AFTER = 3 * HOUR
"""Oldest age of an instant that is queried again: an agent that could not write keeps two hours."""
FUTILE = 3
"""After this many instants in a row that were no more complete when queried again, none is for `LAST_QUERY_AFTER`."""
LATE = 3
"""Number of such instants in a row above which they count as late samples, not as an outage."""
ARRIVE_LATE = (
    "samples arrive late: minutes are incomplete at first and complete two minutes later, and decided by then; set "
    "cycle.delay to what `forecaster doctor` measures"
)
NOTABLE_SHARE = 0.01
"""Share of the workloads whose incomplete values make an instant worth asking for again: with thousands of workloads
some pod has just become ready at any time."""
FADING = 0.955
"""Factor by which the usual samples of a pod fall in a minute: half in 15 minutes, in case scrapes are rarer now."""
MANY_COLUMNS = 10
"""Smallest number of columns of a block from which the usual number of samples is learned."""
UPPER_SHARE = 0.9

BEYOND_LIMIT = 4.0
"""Multiple of its limit that no pod can exceed, allowing for limits that have just changed and uncounted pods."""
BEYOND_REQUEST = 100.0
LARGEST_NODE = {"cpu": 256.0, "memory": 2.0**40}
"""Cores and bytes that a pod without a limit may use at least."""


@dataclass(slots=True)
class Completeness:
    """State of completeness between cycles, and the findings of the present cycle."""

    latest_caches: dict[str, LatestCache] = field(default_factory=lambda: defaultdict(LatestCache))
    usual: dict[str, dict[WorkloadId, float]] = field(default_factory=lambda: defaultdict(dict))
    """Samples of a pod within the window of a rate, lately, by signal."""
    away: dict[datetime, bool] = field(default_factory=dict)
    """Instants at which the server was away within the window of a rate."""
    incomplete: dict[str, IncompleteInstants] = field(default_factory=lambda: defaultdict(IncompleteInstants))
    containers: dict[Signal, dict[WorkloadId, str]] = field(default_factory=dict)
    """Container of each workload whose history is read per container, by signal."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Workloads with an incomplete latest value in this cycle, by signal and cause."""
    sentences: dict[str, None] = field(default_factory=dict)
    """Sentences about incomplete signals of this cycle, in order, each once."""
    bounds: dict[Signal, tuple[Sequence[WorkloadId], Floats, Floats]] = field(default_factory=dict)
    """By signal: the workloads queried last in this cycle, their pods, and the largest usage of one pod."""
    counted: dict[str, CachedRows] = field(default_factory=lambda: defaultdict(CachedRows))
    """By signal, the rows in which pods of its workloads are counted."""
    begun: bool = False
    """Whether a cycle has run; the first one reads some minutes more to learn the usual number of samples."""
    moved: list[str] = field(default_factory=list)
    """Workloads of which something else is measured from this cycle on."""

    def begin(self, now: datetime) -> None:
        """A cycle begins."""
        self.counts.clear()
        self.sentences.clear()
        self.moved.clear()
        self.bounds.clear()
        self.away = {at: away for at, away in self.away.items() if now - FORGET_AFTER <= at <= now}
        for cache in self.latest_caches.values():
            cache.ended(now)

    def write(self, block: Block, history: Histories, workloads: Mapping[WorkloadId, Workload], now: datetime) -> None:
        """Write complete values to history, and the values that act to the latest ones."""
        self.sentences.update(dict.fromkeys(block.warnings))
        if block.partial:
            self.sentences[f"{block.signal}: the answer is partial: {block.partial}"] = None
        if block.moved:
            self.moved += [f"{id_.kind} {id_}: {why}; its past is read again" for id_, why in block.moved.items()]
            history.ask_again(block.signal, block.moved)
        verdict = self.judged(block, history, workloads, now)
        if block.step == MINUTE:
            self.latest_caches[block.signal].write(block, acting(block, verdict), verdict)
        history.write(replace(block, values=learned(block, verdict)))
        if block.step == MINUTE and block.signal != PODS:
            self._note_gaps(block, verdict, self._vanished(block, workloads, now), now)
        if block.end == now:
            self._tell(block, verdict)

    def with_lookback(self, gaps: Sequence[Gap], now: datetime) -> list[Gap]:
        """Return the gaps of a cycle; the first one reads some minutes of CPU, to learn which samples are usual.

        A process that continues from a snapshot needs its latest minute only. Where samples come late, that minute
        alone has fewer samples than it will have.
        """
        if self.begun:
            return list(gaps)
        self.begun, back = True, now - MANY_COLUMNS * MINUTE
        current = {
            gap for gap in gaps if gap.signal == CPU and gap.step == MINUTE and gap.end == now and gap.start > back
        }
        return [replace(gap, start=back) if gap in current else gap for gap in gaps]

    def due_again(self, signals: Sequence[Signal], now: datetime) -> list[Gap]:
        """Instants that were incomplete and are worth another question."""
        return [gap for signal in signals for gap in self.incomplete[signal].due(signal, now)]

    def judged(
        self, block: Block, history: Histories, workloads: Mapping[WorkloadId, Workload], now: datetime
    ) -> CompletenessVerdict:
        """Judge the completeness of a block by the known pods and the usual number of samples."""
        if block.signal == PODS or not block.values.size:
            shape = block.values.shape
            return CompletenessVerdict(np.zeros(shape, np.int8), np.full(shape, np.nan), np.full(shape, np.nan))
        ready = _ready(block, history.window(PODS, MINUTE), self.counted[block.signal])
        most = self._most(block, ready[0], workloads)
        times = [block.start + i * block.step for i in range(block.values.shape[1])]
        absent = np.array([self.away.get(at, False) for at in times], np.bool_)
        expected = Expected(*ready, self._usual(block, now), most, absent)
        verdict = judged(block, expected)
        if block.signal == CPU and block.rated and block.made_of is not None:
            self.away |= zip(times, away(covered(block, expected.samples), verdict).tolist(), strict=True)
        return verdict

    def _usual(self, block: Block, now: datetime) -> Floats:
        """Usual samples per pod of each row, from earlier blocks and this one; NaN where unknown.

        A new workload gets the others' value: where samples come late, it has never had more.
        """
        if block.made_of is None or not block.rated or block.step != MINUTE:
            return np.full(len(block.ids), np.nan)
        highest, known = _upper(block.made_of.per_pod), self.usual[block.signal]
        others = float(np.median(list(known.values()))) if known else 0.0
        before = np.fromiter((known.get(id_, others) for id_ in block.ids), np.float64, len(block.ids))
        usual = np.fmax(highest, before)
        if len(known) > 2 * len(block.ids) + SPARE_ROWS:
            known.clear()
        # It fades for the next minute: in this one, a tenth less than usual is not hidden by it.
        fading = np.fmax(highest, FADING * before) if block.end == now else usual
        known.update(zip(block.ids, fading.tolist(), strict=True))
        return np.where(usual > 0.0, usual, np.nan)

    def _most(self, block: Block, ready: Floats, workloads: Mapping[WorkloadId, Workload]) -> Floats:
        """The most that the pods of each row can use, in the signal's unit; infinite where nothing bounds it."""
        signal = block.signal
        if not isinstance(signal, Signal) or signal.resource not in LARGEST_NODE:
            return np.full(len(block.ids), np.inf)
        if signal not in self.bounds or self.bounds[signal][0] != block.ids:
            self.bounds[signal] = block.ids, *_pods_and_most(block.ids, signal, workloads)
        _, pods, most = self.bounds[signal]
        counted = np.zeros(ready.shape) if block.made_of is None else block.made_of.pods
        observed = np.fmax(np.fmax.reduce(ready, axis=1, initial=0.0), np.fmax.reduce(counted, axis=1, initial=0.0))
        return np.asarray(np.fmax(pods, observed) * most)

    def _vanished(self, block: Block, workloads: Mapping[WorkloadId, Workload], now: datetime) -> NDArray[np.intp]:
        """[column] Workloads with pods that had values and have none: a shard may be missing.

        In an answer about the past, only in columns without any value: some workloads are younger than that.
        """
        known, cache = ~np.isnan(block.values), self.latest_caches[block.signal]
        empty, vanished = np.asarray(~known.any(axis=0)), np.zeros(known.shape[1], np.intp)
        if empty.any():
            vanished[empty] = _with_pods(cache.others((), EPOCH), workloads)
        if block.end == now and not empty[-1]:
            heard = [block.ids[row] for row in np.flatnonzero(known[:, -1]).tolist()]
            vanished[-1] = _with_pods(cache.others(heard, now - LATELY), workloads)
        return vanished

    def _note_gaps(self, block: Block, verdict: CompletenessVerdict, vanished: NDArray[np.intp], now: datetime) -> None:
        """Note the instants of a block that should be queried again."""
        weighty = np.count_nonzero(~np.isin(verdict.code, (COMPLETE, BEYOND_USE, *PASSING)), axis=0) + vanished
        least = max(1.0, NOTABLE_SHARE * len(block.ids))
        again = self.incomplete[block.signal]
        for column in range(block.values.shape[1]):
            incomplete = bool(block.partial) or int(weighty[column]) >= least
            again.answered(block.start + column * block.step, now, incomplete=incomplete)

    def _tell(self, block: Block, verdict: CompletenessVerdict) -> None:
        """Count the incomplete rows of this cycle, and name one workload for each cause."""
        codes = verdict.code[:, -1]
        lacking = {block.ids[row].namespace for row in np.flatnonzero(codes != COMPLETE)}
        spread = len(lacking) > 1 or all(id_.namespace in lacking for id_ in block.ids)  # not the series of one owner
        if self.incomplete[block.signal].late >= LATE and spread:
            self.sentences[f"{block.signal}: {ARRIVE_LATE}"] = None
        for code in np.unique(codes[codes != COMPLETE]).tolist():
            rows = np.flatnonzero(codes == code)
            self.counts[str(block.signal), INCOMPLETE_CAUSES[code]] = len(rows)
            if code not in {PARTIAL_ANSWER, *PASSING}:
                first = int(rows[0])
                sentence = why(code, float(verdict.actual[first, -1]), float(verdict.expected[first, -1]))
                others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
                self.sentences[f"{block.signal} of {block.ids[first]}{others}: {sentence}"] = None


@dataclass(slots=True)
class IncompleteInstants:
    """Instants of one signal that were incomplete."""

    open: set[datetime] = field(default_factory=set)
    late: int = 0
    """Number of instants in a row that were incomplete at first and complete when queried again."""
    futile: int = 0
    paused_until: datetime | None = None
    whole_since: datetime | None = None
    """Since when answers are complete again; None while they are not."""
    last_query_sent: bool = False
    """Whether the last question has been asked since."""

    def answered(self, at: datetime, now: datetime, *, incomplete: bool) -> None:
        """Note the result of a repeated query about an instant."""
        if at != now and at in self.open:
            self.late += not incomplete
            self.futile = self.futile + 1 if incomplete else 0
            if self.futile >= FUTILE:
                self.futile, self.paused_until = 0, now + LAST_QUERY_AFTER
        if incomplete:
            self.open.add(at)
        else:
            self.open.discard(at)
        if at == now:
            self.late = self.late if incomplete else 0
            self.whole_since = None if incomplete else self.whole_since or now
            self.last_query_sent &= not incomplete

    def due(self, signal: Signal, now: datetime) -> list[Gap]:
        """The instants to ask for now, as one span or none."""
        self.open = {at for at in self.open if now - FORGET_AFTER <= at <= now}
        before = self.open - {now}
        whole = now - self.whole_since if self.whole_since else None
        last = whole is not None and whole >= LAST_QUERY_AFTER and not self.last_query_sent
        self.last_query_sent |= last
        if before and (last or whole == timedelta(0)):
            return [Gap(signal, min(before), max(before), MINUTE)]
        settled = now - SETTLED_AFTER
        paused = self.paused_until is not None and now < self.paused_until <= now + LAST_QUERY_AFTER
        return [Gap(signal, settled, settled, MINUTE)] if settled in before and not paused else []


def _with_pods(ids: Sequence[WorkloadId], workloads: Mapping[WorkloadId, Workload]) -> int:
    return sum(id_ in workloads and workloads[id_].ready_replicas > 0 for id_ in ids)


def _upper(shown: Floats) -> Floats:
    """[row] the highest of some columns; of many an upper one, since a pod that starts anew has more for a while."""
    known = np.count_nonzero(~np.isnan(shown), axis=1)
    if shown.shape[1] < MANY_COLUMNS:
        return np.asarray(np.fmax.reduce(shown, axis=1, initial=0.0))
    at = (UPPER_SHARE * np.maximum(known - 1, 0)).astype(np.intp)
    return np.nan_to_num(np.take_along_axis(np.sort(shown, axis=1), at[:, None], axis=1)[:, 0], nan=0.0)


def _ready(block: Block, pods: Window, counted: CachedRows) -> tuple[Floats, Floats, Floats]:
    """Ready pods, and the fewest and most of the last `YOUNG` minutes, [row, column] each; NaN where not known."""
    columns = int(block.values.shape[1])
    if block.step != MINUTE:
        unknown = np.broadcast_to(np.nan, block.values.shape)
        return unknown, unknown, unknown
    known: Floats = np.full((len(block.ids), columns + YOUNG), np.nan)
    first = (block.start - pods.start) // MINUTE - YOUNG
    low, high = max(first, 0), min(first + columns + YOUNG, int(pods.values.shape[1]))
    if len(pods.keys) and low < high:
        at = counted.of(block.ids, pods.row)
        there = pods.values[:, low:high][at].astype(np.float64)
        known[:, low - first : high - first] = np.where(at[:, None] >= 0, there, np.nan)
    fewest = most = known[:, YOUNG:]
    for earlier in range(YOUNG):
        before = known[:, earlier : earlier + columns]
        fewest, most = np.fmin(fewest, before), np.fmax(most, before)
    return known[:, YOUNG:], fewest, most


def _pods_and_most(
    ids: Sequence[WorkloadId], signal: Signal, workloads: Mapping[WorkloadId, Workload]
) -> tuple[Floats, Floats]:
    """Pods of each workload, and the most that one of them can use, in the signal's unit; infinite where unknown."""
    present = [workloads.get(id_) for id_ in ids]
    pods = (max(workload.replicas, workload.ready_replicas, 1) if workload else np.inf for workload in present)
    most = (_pod_most(workload.resources_of(signal), signal.resource) if workload else np.inf for workload in present)
    return np.fromiter(pods, np.float64), np.fromiter(most, np.float64)


def _pod_most(resources: Resources, resource: str) -> float:
    limit = resources.limit(resource)
    if limit:
        return BEYOND_LIMIT * limit
    return max(BEYOND_REQUEST * (resources.request(resource) or 0.0), LARGEST_NODE[resource])
