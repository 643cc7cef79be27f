"""The step that decides: every group of rows by the one array function, and what is remembered of the fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.fleet_decisions import Context, FleetDecisions
from forecaster.cycle.forecasts import Columns, ForecastRequest, Forecasts, columns_of
from forecaster.cycle.observed import Observed
from forecaster.horizontal.columns import Names
from forecaster.horizontal.decide import decide
from forecaster.horizontal.events import EventColumns, calendar_of
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.standing import Gate, GateForecaster, Standing
from forecaster.horizontal.state import State
from forecaster.vertical.sizing.pod import SizeCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.rows import RowGroup, Rows
    from forecaster.domain.decision import LeadTime
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Spread, WorkloadId
    from forecaster.vertical.sizing.containers import PodSizing


@dataclass(slots=True)
class Decider:
    """Carries the state of the fleet, and what was observed of its workloads, from cycle to cycle."""

    observed: Observed = field(default_factory=Observed)
    before: State = field(default_factory=lambda: State.new(0))
    """What was remembered when the last cycle began."""
    sizes: SizeCache = field(default_factory=SizeCache)
    """What was decided about resources: it stands while the choice of sizes stands."""

    def decide(
        self,
        rows: Rows,
        forecasts: Forecasts,
        sizing: Callable[[WorkloadId], PodSizing],
        lead_time: Callable[[WorkloadId], LeadTime],
        now: datetime,
    ) -> FleetDecisions:
        """Every workload of this cycle."""
        gates = self._gates(rows)
        names = Names()
        columns = self._columns(rows, forecasts, gates, now, names)
        at, calendar, acting = now.timestamp(), _calendar(rows, now), _acting(gates)
        spread, places = pod_spread(rows), self._places(rows, now)
        self.before = self.observed.state
        decided = []
        for group in rows.standing.groups:
            inputs = inputs_of(group, rows, columns, calendar, spread, acting)
            taken = self.observed.state.take(places[group.positions])
            found, after = decide(inputs, taken, at)
            self.observed.state = self.observed.state.put(places[group.positions], after)
            decided.append((group.positions, found))
        context = Context(rows, forecasts, gates, sizing, lead_time, columns, calendar, names, self.sizes)
        return FleetDecisions(now, decided, context)

    def _gates(self, rows: Rows) -> list[Gate | None]:
        gates: list[Gate | None] = [None] * len(rows.ids)
        for row in rows.standing.gated:
            gates[row] = self.observed.gates.of(rows.ids[row])
        return gates

    def _columns(
        self, rows: Rows, forecasts: Forecasts, gates: Sequence[Gate | None], now: datetime, names: Names
    ) -> Mapping[Signal, Columns]:
        seasonal = [row for row, gate in enumerate(gates) if gate and gate.forecaster is GateForecaster.SEASONAL]
        quantile = np.full(len(rows.ids), 0.5)
        for group in rows.standing.groups:
            quantile[group.positions] = group.policy["quantile"]
        request = ForecastRequest(quantile, seasonal, now.timestamp(), names)
        return {signal: columns_of(signal, forecasts, rows, request) for signal in rows.standing.driven}

    def _places(self, rows: Rows, now: datetime) -> NDArray[np.int64]:
        """Return the positions of the rows in the state that is open for this cycle."""
        fleet = self.observed.fleet
        fitted = fleet.fitted(self.observed.state, rows.ids, now)
        if fitted.compacted:
            self.observed.forget_others(fleet.row.keys())
            self.sizes.forget_others(fleet.row.keys())
        groups = rows.standing.groups
        keep = max((group.policy.keep for group in groups), default=0.0)
        signals = dict.fromkeys(signal for group in groups for signal in group.rules.signals)
        self.observed.state = fitted.table.opened(now.timestamp(), keep, signals)
        return fitted.places


def inputs_of(
    group: RowGroup,
    rows: Rows,
    columns: Mapping[Signal, Columns],
    calendar: EventColumns,
    spread: NDArray[np.float64],
    acting: NDArray[np.bool_],
) -> Inputs:
    """What one group is decided from."""
    at, kinds = group.positions, group.rules.kinds
    mine = [columns[kind.signal] for kind in kinds]  # type: ignore[index]  # a signal is its name

    def stacked(name: str) -> NDArray[np.float64]:
        return np.array([getattr(one, name)[at] for one in mine]).reshape(len(kinds), len(at))

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
        quantiles=[one.quantiles[:, at] for one in mine],
        acting=acting[at],
        event_floor=calendar.floors[at],
        event_most=calendar.most[at],
        event_bound=calendar.bounds[at],
        lost=spread[at],
        frozen=calendar.frozen[at],
        unreadable=rows.standing.unreadable[at],
    )


def _acting(gates: Sequence[Gate | None]) -> NDArray[np.bool_]:
    """[row] whether the forecast has its say: where no gate is asked for, or the gate lets it."""
    return np.array([gate is None or gate.standing is Standing.ACTING for gate in gates], np.bool_)


def _calendar(rows: Rows, now: datetime) -> EventColumns:
    count = len(rows.ids)
    if not rows.standing.with_events:
        return EventColumns.none(count)
    events = [row.policy.horizontal.events for row in rows.rows]
    pairs = zip(rows.rows, events, strict=True)
    lead_times = np.array([row.lead_time.total_seconds() if own else 0.0 for row, own in pairs])
    return calendar_of(events, lead_times, now.timestamp())


def pod_spread(rows: Rows) -> NDArray[np.float64]:
    """[row] share of its pods in the node or zone that its policy wants to survive the loss of; NaN if not known."""
    shares = np.zeros(len(rows.ids))
    for row in rows.standing.surviving:
        shares[row] = lost_share(rows.workloads[row].spread, rows.rows[row].policy.horizontal.survive)
    return shares


def lost_share(spread: Spread, domain: str) -> float:
    """Share of the pods that are lost with the fullest domain; NaN where that is not known, 0 of none."""
    share = {"node": spread.node, "zone": spread.zone}.get(domain, 0.0)
    return np.nan if share is None else share
