"""Rows of workloads that come and go."""

from __future__ import annotations

from datetime import timedelta

from forecaster.cycle.rows import ROW_LIFETIME, Fleet
from tests.support.builders import NOON, workload_id

LATER = NOON + ROW_LIFETIME + timedelta(minutes=1)


def test_workloads_that_come_when_rows_are_given_back_are_new_in_every_column() -> None:
    fleet = Fleet()
    old, stays, new = workload_id("old"), workload_id("stays"), workload_id("new")
    fleet.rows([old, stays], NOON)
    fleet.rows([stays, new], LATER)
    stay = fleet.compacted(LATER, known=2)
    assert stay is not None
    assert stay.tolist() == [1, -1]
    assert fleet.rows([stays, new], LATER).tolist() == [0, 1]
