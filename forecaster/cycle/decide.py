"""The step that decides: every group of rows by the one array function, and what texts of a decision are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.forecasts import ColumnRequest, Columns, Forecasts, columns_of
from forecaster.cycle.observed import Observed
from forecaster.cycle.rows import RowGroup, Rows
from forecaster.domain.decision import Hold, LeadTime, Reason, Resize
from forecaster.domain.signal import Signal
from forecaster.domain.workload import Spread, Workload, WorkloadId
from forecaster.errors import unexpected
from forecaster.horizontal.columns import Names
from forecaster.horizontal.decide import FAILED, Decisions, decide
from forecaster.horizontal.events import EventColumns
from forecaster.horizontal.gate_states import Gate, GateForecaster, GateState, gate_reason
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.record import failure_words, outage_words, unmeasured_words
from forecaster.horizontal.row import IMPOSSIBLE, NONE, REASONS
from forecaster.horizontal.state import State
from forecaster.hpa.numbers import MAX_INT32
from forecaster.publish.decided import DecidedRows, Group, held_numbers, numbers_of
from forecaster.publish.offer import DecidedColumns
from forecaster.publish.record import encoded_lead_time
from forecaster.vertical.sizing.containers import PodSizing
from forecaster.vertical.sizing.pod import SizeCache


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Facts that records of rows need beside the numbers of their decisions."""

    rows: Rows
    forecasts: Forecasts
    gates: Sequence[Gate | None]
    """[row]; None where the policy asks for no gate."""
    sizing: Callable[[WorkloadId], PodSizing]
    lead_time: Callable[[WorkloadId], LeadTime]
    columns: Mapping[Signal, Columns]
    names: Names
    """Texts of the cycle, each once."""
    sizes: SizeCache


class FleetDecisions(DecidedRows):
    """Decisions of this process: arrays of each group, and the objects from which texts and records are made."""

    def __init__(self, at: datetime, groups: Sequence[tuple[NDArray[np.intp], Decisions]], context: Context) -> None:
        workloads = context.rows.workloads
        numbers = numbers_of(workloads, Reason.SOURCE_DOWN, groups)
        super().__init__(at, workloads, with_texts(numbers, groups, context))
        self._context = context
        self._sizings = [context.sizing(id_) for id_ in context.rows.ids]

    @cached_property
    def size_ids(self) -> NDArray[np.int64]:
        """[row] identity of the choice of a size and of its static row, which live as long as these rows."""
        pairs = zip(self._sizings, self._context.rows.static.rows, strict=True)
        return np.fromiter((id(sizing) ^ (id(row) << 1) for sizing, row in pairs), np.int64, len(self))

    def resources(self, index: int) -> Resize | Hold:
        """Return the decision about the resources of one workload; held with the reason where it cannot be made."""
        workload, row = self.workloads[index], self._context.rows.rows[index]
        if row.lost:
            return Hold(Reason.SOURCE_DOWN, row.lost)
        try:
            return self._context.sizes.size(workload, self._sizings[index], row.policy.vertical)
        except Exception as error:  # noqa: BLE001  the boundary of a size: nothing in one workload stops the others
            return Hold(Reason.FAILED, unexpected(error))

    def failures(self) -> list[str]:
        """One sentence for each workload about which nothing could be computed."""
        failed = np.flatnonzero(self.reason == FAILED).tolist()
        return [f"{self.ids[row]}: {self[row].replicas.message}" for row in failed]


def with_texts(numbers: DecidedColumns, groups: Sequence[Group], context: Context) -> DecidedColumns:
    """Return the columns of a fleet with the texts of its rows."""
    names, rows, static = context.names, context.rows.rows, context.rows.static
    numbers.stated[:], numbers.readers[:] = (each.codes(names) for each in (static.stated, static.readers))
    gates = zip(rows, context.gates, strict=True)
    numbers.shut[:] = names.codes(gate_reason(row.policy, gate).encode() for row, gate in gates)
    for index, row in enumerate(rows):
        if row.lost:
            _withhold(numbers, index, Reason.SOURCE_DOWN, row.lost, names)
            continue
        try:
            numbers.lead_time[index] = names[encoded_lead_time(context.lead_time(context.rows.ids[index]))]
        except Exception as error:  # noqa: BLE001  the boundary of a row: nothing in one workload stops the others
            _withhold(numbers, index, Reason.FAILED, unexpected(error), names)
    for positions, group in groups:
        GroupTexts(numbers, positions, group, context).put()
    return replace(numbers, names=tuple(names))


