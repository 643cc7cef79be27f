"""Scaling decisions by start-up time: ours and the peers' on the same load, at the pod-hours of the plain HPA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench.frontier import compared, frontier_table
from benchmarks.bench.loads import sample
from benchmarks.bench.ours import our_accounts
from benchmarks.bench.peers import PEERS
from benchmarks.bench.replay import TARGETS, TICK, account, hpa_counts, replays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bench.frontier import Comparison
    from benchmarks.bench.replay import Account, Replay
    from benchmarks.bench.tables import Table

START_UPS = (2, 8)
"""Minutes until a new pod is ready."""
FORECASTER_STRATEGIES = "forecaster"
WEEKS_OF_MINUTES = "forecaster, if it kept weeks of minutes"


def decisions(start_up: int, series: int | None = None) -> dict[str, dict[str, Comparison]]:
    """For each policy and series the comparison with the plain HPA."""
    played = sample(replays(), series)
    hpa, forecaster = hpa_accounts(played, start_up), our_accounts(played, start_up)
    fine = [replay for replay in played if replay.recorded_step == TICK]
    by_minutes = forecaster | our_accounts(fine, start_up, as_kept=False)
    results = {
        title: {name: compared(own, hpa[name]) for name, own in accounts.items()}
        for title, accounts in ((FORECASTER_STRATEGIES, forecaster), (WEEKS_OF_MINUTES, by_minutes))
    }
    for peer, expected in PEERS.items():
        results[peer] = {
            replay.name: compared(
                account(replay, hpa_counts(replay, expected(replay, start_up), TARGETS, start_up)), hpa[replay.name]
            )
            for replay in played
        }
    return results


def hpa_accounts(played: Sequence[Replay], start_up: int) -> dict[str, Account]:
    """Account of the plain HPA on each series."""
    return {
        replay.name: account(replay, hpa_counts(replay, PEERS["HPA alone"](replay, start_up), TARGETS, start_up))
        for replay in played
    }


def decision_tables(start_up: int, series: int | None = None) -> list[Table]:
    """One table for the series recorded by the minute, one for all."""
    results = decisions(start_up, series)
    fine = {replay.name for replay in replays() if replay.recorded_step == TICK}
    groups = {"recorded by the minute": fine, "all series": set(results[FORECASTER_STRATEGIES])}
    return [
        _table(f"Decisions, pods ready in {start_up} minutes, {title}", results, names)
        for title, names in groups.items()
    ]


def _table(title: str, results: dict[str, dict[str, Comparison]], names: set[str]) -> Table:
    chosen = {
        policy: [comparison for name, comparison in own.items() if name in names] for policy, own in results.items()
    }
    return frontier_table(title, {policy: comparisons for policy, comparisons in chosen.items() if comparisons})
