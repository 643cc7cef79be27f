"""The table of what owners of namespaces can write names the bounds that the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecaster.actuators import limits, queue, rollback
from forecaster.actuators.resize import initial
from forecaster.domain import event, policies
from forecaster.resources import schema
from forecaster.serving import connection, new_pods
from forecaster.sources import stated

SECURITY = Path(__file__).parents[2] / "docs" / "security.md"
TABLE = SECURITY.read_text(encoding="utf-8").partition("### What an owner can write")[2].partition("\n### ")[0]
ROWS = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]
BOUNDS = {
    "annotations": (f"{stated.NAMES_MAX} names", f"{stated.VALUE_MAX} characters"),
    "our marks": (f"{rollback.WATCH_MAX:,} characters", f"{event.YEARS[0]}–{event.YEARS[-1]}"),
    "a PredictiveAutoscaler": (
        f"lists of {schema.MAX_ITEMS}",
        f"texts of {schema.MAX_CHARACTERS} characters",
        f"counts up to {event.MAX_REPLICAS:,}",
    ),
    "events": (
        f"{event.MAX_EVENTS} for a workload",
        f"{event.NAMESPACE_EVENTS:,} for a namespace",
        f"{event.YEARS[0]}–{event.YEARS[-1]}",
    ),
    "the same again": (f"{policies.CHANGES_AT_ONCE} times in a row", f"once in {policies.CHANGES_EACH} cycles"),
    "a workload": (f"{limits.MAX_PODS_PER_WORKLOAD:,} pods",),
    "a webhook": (f"{queue.MAX_FAILED_AGAIN} that failed", f"{queue.MAX_TROUBLE} writes without an answer"),
    "new pods": (
        f"{connection.POD_MAX // 1024} KiB",
        f"{initial.MAX_CONTAINERS} containers",
        f"{new_pods.MAX_WAITING} waiting",
        f"{new_pods.NAMESPACE_SHARE * new_pods.CREDIT_SECONDS:g} s of it at once",
    ),
}


@pytest.mark.parametrize(("begin", "bounds"), BOUNDS.items(), ids=BOUNDS)
def test_a_row_of_the_table_has_the_bounds_of_the_code(begin: str, bounds: tuple[str, ...]) -> None:
    (row,) = [row for row in ROWS if row.startswith(f"| {begin}")]
    assert [bound for bound in bounds if bound not in row] == []
