"""State that somebody else wrote decides nothing: the service names it, goes on, and learns that part anew."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.app.sharding.learned import shard_of
from forecaster.cycle.gates import ForecastGates
from forecaster.cycle.observed import Observed
from forecaster.cycle.rows import Fleet
from forecaster.horizontal.gate_states import ACTING, SEASONAL, Gates
from forecaster.horizontal.state import State
from tests.support.builders import NOON, after, workload_id
from tests.support.composed import composed, recorded_cluster, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.app.service import Service
    from tests.support.composed import Cluster

WEB = workload_id("web")
SHARDING: dict[str, Any] = {"enabled": True, "shards": 2}
METRIC = 'forecaster_state_refused_timestamp_seconds{part="%s"}'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with recorded_cluster() as running:
        yield running


def forged() -> bytes:
    """A state in which yesterday's load has its say on shop/web, decided an hour from now."""
    fleet = Fleet({WEB: 0}, [NOON])
    gates = Gates.new(1)
    gates.standing[:], gates.forecaster[:] = ACTING, SEASONAL
    gates.judged_at[:], gates.due[:] = NOON.timestamp(), after(600).timestamp()
    state = State.new(1).opened(after(60).timestamp(), 3600.0, ())
    return Observed(gates=ForecastGates(fleet=fleet, gates=gates), fleet=fleet, state=state).encoded()


def put_row(directory: Path, shard: int, shards: int, observed: bytes) -> None:
    """Write a row as an account with the right to write to the database would."""
    row = {"shard": shard, "of": shards, "at": int(after(60).timestamp()), "observed": zlib.compress(observed)}
    with closing(sqlite3.connect(directory / "ledger.sqlite")) as connection, connection:
        statement = "INSERT OR REPLACE INTO shards VALUES (:shard, :of, :at, :observed, :origins)"
        connection.execute(statement, row | {"origins": zlib.compress(b"")})


def save_state(service: Service) -> None:
    for entry in service.persisted:
        entry.part.save()


def seasonal(service: Service) -> int:
    """Count the workloads in which yesterday's load has its say, by the state that the service holds."""
    if not isinstance(service.cycle, ShardedCycle):
        return int(np.sum(service.cycle.decider.observed.gates.gates.forecaster == SEASONAL))
    count = 0
    for state in service.cycle.learned.by_shard.values():
        observed = Observed()
        observed.restore(state.observed)
        count += int(np.sum(observed.gates.gates.forecaster == SEASONAL))
    return count


def test_a_forged_row_of_a_shard_is_refused_and_the_service_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    with composed(cluster, tmp_path, sharding=SHARDING) as service:
        tick(service, after(0))
        save_state(service)
    shard = shard_of(WEB.namespace, 2)
    put_row(tmp_path, shard, 2, forged())
    with composed(cluster, tmp_path, sharding=SHARDING) as service:
        tick(service, after(1))
        assert service.report
        (refused,) = [line for line in service.report.failures if "not signed by a key of this release" in line]
        assert f"shard {shard} of 2" in refused
        assert service.report.verdicts.total() == 2
        assert seasonal(service) == 0
        assert METRIC % "shards" in service.metrics.text()
        save_state(service)
    with composed(cluster, tmp_path, sharding=SHARDING) as service:
        tick(service, after(2))
        assert service.report
        assert service.report.failures == ()


def test_a_service_that_is_not_divided_asks_for_no_state_of_shards(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with composed(cluster, tmp_path) as service:
        tick(service, after(0))
        save_state(service)
        before = service.cycle.decider.observed.fleet.row.copy()  # type: ignore[union-attr]
    put_row(tmp_path, 0, 1, forged())
    with composed(cluster, tmp_path) as service:
        assert seasonal(service) == 0
        assert service.cycle.decider.observed.fleet.row == before  # type: ignore[union-attr]
    assert "state_refused" not in capsys.readouterr().out


def test_a_key_is_replaced_without_losing_what_was_learned(cluster: Cluster, tmp_path: Path) -> None:
    key, old, new = tmp_path / "key", "o" * 64, "n" * 64

    def failures(text: str, minute: int) -> list[str]:
        key.write_text(text)
        state = {"directory": str(tmp_path / "state"), "key_file": str(key)}
        with composed(cluster, tmp_path / "state", sharding=SHARDING, state=state) as service:
            tick(service, after(minute))
            save_state(service)
            assert service.report
            return [line for line in service.report.failures if "not signed" in line]

    assert failures(old, 0) == []
    assert failures(f"{new}\n{old}", 1) == []
    assert failures(new, 2) == []
    assert len(failures(old, 3)) == 1


def test_a_file_of_another_release_is_refused(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    state = {"directory": str(tmp_path / "state"), "key_file": str(key)}
    key.write_text("o" * 64)
    with composed(cluster, tmp_path / "state", state=state) as service:
        tick(service, after(0))
        save_state(service)
    key.write_text("n" * 64)
    with composed(cluster, tmp_path / "state", state=state) as service:
        assert service.cycle.decider.observed.state.rows == 0  # type: ignore[union-attr]
        assert METRIC % "observed.json" in service.metrics.text()
    log = capsys.readouterr().out
    assert "state of observed.json was not signed by a key of this release" in log, log
