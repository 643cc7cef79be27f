"""A record that the serving process makes of a table equals the cycle's, byte for byte."""

from __future__ import annotations

import pickle
import tempfile
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.app.sharding.sizes import SentSizes, SizeTimes
from forecaster.cycle.decide import Decider
from forecaster.cycle.forecasts import Forecasts
from forecaster.cycle.rows import RowCache
from forecaster.demand.latest import Latest, Parts
from forecaster.domain.policies import CombinedPolicy, Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import DEMAND
from forecaster.domain.window import MINUTE
from forecaster.forecasting.peaks import LEVELS, PeakForecasts
from forecaster.horizontal.gate_states import Gate, GateForecaster, GateState
from forecaster.horizontal.lead_time import ScaleUpWatch, lead_time
from forecaster.publish.decided import DecidedRows
from forecaster.publish.publisher import OfferPublisher
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import TableFile
from forecaster.publish.views import recommendation_view
from tests.support.builders import CPU_HALF, MEMORY_HALF, after, hpa, sized, sizing_of, workload
from tests.support.recommendations import GIB, NOON, workload_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.cycle.decide import FleetDecisions
    from forecaster.cycle.rows import Rows
    from forecaster.domain.decision import LeadTime, Recommendation
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.forecaster import PeakSpan
    from forecaster.publish.reader import PublishedTable
    from forecaster.vertical.sizing.containers import PodSizing

HORIZONTAL: tuple[Mapping[str, Any], ...] = (
    {"gate": False},
    {"gate": True},
    {"gate": False, "scale_in_by_forecast": True},
    {"gate": False, "sizing": "newsvendor", "scale_in_by_forecast": True, "min_replicas": 0},
    {"gate": False, "sizing": "newsvendor", "surge": 0.3},
    {"gate": False, "outage_hold": "30m", "max_replicas": 12},
    {"gate": False, "requests_per_pod": 50, "max_replicas": 9, "lead_time": "2m"},
    {"gate": False, "events": [{"name": "sale", "replicas": 15, "start": after(5).isoformat(), "end": after(9)}]},
    {"gate": False, "events": [{"name": "night", "max_replicas": 5, "start": after(1).isoformat(), "end": after(30)}]},
    {"gate": False, "survive": "zone"},
    {"gate": True, "events": [{"name": "repair", "freeze": True, "start": after(2).isoformat(), "end": after(9)}]},
)
POLICIES = tuple(
    Policy.model_validate({"mode": "publish", "max_sample_age": f"{2 + place % 3}m", "horizontal": horizontal})
    for place, horizontal in enumerate(HORIZONTAL)
)
AUTOSCALERS = (None, hpa(), hpa(CPU_HALF, MEMORY_HALF), hpa(CPU_HALF, replace(CPU_HALF, value=0.7), highest=20))
SIZINGS = (sizing_of(cpu=sized(0.4)), sizing_of(cpu=sized(0.5), memory=sized(GIB)), sizing_of(memory=sized(GIB)))
MOST = {"cpu": 12.0, "memory": 12 * GIB, "requests": 900.0}
NOTES = ("", "ridge spoke: too few days for a network", "it spoke")


@dataclass
class DayBefore:
    """Forecaster that repeats the value of a day ago."""

    known: Mapping[WorkloadId, float]

    def peak(self, id_: WorkloadId, begin: datetime, until: datetime) -> float | None:
        del begin, until
        return self.known.get(id_)


