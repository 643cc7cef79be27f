"""The realised outcome on standard output, for people or for machines."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it encodes
from typing import TYPE_CHECKING

import msgspec
from rich.table import Table

from forecaster.domain.amounts import UNKNOWN
from forecaster.report.printed import output_console, print_json
from forecaster.report.replay_table import LIMITS
from forecaster.report.replay_view import AccountView, LeftOutView, account_view

if TYPE_CHECKING:
    from forecaster.replay.account import Account
    from forecaster.replay.realised import RealisedOutcome, RealisedWorkload


class RealisedView(msgspec.Struct, frozen=True):
    """One workload; `worse` when the HPA alone does better for the same pod-hours."""

    namespace: str
    kind: str
    name: str
    hpa_alone: AccountView
    decided: AccountView
    hpa_at_equal_pod_hours: AccountView | None
    measured: AccountView | None
    worse: bool


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
        limits=LIMITS,
    )


def print_realised(outcome: RealisedOutcome, *, as_json: bool) -> None:
    """Print it."""
    if as_json:
        print_json(outcome_view(outcome))
        return
    console = output_console()
    for sentence in said(outcome):
        console.print(sentence, highlight=False)
    if outcome.workloads:
        console.print(_table(outcome))
    for id_, reason in outcome.left_out.items():
        console.print(f"Left out: {id_}, {reason}.", highlight=False)
    console.print(f"Beware: {LIMITS[0]}", style="dim", highlight=False)


def said(outcome: RealisedOutcome) -> list[str]:
    """What came of it in sentences."""
    span = f"{outcome.begin:%Y-%m-%d %H:%M} to {outcome.until:%Y-%m-%d %H:%M} UTC"
    if not outcome.workloads:
        return [f"{span}: nothing to compare."]
    plain, decided = outcome.plain, outcome.decided
    more = decided.pod_hours / plain.pod_hours - 1.0 if plain.pod_hours else 0.0
    worse = ", ".join(str(one.workload.id) for one in outcome.worse)
    return [
        (
            f"{span}, {len(outcome.workloads)} workload(s). With the decisions as floors of the HPAs: {more:+.1%} pod-"
            f"hours, {_percent(decided)} of the demand short instead of {_percent(plain)}."
        ),
        f"For the same pod-hours the HPA alone does better on {worse}."
        if worse
        else "On no workload does the HPA alone do notably better for the same pod-hours.",
    ]


def _table(outcome: RealisedOutcome) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = (
        "WORKLOAD",
        "HPA ALONE pod-h  short",
        "DECIDED pod-h  short",
        "EQUAL COST short",
        "MEASURED pod-h  short",
        "",
    )
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", no_wrap=True)
    for one in outcome.workloads:
        cells = (_cell(one.plain), _cell(one.decided), _percent(one.equal), _cell(one.measured))
        table.add_row(str(one.workload.id), *cells, "worse" if one.worse else "")
    return table


def _view(one: RealisedWorkload) -> RealisedView:
    return RealisedView(
        *one.workload.id,
        hpa_alone=account_view(one.plain),
        decided=account_view(one.decided),
        hpa_at_equal_pod_hours=None if one.equal is None else account_view(one.equal),
        measured=None if one.measured is None else account_view(one.measured),
        worse=one.worse,
    )


def _cell(account: Account | None) -> str:
    return UNKNOWN if account is None else f"{account.pod_hours:.1f} {_percent(account):>8}"


def _percent(account: Account | None) -> str:
    return UNKNOWN if account is None or account.missing_share is None else f"{account.missing_share:.3%}"
