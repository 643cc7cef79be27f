"""Node pools for people: what is not known or finds no place is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.cycle.node_forecast import NodeForecast
from forecaster.report.nodes import print_tables
from tests.support.recommendations import NOON
from tests.unit.vertical.nodes.test_pools import BATCH, WEB, ahead, member, pool, window

if TYPE_CHECKING:
    import pytest


def printed(capsys: pytest.CaptureFixture[str], cpu: str) -> str:
    """The tables of a pool of one node of four cores, with pods of this size and a workload without a forecast."""
    members = [member(WEB, cpu), member(BATCH, replicas=1)]
    forecast = ahead(window((WEB, 1.5, 1.5)), pool=pool(), members=members)
    print_tables(NodeForecast(NOON, 0.95, (forecast,), headroom=(), pressures=()))
    return capsys.readouterr().out


def test_pods_that_no_node_takes_are_not_enough_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "1 node, no node takes 1 pod;" in printed(capsys, "5")
    assert "1 node, enough;" in printed(capsys, "1")


def test_a_workload_without_a_forecast_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"not in what is used: {BATCH}" in printed(capsys, "1")