def _withhold(numbers: DecidedColumns, row: int, reason: Reason, why: str, names: Names) -> None:
    """Hold a row whatever its numbers are."""
    numbers.nothing_decided[row] = REASONS.index(reason)
    numbers.hold[row] = names[why.encode(errors="replace")]


class GroupTexts(NamedTuple):
    """Puts the texts of the rows of one group into the columns of the fleet."""

    numbers: DecidedColumns
    positions: NDArray[np.intp]
    group: Decisions
    context: Context

    def put(self) -> None:
        """Store the codes of rows that differ from the default, and the outlook of each forecast."""
        inputs, state, events = self.group.inputs, self.group.state, self.group.inputs.events
        self._put("hold", self.group.failed > 0, self._failure)
        self._put("hold", events.frozen & (self.group.failed == 0), lambda row: events.row(row).freeze_words)
        self._put("event", events.floors > 0, lambda row: events.row(row).floor_words)
        most = np.minimum(events.most, events.bounds)
        self._put("event_most", most < MAX_INT32, lambda row: events.row(row).most_words)
        self._put("outage", state.cause != NONE, lambda row: outage_words(self.group, row))
        for target, kind in enumerate(inputs.rules.kinds):
            columns = self.context.columns[kind.signal]  # type: ignore[index]  # a signal is its name
            self.numbers.outlook[target, self.positions] = columns.details[self.positions]
            partly = columns.partly[self.positions] | (self.group.unseen[target] == IMPOSSIBLE)
            self._put("unmeasured", partly, partial(self._unmeasured, target), target)

    def _put(self, name: str, where: NDArray[np.bool_], words: Callable[[int], str], plane: int = 0) -> None:
        names, column = self.context.names, np.atleast_2d(getattr(self.numbers, name))[plane]
        for row in np.flatnonzero(where).tolist():
            index = self.positions[row]
            try:
                column[index] = names[words(row).encode()]
            except Exception as error:  # noqa: BLE001  the boundary of a row: nothing in one workload stops the others
                _withhold(self.numbers, index, Reason.FAILED, unexpected(error), names)

    def _failure(self, row: int) -> str:
        return self.context.rows.rows[self.positions[row]].failure or failure_words(self.group, row)

    def _unmeasured(self, target: int, row: int) -> str:
        rows, index = self.context.rows, self.positions[row]
        signal = self.group.inputs.rules.kinds[target].signal
        latest = self.context.forecasts.latest[signal]  # type: ignore[index]  # a signal is its name
        measured = latest.measured(rows.ids[index], rows.rows[index].policy.max_sample_age)
        return unmeasured_words(self.group, row, target, measured)


def held_all(workloads: Sequence[Workload], reason: Reason, message: str, now: datetime) -> DecidedRows:
    """Return a hold for every workload, because the present is not known."""
    numbers = held_numbers(workloads, reason, lambda _: message)
    return DecidedRows(now, workloads, numbers, [held_size(reason, message)] * len(workloads))


@lru_cache
def held_size(reason: Reason, message: str) -> Hold:
    """Return the size of workloads that are left as they are: one object, so that it is no change."""
    return Hold(reason, message)


