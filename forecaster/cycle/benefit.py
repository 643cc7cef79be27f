"""LiveBenefit: the four numbers of the running service beside the HPA alone, replayed after all that decides.

It records every decision, and replays some workloads in each cycle, each once an hour, while the cycle has time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.domain.signal import PODS
from forecaster.domain.window import HOUR, MINUTE
from forecaster.domain.workload import Prices, Workload, WorkloadId
from forecaster.errors import unexpected
from forecaster.horizontal.columns import rows_before, taken
from forecaster.publish.beside import BenefitView, FourNumbers, PeriodBenefit, TextsBeside
from forecaster.publish.offer import NO_COUNT

if TYPE_CHECKING:
    from forecaster.cycle.steps import TimeShare
    from forecaster.domain.policies import Policies
    from forecaster.hpa.spec import HpaSpec
    from forecaster.ports import Histories
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.replay.account import Account
    from forecaster.replay.assumptions import Assumptions
    from forecaster.replay.comparison import Comparison
    from forecaster.replay.realised import LivePast
    from forecaster.replay.traces import Traces
    from forecaster.sources.live_objects import LiveHpa

Count = tuple[datetime, int]
"""A count that was decided, and when."""
REPLAYED_AT_ONCE = 50
"""Workloads of one replay: some tenths of a second, after which the time is looked at."""
SHOWN_DIGITS = 6
"""Digits of a number that is shown; sums have seven."""
REPLAY_LATEST = timedelta(hours=6)
"""Time after which decisions that were not replayed are left out of the comparison."""
SHOW_INTERVAL = timedelta(minutes=5)
"""Time between two sums over the fleet."""
START_UP_STEP = timedelta(seconds=30)
"""Start-ups are rounded to it: workloads of one start-up are replayed together."""


class PersistedPast(msgspec.Struct, frozen=True, array_like=True):
    """Sums of one workload, as they outlive the process."""

    id: WorkloadId
    since: datetime
    until: datetime
    numbers: list[int]
    sums: bytes


@dataclass(slots=True)
class LiveBenefit:
    """The live comparison with the HPA alone: state of each workload, and the latest view of the fleet."""

    prices: Prices | None = None
    scalers: Callable[[WorkloadId], Sequence[tuple[object, LiveHpa]]] = lambda _: ()
    start_ups: Callable[[WorkloadId], Sequence[timedelta]] = lambda _: ()
    view: BenefitView = field(default_factory=BenefitView)
    texts: TextsBeside = TextsBeside()  # noqa: RUF009  never changed
    pasts: dict[WorkloadId, LivePast] = field(default_factory=dict)
    decided: dict[WorkloadId, list[Count]] = field(default_factory=dict)
    _ids: tuple[WorkloadId, ...] = ()
    _counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _shown: datetime | None = None
    _text_of: dict[WorkloadId, bytes] = field(default_factory=dict)
    """The benefit of each workload as JSON, until its next hour is replayed."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Note the counts that a cycle decided."""
        counts = np.asarray(cycle.decided.recommended)
        changed = counts != taken(self._counts, rows_before(self._ids, cycle.ids), NO_COUNT)
        self._ids, self._counts = cycle.ids, counts.copy()
        for row in np.flatnonzero(changed & (counts != NO_COUNT)).tolist():
            self.decided.setdefault(cycle.ids[row], []).append((cycle.at, int(counts[row])))

    def renew(
        self, workloads: Sequence[Workload], history: Histories, policies: Policies, now: datetime, time: TimeShare
    ) -> None:
        """Replay those that are due, the longest ago first, and sum up."""
        from forecaster.replay.realised import LivePast  # noqa: PLC0415  no start waits for the replay

        present = {workload.id: workload for workload in workloads}
        self.decided = {id_: counts for id_, counts in self.decided.items() if id_ in present}
        for id_, counts in self.decided.items():
            if id_ not in self.pasts:
                self.pasts[id_] = LivePast(counts[0][0], counts[0][0])
        self._take_over(present, policies)
        self._leave_out(now)
        due = sorted(
            (id_ for id_ in self.decided if now - self.pasts[id_].until >= HOUR), key=lambda id_: self.pasts[id_].until
        )
        for batch in _alike(due, self.pasts):
            self._replay([present[id_] for id_ in batch], history, policies, now)
            for id_ in batch:
                self.decided[id_] = _in_force(self.decided[id_], now)
                self._text_of.pop(id_, None)
            if not time():
                break
        if self._shown is None or not timedelta() <= now - self._shown < SHOW_INTERVAL:
            self._shown = now
            self._show(now)

    def _replay(self, workloads: Sequence[Workload], history: Histories, policies: Policies, now: datetime) -> None:
        """Replay all at once; when that fails one by one, so that one workload is left out and the others are not."""
        from forecaster.replay.realised import add_replayed  # noqa: PLC0415  as above

        try:
            traces, assumed = traces_of(history, workloads, now), self.assumed([workload.id for workload in workloads])
            add_replayed(self.pasts, traces, self.decided, policies, assumed)
        except Exception as error:  # noqa: BLE001  the boundary: what is wrong with one workload stops no other
            if len(workloads) > 1:
                for workload in workloads:
                    self._replay([workload], history, policies, now)
            else:
                past = self.pasts[workloads[0].id]
                past.until, past.left_out = now, unexpected(error)

    def _take_over(self, present: Mapping[WorkloadId, Workload], policies: Policies) -> None:
        """Drop workloads that are gone, and take up those that an earlier process has replayed."""
        from forecaster.replay.setup import Setup, setup_of  # noqa: PLC0415  as above

        self.pasts = {id_: past for id_, past in self.pasts.items() if id_ in present}
        for id_, past in self.pasts.items():
            if past.subject is None and past.numbers:
                setup = setup_of(present[id_], policies.of(id_).horizontal)
                past.subject = (present[id_], setup) if isinstance(setup, Setup) else None

    def _leave_out(self, now: datetime) -> None:
        """Leave out hours that no cycle had the time to replay: decisions are not kept without end."""
        for id_, counts in self.decided.items():
            if now - self.pasts[id_].until > REPLAY_LATEST:
                self.pasts[id_].until, self.decided[id_] = now, _in_force(counts, now)

    def hpa(self, id_: WorkloadId) -> HpaSpec | None:
        """Return the HPA of a workload as it is now; None where none is known, or several."""
        hpas = self.scalers(id_)
        return hpas[0][1].spec if len(hpas) == 1 else None

    def assumed(self, ids: Sequence[WorkloadId] = ()) -> Assumptions:
        """Return the assumptions of a replay of these workloads: start-ups as measured, behavior of their HPAs."""
        from forecaster.replay.assumptions import Assumptions  # noqa: PLC0415  as above

        own = {id_: hpa.behavior for id_ in ids if (hpa := self.hpa(id_))}
        return Assumptions(
            prices=self.prices,
            measured_start_ups={id_: (_rounded(took),) for id_ in ids if (took := self.start_ups(id_))},
            behaviors={id_: behavior for id_, behavior in own.items() if behavior},
        )

    def _show(self, now: datetime) -> None:
        from forecaster.replay.realised import COMPARED_PERIODS, live_comparison  # noqa: PLC0415  as above

        def view(ids: Sequence[WorkloadId], unknown: str) -> BenefitView:
            pasts, assumed = [self.pasts[id_] for id_ in ids], self.assumed()
            known = min((past.since for past in pasts), default=now), max((past.until for past in pasts), default=now)
            periods = {
                name: _period(comparison, period, known)
                for name, period in COMPARED_PERIODS.items()
                if (comparison := live_comparison(pasts, period, now, assumed))
            }
            return BenefitView(periods, "" if periods else unknown)

        self._text_of = {
            id_: self._text_of.get(id_) or msgspec.json.encode(view([id_], _unknown(past)))
            for id_, past in self.pasts.items()
        }
        self.view = view(list(self.pasts), _waiting(min((past.since for past in self.pasts.values()), default=now)))
        self.texts = TextsBeside(msgspec.json.encode(self.view), self._text_of)

    def encoded(self) -> bytes:
        """Encode the sums for a file."""
        pasts = self.pasts.items()
        return msgspec.msgpack.encode(
            [PersistedPast(id_, past.since, past.until, past.numbers, past.sums.tobytes()) for id_, past in pasts]
        )

    def restore(self, encoded: bytes) -> None:
        """Take over what `encoded` gave; decisions from the stop until the first new one are not compared."""
        from forecaster.replay.realised import RUNS, SUMMED, LivePast  # noqa: PLC0415  as above

        for past in msgspec.msgpack.decode(encoded, type=list[PersistedPast]):
            sums = np.frombuffer(past.sums, np.float32).copy()
            if sums.size != len(past.numbers) * len(RUNS) * len(SUMMED):
                raise msgspec.ValidationError(f"sums of {past.id} are of another version")
            shaped = sums.reshape(-1, len(RUNS), len(SUMMED))
            self.pasts[past.id] = LivePast(past.since, past.until, past.numbers, shaped)


