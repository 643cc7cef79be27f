"""State that outlives a cycle, beside the demand of workloads, and its persisted form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.capacities import Capacities, PersistedCapacity
from forecaster.cycle.gates import ForecastGates
from forecaster.cycle.lead_times import LeadTimes, PersistedStartUps
from forecaster.cycle.rows import Fleet
from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.policies import Policies
from forecaster.domain.policy import PodCapacity, Policy
from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.columns import Table
from forecaster.horizontal.gate_states import Gates
from forecaster.horizontal.state import State

NOTHING_LEARNED: Mapping[str, PodCapacity] = {}


class ObservedPolicy(NamedTuple):
    """The policy in force of one workload, and the values it was made of."""

    stated: Policy
    bucket: timedelta | None
    filled: Mapping[str, PodCapacity]
    policy: Policy


@dataclass(slots=True)
class PoliciesInForce(Policies):
    """Policies with observed values; shared by workloads of one policy and lead time without a learned capacity."""

    without_observed: Policies = field(kw_only=True)
    """The stated policies: only the original policies know the ceilings of owners."""
    buckets: Mapping[WorkloadId, timedelta] = field(default_factory=dict)
    filled: Mapping[WorkloadId, Mapping[str, PodCapacity]] = field(default_factory=dict)
    made: dict[WorkloadId | tuple[int, timedelta], ObservedPolicy] = field(default_factory=dict)
    """Kept from cycle to cycle: by policy as it is stated and lead time, or by workload where something was learned."""

    def of(self, id_: WorkloadId) -> Policy:
        """The policy of one workload."""
        policy, bucket, filled = self.stated(id_), self.buckets.get(id_), self.filled.get(id_, NOTHING_LEARNED)
        if policy.horizontal.peak_target is not None:
            filled = NOTHING_LEARNED
        if not filled and (bucket is None or policy.horizontal.lead_time is not None):
            return policy
        key = id_ if filled or bucket is None else (id(policy), bucket)
        made = self.made.get(key)
        if made is None or made.stated is not policy or made.bucket != bucket or made.filled is not filled:
            made = self.made[key] = ObservedPolicy(policy, bucket, filled, with_observed(policy, bucket, filled))
        return made.policy

    def stated(self, id_: WorkloadId) -> Policy:
        """The policy of one workload as its owner states it, within the ceilings of the platform."""
        return self.without_observed.stated(id_)

    def forget_others(self, ids: Collection[WorkloadId]) -> None:
        """Forget policies of workloads that are gone, and observed values that no policy uses."""
        self.without_observed.forget_others(ids)
        if len(self.made) > 2 * len(ids) + SPARE_ROWS:
            used = {id(self.stated(id_)) for id_ in ids}
            for key in [key for key in self.made if key[0] not in used and key not in ids]:
                del self.made[key]


def with_observed(policy: Policy, bucket: timedelta | None, filled: Mapping[str, PodCapacity]) -> Policy:
    """Return the policy with a measured lead time and learned capacities."""
    return policy.model_copy(update={"horizontal": policy.horizontal.with_observed(bucket, filled)})


VERSION = 3
PersistedFleet = tuple[tuple[tuple[str, str, str], float], ...]
"""Workload of each row, and when it was there last, in epoch seconds."""
RestoredTable = TypeVar("RestoredTable", bound=Table)


class PersistedColumn(msgspec.Struct, frozen=True):
    """A plain array: its type as numpy writes it, its shape, and its bytes."""

    type: str
    shape: tuple[int, ...]
    values: bytes

    @classmethod
    def of(cls, column: NDArray[Any]) -> PersistedColumn:
        """The column as it is written."""
        return cls(column.dtype.str, column.shape, np.ascontiguousarray(column).tobytes())

    def array(self) -> NDArray[Any]:
        """Decode the column. Raises `ValueError` where bytes, shape and type do not fit together."""
        return np.frombuffer(self.values, np.dtype(self.type)).reshape(self.shape).copy()


def packed(table: Table) -> dict[str, PersistedColumn]:
    """Return a table as it is written."""
    return {name: PersistedColumn.of(column) for name, column in table.arrays().items()}


def unpacked(table: type[RestoredTable], columns: Mapping[str, PersistedColumn]) -> RestoredTable:
    """Return a table of columns as they are written. Raises KeyError, TypeError, ValueError where these do not fit."""
    return table.of_arrays({name: column.array() for name, column in columns.items()})


BEFORE = {name: PersistedColumn.of(np.zeros(0)) for name in ("changes_at", "changes")}
"""Columns of the state that a forecaster of one version before needs to read it; to this one they mean nothing."""


class PersistedObservations(msgspec.Struct, frozen=True, omit_defaults=True):
    """The persisted state of observations."""

    version: int = 0
    """Not `VERSION`: a default is not written, and a program of another version would read its own."""
    lead_times: tuple[PersistedStartUps, ...] = ()
    pods: tuple[PersistedStartUps, ...] = ()
    images: dict[str, PersistedStartUps] = {}
    pools: dict[str, tuple[PersistedStartUps, ...]] = {}
    gates: dict[str, PersistedColumn] = {}
    gated: PersistedFleet = ()
    """The workloads of the gates, in the order of their rows."""
    capacities: tuple[PersistedCapacity, ...] = ()
    fleet: PersistedFleet = ()
    state: dict[str, PersistedColumn] = {}


LEAVES_OUT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("stabilization", {"state": {}, "fleet": ()}),
    ("capacities", {"capacities": ()}),
    ("pods", {"pods": ()}),
    ("gates", {"gates": {}, "gated": ()}),
    ("lead times", {"lead_times": (), "images": {}, "pools": {}}),
)
"""Parts of the observations in the order in which they are left out where there is no room, the first first."""


@dataclass(slots=True)
class Observed:
    """State that cycles carry on."""

    lead_times: LeadTimes = field(default_factory=LeadTimes)
    gates: ForecastGates = field(default_factory=ForecastGates)
    fleet: Fleet = field(default_factory=Fleet)
    """Workload of each row of `state`."""
    state: State = field(default_factory=lambda: State.new(0))
    """State of decisions, [row] each."""
    capacities: Capacities = field(default_factory=Capacities)
    policies: dict[WorkloadId | tuple[int, timedelta], ObservedPolicy] = field(default_factory=dict)
    """Policies with observed values: the same objects from cycle to cycle, so that rows are not resolved anew."""

    @property
    def decided_at(self) -> float:
        """Epoch seconds of the last evaluation time that was decided; 0 where there was none."""
        return max(self.state.times, default=0.0)

    def in_force(self, stated: Policies) -> Policies:
        """The policies of this cycle."""
        buckets = self.lead_times.buckets()
        filled = {id_: capacities for id_, capacities in self.capacities.filled.items() if capacities}
        if not (buckets or filled):
            return stated
        return PoliciesInForce(
            stated.defaults,
            stated.overrides,
            stated.built,
            stated.chosen,
            buckets,
            filled,
            self.policies,
            without_observed=stated,
            signals=stated.signals,
            modes=stated.modes,
            cluster=stated.cluster,
            changes=stated.changes,
        )

    def forget_others(self, ids: Container[WorkloadId]) -> None:
        """Forget the observations of all other workloads."""
        self.lead_times.forget_others(ids)
        self.capacities.forget_others(ids)

    def encoded(self) -> bytes:
        """Encode the observations as JSON."""
        observations = PersistedObservations(
            version=VERSION,
            **self.lead_times.persisted(),
            gates=packed(self.gates.gates),
            gated=tuple(self.gates.fleet.persisted()),
            capacities=self.capacities.persisted(),
            fleet=tuple(self.fleet.persisted()),
            state=packed(self.state) | BEFORE,
        )
        return msgspec.json.encode(observations)

    def encoded_within(self, most: int, pack: Callable[[bytes], bytes]) -> tuple[bytes, bytes, tuple[str, ...]]:
        """Encode and pack as many observations as fit into `most` bytes, and name the parts left out.

        The parts that are most expensive to learn are left out last.
        """
        observations, left = _decoded(self.encoded()), list[str]()
        packed = pack(content := msgspec.json.encode(observations))
        for part, without in LEAVES_OUT:
            if len(packed) <= most:
                break
            observations = msgspec.structs.replace(observations, **without)
            left.append(part)
            packed = pack(content := msgspec.json.encode(observations))
        return content, packed, tuple(left)

    def restore(self, encoded: bytes) -> None:
        """Restore the observations of an earlier process.

        Raises:
            msgspec.MsgspecError: it is no such JSON, or that of another version; nothing was restored.
        """
        known = _decoded(encoded)
        if known.version != VERSION:
            raise msgspec.ValidationError(f"version {known.version}, and not {VERSION}")
        fleet, state = _restored_rows(State, known.state, known.fleet)
        gates = _restored_rows(Gates, known.gates, known.gated)
        if known.gates:
            self.gates.restore(*gates)
        self.lead_times.restore(known.lead_times, known.pods, known.images, known.pools)
        self.capacities.restore(known.capacities)
        self.fleet, self.state = fleet, state


def _decoded(encoded: bytes) -> PersistedObservations:
    try:
        return msgspec.json.decode(encoded, type=PersistedObservations)
    except UnicodeDecodeError as error:
        raise msgspec.ValidationError(f"it is no text: {error}") from error


def _restored_rows(
    table: type[RestoredTable], columns: Mapping[str, PersistedColumn], workloads: PersistedFleet
) -> tuple[Fleet, RestoredTable]:
    """Restore a table and the workload of each of its rows; without columns there are no rows."""
    try:
        fleet = Fleet.restored(workloads)
        if not columns:
            return Fleet(), table.new(0)
        rows = unpacked(table, columns)
    except (KeyError, TypeError, ValueError) as error:
        raise msgspec.ValidationError(f"its columns of {table.__name__} do not fit together: {error}") from error
    if rows.rows != len(fleet.row):
        raise msgspec.ValidationError(f"{rows.rows} rows of {table.__name__}, and {len(fleet.row)} workloads")
    return fleet, rows