@dataclass(slots=True)
class Decider:
    """Decides each cycle, and carries the state of the fleet and the observations of its workloads on to the next."""

    observed: Observed = field(default_factory=Observed)
    before: State = field(default_factory=lambda: State.new(0))
    """State of decisions at the start of the last cycle."""
    sizes: SizeCache = field(default_factory=SizeCache)
    """Decided sizes; an entry stays valid while the choice of sizes is the same."""

    def decide(
        self,
        rows: Rows,
        forecasts: Forecasts,
        sizing: Callable[[WorkloadId], PodSizing],
        lead_time: Callable[[WorkloadId], LeadTime],
        now: datetime,
    ) -> FleetDecisions:
        """Decide about every workload of this cycle."""
        gates = self._gates(rows)
        names = Names()
        columns = self._columns(rows, forecasts, gates, now, names)
        at, events, acting = now.timestamp(), rows.static.calendar.at(now), _acting(gates)
        spread, places = pod_spread(rows), self._places(rows, now)
        self.before = self.observed.state
        decided = []
        for group in rows.static.groups:
            inputs = inputs_of(group, rows, columns, events, spread, acting)
            taken = self.observed.state.take(places[group.positions])
            decisions, after = decide(inputs, taken, at)
            self.observed.state = self.observed.state.put(places[group.positions], after)
            decided.append((group.positions, decisions))
        context = Context(rows, forecasts, gates, sizing, lead_time, columns, names, self.sizes)
        return FleetDecisions(now, decided, context)

    def _gates(self, rows: Rows) -> list[Gate | None]:
        gates: list[Gate | None] = [None] * len(rows.ids)
        for row in rows.static.gated:
            gates[row] = self.observed.gates.of(rows.ids[row])
        return gates

    def _columns(
        self, rows: Rows, forecasts: Forecasts, gates: Sequence[Gate | None], now: datetime, names: Names
    ) -> Mapping[Signal, Columns]:
        seasonal = [row for row, gate in enumerate(gates) if gate and gate.forecaster is GateForecaster.SEASONAL]
        quantile = np.full(len(rows.ids), 0.5)
        for group in rows.static.groups:
            quantile[group.positions] = group.policy["quantile"]
        request = ColumnRequest(quantile, seasonal, now.timestamp(), names)
        return {signal: columns_of(signal, forecasts, rows, request) for signal in rows.static.driven}

    def _places(self, rows: Rows, now: datetime) -> NDArray[np.int64]:
        """Return the positions of the rows in the state that is open for this cycle."""
        fleet = self.observed.fleet
        fitted = fleet.fitted(self.observed.state, rows.ids, now)
        if fitted.compacted:
            self.observed.forget_others(fleet.row.keys())
            self.sizes.forget_others(fleet.row.keys())
        groups = rows.static.groups
        keep = max((group.policy.keep for group in groups), default=0.0)
        signals = dict.fromkeys(signal for group in groups for signal in group.rules.signals)
        self.observed.state = fitted.table.opened(now.timestamp(), keep, signals)
        return fitted.places


def inputs_of(
    group: RowGroup,
    rows: Rows,
    columns: Mapping[Signal, Columns],
    events: EventColumns,
    spread: NDArray[np.float64],
    acting: NDArray[np.bool_],
) -> Inputs:
    """Return the inputs of the decision for one group of rows."""
    at, kinds = group.positions, group.rules.kinds
    mine = [columns[kind.signal] for kind in kinds]  # type: ignore[index]  # a signal is its name

    def stacked(name: str) -> NDArray[np.float64]:
        return np.array([getattr(signal_columns, name)[at] for signal_columns in mine]).reshape(len(kinds), len(at))

    return Inputs(
        rules=group.rules,
        policy=group.policy,
        targets=group.targets,
        current=np.array([rows.workloads[row].replicas for row in at.tolist()], np.int64),
        ready=np.array([rows.workloads[row].ready_replicas for row in at.tolist()], np.int64),
        measured=stacked("measured"),
        unseen=stacked("unseen").astype(np.int8),
        age=stacked("age"),
        peak=stacked("peak"),
        low=stacked("low"),
        quantiles=[signal_columns.quantiles[:, at] for signal_columns in mine],
        acting=acting[at],
        events=events.take(at),
        lost=spread[at],
        unreadable=rows.static.unreadable[at],
    )


def _acting(gates: Sequence[Gate | None]) -> NDArray[np.bool_]:
    """[row] whether the forecast may act: where no gate is required, or the gate is open."""
    return np.array([gate is None or gate.standing is GateState.ACTING for gate in gates], np.bool_)


def pod_spread(rows: Rows) -> NDArray[np.float64]:
    """[row] largest share of its pods in one node or zone, as its policy names the loss; NaN if not known."""
    shares = np.zeros(len(rows.ids))
    for row in rows.static.surviving:
        shares[row] = lost_share(rows.workloads[row].spread, rows.rows[row].policy.horizontal.survive)
    return shares


def lost_share(spread: Spread, domain: str) -> float:
    """Share of the pods that are lost with the fullest domain; NaN where that is not known, 0 of none."""
    share = {"node": spread.node, "zone": spread.zone}.get(domain, 0.0)
    return np.nan if share is None else share