@dataclass
class RandomFleet:
    """A fleet of some workloads in which anything may change from one minute to the next."""

    random: np.random.Generator
    decider: Decider = field(default_factory=Decider)
    book: RowCache = field(default_factory=RowCache)
    workloads: dict[WorkloadId, Workload] = field(default_factory=dict)
    policies: Policies = field(default_factory=lambda: Policies(POLICIES[0]))
    sizings: dict[WorkloadId, PodSizing] = field(default_factory=dict)
    facts: dict[tuple[str, WorkloadId, str], Any] = field(default_factory=dict)
    """Values that stay from minute to minute, by signal, workload and name."""

    def decided(self, at: datetime) -> FleetDecisions:
        """The decisions of one cycle."""
        self._change()
        lost = {id_: "the source does not list it" for id_ in self.workloads if self._one_in(25)}
        rows = self.book.rows([*self.workloads.values()], self.policies, lost)
        return self.decider.decide(rows, self._forecasts(rows, at), self.sizings.__getitem__, self._lead_time, at)

    def _one_in(self, count: int) -> bool:
        return bool(self.random.integers(count) == 0)

    def _chosen(self, among: tuple[Any, ...]) -> Any:
        return among[int(self.random.integers(len(among)))]

    def _change(self) -> None:
        """Some workloads come or change; of most only counts do."""
        for number in range(6):
            id_ = workload_id(f"web-{number}")
            known = self.workloads.get(id_)
            if known is None or self._one_in(20):
                self.policies.chosen[id_] = CombinedPolicy(self._chosen(POLICIES))
                self.sizings[id_] = self._chosen(SIZINGS)
                known = workload(id=id_, autoscaler=self._chosen(AUTOSCALERS))
            replicas = -2 if self._one_in(40) else int(self.random.integers(0, 14))
            ready = replicas if self.random.integers(2) else int(self.random.integers(0, 14))
            self.workloads[id_] = replace(known, replicas=replicas, ready_replicas=ready)
            self._learn(id_)

    def _learn(self, id_: WorkloadId) -> None:
        """Now and then another standing, another lead time, another size."""
        if self._one_in(6):
            standing, forecaster = self._chosen(tuple(GateState)), self._chosen(tuple(GateForecaster))
            self.decider.observed.gates.records[id_] = Gate(standing, forecaster, NOON, self._chosen(("new", "better")))
        if self._one_in(9):
            took = tuple(MINUTE * int(minutes) for minutes in self.random.integers(1, 20, 5))
            self.decider.observed.lead_times.watches[id_] = ScaleUpWatch(took=took)
        if self._one_in(9):
            self.sizings[id_] = self._chosen(SIZINGS)

    def _lead_time(self, id_: WorkloadId) -> LeadTime:
        watch = self.decider.observed.lead_times.watches.get(id_, ScaleUpWatch())
        return lead_time(self.policies.of(id_).horizontal, watch.took)

    def _forecasts(self, rows: Rows, at: datetime) -> Forecasts:
        latest = {signal: self._latest(signal, rows.ids, at) for signal in DEMAND}
        peaks = {
            signal: {span: self._peaks(signal, ids, at, span) for span, ids in spans.items() if not self._one_in(20)}
            for signal, spans in rows.static.driven.items()
        }
        day_ago = {signal: DayBefore(dict.fromkeys(rows.ids[::2], MOST[signal] / 3)) for signal in DEMAND}
        return Forecasts(latest, peaks, (), day_ago)  # type: ignore[arg-type]

    def _latest(self, signal: Signal, ids: tuple[WorkloadId, ...], at: datetime) -> Latest:
        count = len(ids)
        values = self.random.uniform(0.0, MOST[signal], count) * self._stays(
            signal, ids, "beyond", (1.0,) * 20 + (1e30,)
        )
        silent = self._stays(signal, ids, "silent", (0, 0, 0, 0, 0, 0, 1, 4, 200))
        known = self._stays(signal, ids, "known", (180,) * 8 + (20, 21))
        code = self._stays(signal, ids, "code", (0,) * 12 + (1, 2, 3, 4)).astype(np.int8)
        complete, expected = self._stays(signal, ids, "seen", (2.0, 3.0)), self._stays(signal, ids, "of", (4.0, 5.0))
        parts = Parts(
            self.random.uniform(0.0, MOST[signal], count), np.zeros(count, np.int64), code, complete, expected
        )
        rows = {id_: row for row, id_ in enumerate(ids)}
        return Latest(rows, values, silent, known, at.replace(second=0), MINUTE, 180, parts)

    def _stays(self, signal: Signal, ids: tuple[WorkloadId, ...], name: str, among: tuple[Any, ...]) -> np.ndarray:
        """A fact of each of these workloads, which is another one now and then."""
        for id_ in ids:
            if (signal, id_, name) not in self.facts or self._one_in(25):
                self.facts[signal, id_, name] = self._chosen(among)
        return np.array([self.facts[signal, id_, name] for id_ in ids])

    def _peaks(self, signal: Signal, ids_: list[WorkloadId], at: datetime, span: PeakSpan) -> PeakForecasts:
        ids = tuple(ids_)
        values = np.sort(self.random.uniform(0.0, MOST[signal], (len(ids), len(LEVELS))), axis=1)
        values[self._stays(signal, ids, "unforeseen", (False,) * 8 + (True,))] = np.nan
        models = self._stays(signal, ids, "model", (0, 1)).astype(np.int32)
        notes = self._stays(signal, ids, "note", (0, 0, 1, 2)).astype(np.int32)
        place = {id_: row for row, id_ in enumerate(ids)}
        begin, named = at + span.lead_time, (("ridge", "seasonal-naive-day"), NOTES)
        return PeakForecasts(begin, begin + span.length, ids, place, values, models, notes, *named)