def _rounded(start_ups: Sequence[timedelta]) -> timedelta:
    return max(1, round(sorted(start_ups)[len(start_ups) // 2] / START_UP_STEP)) * START_UP_STEP


def _in_force(decided: Sequence[Count], now: datetime) -> list[Count]:
    """Select the decisions that a replay after `now` needs: those within its warm-up, and the last one before it."""
    old = [count for count in decided if count[0] <= now - 3 * HOUR]
    return [*old[-1:], *decided[len(old) :]]


def _alike(due: Sequence[WorkloadId], pasts: Mapping[WorkloadId, LivePast]) -> Iterator[list[WorkloadId]]:
    """Workloads that were replayed up to the same instant, some at a time."""
    for _, group in groupby(due, key=lambda id_: pasts[id_].until):
        while batch := list(islice(group, REPLAYED_AT_ONCE)):
            yield batch


def traces_of(history: Histories, workloads: Sequence[Workload], now: datetime) -> Traces:
    """Read the measured signals of these workloads, by the minute, as far back as minutes are stored."""
    from forecaster.replay.traces import Traces  # noqa: PLC0415  as above

    values = {}
    for signal in (*(signal for signal in history.signals if not signal.of_container), PODS):
        window = history.window(signal, MINUTE)
        minutes = window.values.shape[1]
        rows = rows_among([workload.id for workload in workloads], window.row)
        late = (now - window.end) // MINUTE
        measured = np.full((len(workloads), minutes), np.nan)
        known = rows >= 0
        measured[known, : max(0, minutes - late)] = window.values[rows[known], max(0, late) :]
        values[signal] = measured
    width = min(measured.shape[1] for measured in values.values())
    begin = now - (width - 1) * MINUTE
    return Traces(tuple(workloads), begin, {signal: measured[:, -width:] for signal, measured in values.items()})


def _period(whole: Comparison, period: timedelta, known: tuple[datetime, datetime]) -> PeriodBenefit:
    from forecaster.replay.comparison import workload_verdict  # noqa: PLC0415  as above
    from forecaster.replay.realised import SUM_LENGTH  # noqa: PLC0415  as above

    since, until = max(known[0], whole.begin), known[1]
    span = period if until - since >= period - SUM_LENGTH else until - since
    counts = Counter(workload.benefit(whole.forecaster) for workload in whole.workloads)
    verdict = workload_verdict(next(iter(counts)), span) if len(whole.workloads) == 1 else whole.verdict(span)
    plain, forecaster = (_four(whole.own(name), whole) for name in ("hpa", whole.forecaster))
    by_benefit = {str(benefit): count for benefit, count in counts.items()}
    return PeriodBenefit(since, until, plain, forecaster, by_benefit, verdict)


def _four(account: Account, whole: Comparison) -> FourNumbers:
    def rounded(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.{SHOWN_DIGITS}g}")

    numbers = account.missing_share, account.short_minutes, account.pod_hours, account.money if whole.prices else None
    return FourNumbers(*map(rounded, numbers))  # type: ignore[arg-type]  # of what is known


def _unknown(past: LivePast) -> str:
    return f"not known: {past.left_out}" if past.left_out else _waiting(past.since)


def _waiting(since: datetime) -> str:
    """Say why there is no comparison yet: it needs an hour of decisions."""
    return f"not known yet: decisions are compared once an hour, for the first time after {since + HOUR:%H:%M} UTC"
