from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from forecaster.cycle.steps import LEAST, expect_records

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("workloads", "records"), [(0, LEAST), (100, LEAST), (10_000, 500_000)])
def test_the_collector_looks_the_seldomer_the_more_a_cycle_replaces(workloads: int, records: int) -> None:
    expect_records(workloads)
    assert gc.get_threshold()[0] == records