def read(path: Path) -> PublishedTable:
    reader = TableReader(path)
    reader.refresh()
    assert reader.table is not None, reader.fault
    return reader.table


@given(st.integers(0, 2**32 - 1), st.sampled_from((0, 15)))
@settings(max_examples=30, deadline=None)
def test_a_record_of_the_table_is_that_of_the_cycle(seed: int, seconds: int) -> None:
    fleet = RandomFleet(np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as directory:
        table = TableFile(Path(directory) / "table", interval=timedelta(minutes=1), version="1")
        publisher = OfferPublisher(fleet.policies, {"table": table})
        for minute in range(5):
            at = after(minute) + timedelta(seconds=seconds)
            decided = fleet.decided(at)
            publisher.publish(at, decided)
            served = read(table.path)
            for row, entry in enumerate(served.entries):
                assert entry.name == decided.ids[row].name
                mode = fleet.policies.of(decided.ids[row]).mode
                assert decided.verdict(row) == decided[row].replicas
                record = msgspec.json.encode(msgspec.structs.replace(recommendation_view(decided[row]), mode=mode))
                assert msgspec.json.encode(served.view(entry)).decode() == record.decode()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_a_fleet_that_comes_as_numbers_and_texts_is_the_one_that_was_decided(seed: int) -> None:
    """Shards answer so: changed texts are sent, pickled; the others stay from before."""
    fleet, times, sent, before = RandomFleet(np.random.default_rng(seed)), SizeTimes(), SentSizes(), None
    for minute in range(4):
        decided = fleet.decided(after(minute))
        times.follow(decided)
        answer = pickle.dumps((decided.numbers, times.since(before, decided, len(decided))))
        numbers, texts = pickle.loads(answer)  # noqa: S301  our own
        sent.follow(decided.ids)
        sent.update(range(len(decided)), texts)
        before = decided.at
        received = DecidedRows(decided.at, decided.workloads, numbers, [text for text in sent.latest if text])
        assert list(map(without_levels, received)) == list(map(without_levels, decided))
        assert received.verdicts() == decided.verdicts()
        for row in range(len(decided)):
            assert received.summary(row) == decided.summary(row)


def without_levels(recommendation: Recommendation) -> Recommendation:
    """Remove the whole distribution of a forecast, which stays where it was made."""
    views = (
        replace(view, forecast=view.forecast and replace(view.forecast, levels=(), peaks=()), pod=None)
        for view in recommendation.signals
    )
    return replace(recommendation, signals=tuple(views))
