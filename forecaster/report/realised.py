"""The realised outcome on standard output, for people or for machines."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it encodes
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.amounts import UNKNOWN_AMOUNT, counted
from forecaster.report.printed import Printable, PrintedColumn, flat, percent, print_as, print_table, print_text
from forecaster.report.replay_table import REPLAY_LIMITS, left_out_lines
from forecaster.report.replay_view import AccountView, LeftOutView, account_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.account import Account
    from forecaster.replay.realised import RealisedOutcome, RealisedWorkload
    from forecaster.report.formats import Output


class RealisedView(msgspec.Struct, frozen=True):
    """One workload; `benefit` is better, same or worse than the HPA alone for the same pod-hours."""

    namespace: str
    kind: str
    name: str
    hpa_alone: AccountView
    decided: AccountView
    hpa_at_equal_pod_hours: AccountView | None
    measured: AccountView | None
    benefit: str


class OutcomeView(msgspec.Struct, frozen=True):
    """All workloads."""

    begin: datetime
    until: datetime
    hpa_alone: AccountView
    decided: AccountView
    workloads: list[RealisedView]
    left_out: list[LeftOutView]
    limits: tuple[str, ...]


def outcome_view(outcome: RealisedOutcome) -> OutcomeView:
    """The outcome in plain numbers."""
    return OutcomeView(
        begin=outcome.begin,
        until=outcome.until,
        hpa_alone=account_view(outcome.plain),
        decided=account_view(outcome.decided),
        workloads=[_view(one) for one in outcome.workloads],
        left_out=[LeftOutView(*id_, reason) for id_, reason in outcome.left_out.items()],
        limits=REPLAY_LIMITS,
    )


def print_realised(outcome: RealisedOutcome, output: Output) -> None:
    """Print it; a row of CSV is a workload."""
    ids = [one.workload.id for one in outcome.workloads]
    print_as(
        output,
        Printable(
            table=lambda wide: _print(outcome, wide=wide),
            document=lambda: outcome_view(outcome),
            rows=lambda: [flat(msgspec.to_builtins(one)) for one in outcome_view(outcome).workloads],
            ids=lambda: ids,
        ),
    )


def _print(outcome: RealisedOutcome, *, wide: bool) -> None:
    print_text(*said(outcome))
    if outcome.workloads:
        print_table(_columns(outcome), wide=wide)
    print_text(*left_out_lines(outcome.left_out))
    print_text(f"Beware: {REPLAY_LIMITS[0]}", style="dim")


def said(outcome: RealisedOutcome) -> list[str]:
    """What came of it in sentences."""
    span = f"{outcome.begin:%Y-%m-%d %H:%M} to {outcome.until:%Y-%m-%d %H:%M} UTC"
    if not outcome.workloads:
        return [f"{span}: nothing to compare."]
    if outcome.younger:
        span += " (no decision was recorded before)"
    plain, decided = outcome.plain, outcome.decided
    more = decided.pod_hours / plain.pod_hours - 1.0 if plain.pod_hours else 0.0
    worse = ", ".join(str(one.workload.id) for one in outcome.worse)
    return [
        (
            f"{span}, {counted(len(outcome.workloads), 'workload')}. With the decisions as floors of the HPAs: "
            f"{more:+.1%} pod-hours, {_short(decided)} of the demand short instead of {_short(plain)}."
        ),
        f"The HPA alone does better on {worse or 'no workload'}.",
    ]


def _columns(outcome: RealisedOutcome) -> list[PrintedColumn]:
    """Pod-hours and short demand of the HPA alone and of what was decided; the benefit is never left out."""
    rows = outcome.workloads

    def pair(head: str, accounts: Sequence[Account | None], rank: int) -> list[PrintedColumn]:
        hours = [UNKNOWN_AMOUNT if one is None else f"{one.pod_hours:.1f}" for one in accounts]
        return [
            PrintedColumn(f"{head} POD-H", hours, rank=rank and rank + 1, right=True),
            PrintedColumn(f"{head} SHORT", [_short(one) for one in accounts], rank=rank, right=True),
        ]

    return [
        PrintedColumn("WORKLOAD", [str(one.workload.id) for one in rows]),
        *pair("HPA", [one.plain for one in rows], 0),
        *pair("DECIDED", [one.decided for one in rows], 0),
        PrintedColumn("EQUAL COST SHORT", [_short(one.equal) for one in rows], rank=1, right=True),
        *pair("MEASURED", [one.measured for one in rows], 2),
        PrintedColumn("", [one.benefit for one in rows]),
    ]


def _view(one: RealisedWorkload) -> RealisedView:
    return RealisedView(
        *one.workload.id,
        hpa_alone=account_view(one.plain),
        decided=account_view(one.decided),
        hpa_at_equal_pod_hours=None if one.equal is None else account_view(one.equal),
        measured=None if one.measured is None else account_view(one.measured),
        benefit=one.benefit,
    )


def _short(account: Account | None) -> str:
    return percent(None if account is None else account.missing_share)
