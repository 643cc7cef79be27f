"""Everything that a shard has learned reaches the shards of a new partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from forecaster.app.sharding.learned import repartitioned
from forecaster.cycle.capacities import PersistedCapacity
from forecaster.cycle.lead_times import PersistedStartUps
from forecaster.cycle.observed import VERSION, PersistedColumn, PersistedObservations
from forecaster.horizontal.gate_states import Gates
from forecaster.horizontal.state import State

if TYPE_CHECKING:
    from forecaster.horizontal.columns import Table

WEB, API = ("shop", "Deployment", "web"), ("pay", "Deployment", "api")
SHARDS = {"shop": 0, "pay": 1}


def took(id_: tuple[str, str, str], *seconds: float) -> PersistedStartUps:
    return PersistedStartUps(id_, seconds, 120.0, 0)


def capacity(id_: tuple[str, str, str]) -> PersistedCapacity:
    return PersistedCapacity(id_, "cpu", 0.5, 120, "v1", None)


def columns(table: Table) -> dict[str, PersistedColumn]:
    return {name: PersistedColumn.of(array) for name, array in table.arrays().items()}


LEARNED = PersistedObservations(
    version=VERSION,
    lead_times=(took(WEB, 60.0), took(API, 90.0)),
    pods=(took(WEB, 61.0), took(API, 91.0)),
    images={"shop nginx": took(("", "", ""), 62.0)},
    pools={"spot": (took(WEB, 63.0), took(API, 93.0)), "slow": (took(WEB, 200.0),)},
    gates=columns(Gates.new(2)),
    gated=((WEB, 1.0), (API, 2.0)),
    capacities=(capacity(WEB), capacity(API)),
    fleet=((WEB, 3.0), (API, 4.0)),
    state=columns(State.new(2)),
)


def test_nothing_is_lost_where_a_fleet_is_divided_and_joined_again() -> None:
    divided = repartitioned([msgspec.json.encode(LEARNED)], SHARDS.__getitem__)
    assert divided.keys() == {0, 1}
    (joined,) = repartitioned(divided.values(), lambda _: 0).values()
    restored = msgspec.json.decode(joined, type=PersistedObservations)
    for name in LEARNED.__struct_fields__:
        assert getattr(LEARNED, name), f"{name}: this test has none of it"
        assert getattr(restored, name) == getattr(LEARNED, name), name


def test_a_shard_has_its_own_workloads_alone() -> None:
    divided = repartitioned([msgspec.json.encode(LEARNED)], SHARDS.__getitem__)
    pay = msgspec.json.decode(divided[1], type=PersistedObservations)
    assert pay.pools == {"spot": (took(API, 93.0),)}
    assert [entry.id for entry in (*pay.lead_times, *pay.pods, *pay.capacities)] == [API] * 3
    assert pay.images == LEARNED.images
    assert np.array_equal([value for _, value in pay.fleet], [4.0])
