"""The outcome in sentences, whichever way it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from forecaster.app.demo_comparison import in_all
from forecaster.domain.window import HOUR
from forecaster.replay.assumptions import START_UP
from forecaster.replay.benefit import NOTABLE_DIFFERENCE
from forecaster.report.printed import percent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from rich.console import Console

    from forecaster.app.demo_comparison import FloorComparison
    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.account import Account


def verdict(compared: Mapping[WorkloadId, FloorComparison]) -> list[str]:
    """What acting on the recommendations would have cost and brought, and whether that was worth a forecast."""
    everything = in_all(list(compared.values()))
    worse = [str(id_) for id_, one in compared.items() if one.worse]
    sentences = [_against_plain(everything), _against_equal(everything)]
    if worse:
        sentences.append(f"The plain HPA alone does better on {', '.join(worse)}.")
    return sentences


def _against_plain(one: FloorComparison) -> str:
    plain, floored = one.plain, one.floored
    return (
        f"With the recommended count as the HPA's floor: {_change(plain.pod_hours, floored.pod_hours)} pod-hours; "
        f"{minutes(floored)} instead of {minutes(plain)} workload-minutes short, "
        f"{percent(floored.missing_share)} instead of {percent(plain.missing_share)} of the demand above capacity."
    )


def _against_equal(one: FloorComparison) -> str:
    if one.equal is None:
        return "Some HPA spends its pod-hours at none of the targets tried, so there is no figure at equal cost."
    return (
        "The plain HPA with targets lowered until it spends the same pod-hours: "
        f"{minutes(one.equal)} workload-minutes, {percent(one.equal.missing_share)}. "
        f"{_worth(one.floored.missing, one.equal.missing)}"
    )


def _worth(ours: float, equal: float) -> str:
    if abs(ours - equal) <= NOTABLE_DIFFERENCE * equal:
        return "So on this load the forecast brought no more than those pods bring without it."
    if ours > equal:
        return "So on this load the forecast was the worse way to spend them."
    return f"So for the same cost the forecast removed {1 - ours / equal:.0%} of what was short."


def _change(before: float, after: float) -> str:
    return f"{(after - before) / before:+.1%}" if before else f"{after:.0f} instead of no"


def minutes(account: Account) -> str:
    """Minutes with any shortage."""
    return f"{account.short.total_seconds() / 60:.0f}"


# The outcome on a terminal: what was compared, the table, the sentences, and what to do next.


SUMMARY_HEADS = (
    "PLAIN HPA\npod-h  min        %",
    "RECOMMENDED FLOOR\npod-h  min        %",
    "PLAIN, EQUAL\nmin        %",
)

ORIGIN = "The load is real (Crane, NASA-HTTP, Numenta NAB, Bitbrains), the cluster around it is made up: docs/demo.md."


def print_summary(
    console: Console,
    compared: Mapping[WorkloadId, FloorComparison],
    left_out: Mapping[WorkloadId, str],
    length: timedelta,
) -> None:
    """Print the comparison after the play."""
    console.print()
    console.print(f"Outcome of {length / HOUR:g} h, against the plain HPA on the same demand", style="bold")
    console.print(outcome_table(compared))
    console.print()
    for line in (*verdict(compared), *footnotes(left_out)):
        console.print(line, highlight=False)
    console.print(
        "\nOn your own cluster: forecaster once --prometheus http://ADDRESS:9090", style="bold", highlight=False
    )


def outcome_table(compared: Mapping[WorkloadId, FloorComparison]) -> Table:
    """One row per workload and one for all."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("WORKLOAD\n", no_wrap=True)
    for name in SUMMARY_HEADS:
        table.add_column(name, no_wrap=True, justify="right")
    for id_, one in compared.items():
        table.add_row(str(id_), *_cells(one))
    table.add_row("all", *_cells(in_all(list(compared.values()))), style="bold")
    return table


def footnotes(left_out: Mapping[WorkloadId, str]) -> list[str]:
    """What the numbers mean and what they leave out."""
    start_up = f"{START_UP.total_seconds() / 60:.0f} min"
    meaning = (
        "min: time with demand above what the ready pods carry; %: demand above it. A pod carries its CPU request, "
        f"serves {start_up} after it is asked for and is paid for from then on. PLAIN, EQUAL: the plain HPA with its "
        "targets lowered until it spends the same pod-hours."
    )
    return [meaning, *(f"Left out: {id_}, {reason}." for id_, reason in left_out.items()), ORIGIN]


def _cells(one: FloorComparison) -> tuple[str, str, str]:
    return _spent_and_short(one.plain), _spent_and_short(one.floored), _short(one.equal)


def _spent_and_short(account: Account) -> str:
    return f"{account.pod_hours:.1f} {_short(account)}"


def _short(account: Account | None) -> str:
    return "–" if account is None else f"{minutes(account):>4} {percent(account.missing_share):>8}"
