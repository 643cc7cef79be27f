"""A look back as rows and sentences: the same on a terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.amounts import UNKNOWN_AMOUNT
from forecaster.replay.benefit import BENEFIT_MEANS
from forecaster.replay.strategies import HPA, NAIVE
from forecaster.replay.weekly import SERVICE_STRATEGY, total_figures
from forecaster.report.printed import Printable, PrintedColumn, flat, percent, print_as, print_table, print_text
from forecaster.report.realised import said
from forecaster.report.replay_table import REPLAY_LIMITS, lead_sentence, left_out_lines, sentences
from forecaster.report.week_view import ordered, week_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.account import Account
    from forecaster.replay.comparison import WorkloadComparison
    from forecaster.replay.weekly import WeekOutcome
    from forecaster.report.formats import Output

HEADS = (
    "workload",
    *("HPA pod-h", "naive pod-h", "our pod-h"),
    *("HPA short", "naive short", "our short"),
    *("HPA money", "naive money", "our money"),
    "",
)
SIZE_HEADS = (
    "workload",
    *("OOM kills", "with ours"),
    *("throttled core-h", "throttled with ours"),
    *("idle core-h", "idle core-h with ours"),
    *("idle GiB-h", "idle GiB-h with ours"),
)
LOSS_HEADS = ("workload", "OOM kills", "throttled container-h")
ADOPTED_HEADS = ("workload", "acts from", "HPA expected", "ours expected", "HPA realised", "ours realised")
NAMES = (HPA.name, NAIVE, SERVICE_STRATEGY)
ALL = "all"


def heads_of(one: WeekOutcome) -> tuple[str, ...]:
    """Return the column heads; money in the currency that the settings name."""
    currency = one.prices.currency if one.prices else ""
    return tuple(head.replace("money", currency) for head in HEADS) if currency else HEADS


def rows_of(one: WeekOutcome) -> list[tuple[str, ...]]:
    """One row for each workload, those on which we were worse first, and one for all."""
    rows = [_row(str(each.workload.id), one, each, each.benefit(SERVICE_STRATEGY)) for each in ordered(one)]
    return [*rows, _row(ALL, one, None, "")]


def _row(name: str, one: WeekOutcome, each: WorkloadComparison | None, benefit: str) -> tuple[str, ...]:
    accounts = [one.comparison.own(which) if each is None else each.curves[which].own for which in NAMES]
    return (
        name,
        *(f"{account.pod_hours:.1f}" for account in accounts),
        *map(_short, accounts),
        *(_money(one.money(which, each)) for which in NAMES),
        benefit,
    )


def size_rows(one: WeekOutcome) -> list[tuple[str, ...]]:
    """Requests and limits of each workload as stated and ours, and of all."""
    rows = [(str(each.workload), each.stated, each.ours) for each in one.sizes]
    stated, ours = (total_figures(some) for some in zip(*((a, b) for _, a, b in rows), strict=True))
    return [
        (name, *(cell for a, b in zip(before, after, strict=True) for cell in (_amount(a), _amount(b))))
        for name, before, after in [*rows, (ALL, stated, ours)]
    ]


def loss_rows(one: WeekOutcome) -> list[tuple[str, ...]]:
    """OOM kills and throttling as they happened, of each workload that had any, and of all."""
    losses = one.losses or {}
    rows = [(str(id_), _known(of.oom_kills), _known(of.throttled_hours)) for id_, of in losses.items() if any(of)]
    kills = [of.oom_kills for of in losses.values() if of.oom_kills is not None]
    hours = [of.throttled_hours for of in losses.values() if of.throttled_hours is not None]
    return [*sorted(rows), (ALL, _known(sum(kills) if kills else None), _known(sum(hours) if hours else None))]


def _known(value: float | None) -> str:
    return UNKNOWN_AMOUNT if value is None else _amount(value)


def adopted_rows(one: WeekOutcome) -> list[tuple[str, ...]]:
    """What was expected of each forecast when its gate let it act, and what came, for the HPA's pod-hours."""
    return [
        (
            str(each.workload),
            f"{each.at:%Y-%m-%d %H:%M}",
            percent(each.expected_reactive),
            percent(each.expected),
            percent(each.reactive),
            percent(each.realised),
        )
        for each in one.adoptions
    ]


def told(one: WeekOutcome) -> list[str]:
    """What came of it, where we were worse first."""
    lines = [*filter(None, [lead_sentence(one.comparison)]), *sentences(one.comparison)]
    return [*lines, *(said(one.decided) if one.decided else ())]


def print_week(one: WeekOutcome, output: Output) -> None:
    """Print it; a row of CSV is a workload."""
    result = Printable(
        table=lambda wide: _print(one, wide=wide),
        document=lambda: week_view(one),
        rows=lambda: [flat(msgspec.to_builtins(each)) for each in week_view(one).workloads],
        ids=lambda: (each.workload.id for each in ordered(one)),
    )
    print_as(output, result)


def _print(one: WeekOutcome, *, wide: bool) -> None:
    print_text(*told(one))
    if one.comparison.workloads:
        print_table(_columns(heads_of(one), rows_of(one), WEEK_RANKS if one.prices else WITHOUT_MONEY), wide=wide)
        print_text(BENEFIT_MEANS)
    if one.sizes:
        print_text("", "Requests and limits of one pod, as their owners state them and ours:")
        print_table(_columns(SIZE_HEADS, size_rows(one), SIZE_RANKS), wide=wide)
    if one.losses:
        print_text("", "OOM kills and time held back by CPU limits, as they happened:")
        print_table(_columns(LOSS_HEADS, loss_rows(one), (0, 0, 0)), wide=wide)
    if one.adoptions:
        print_text("", "Short for the HPA's pod-hours, as expected when the gate let a forecast act, and as it came:")
        print_table(_columns(ADOPTED_HEADS, adopted_rows(one), ADOPTED_RANKS), wide=wide)
    print_text(*left_out_lines(one.comparison.left_out))
    print_text(f"Beware: {REPLAY_LIMITS[0]} (--html and -o json say more.)", style="dim")


WEEK_RANKS = (0, 4, 6, 4, 0, 2, 0, 3, 5, 3, 0)
WITHOUT_MONEY = (0, 4, 6, 4, 0, 2, 0, -1, -1, -1, 0)
SIZE_RANKS = (0, 0, 0, 1, 1, 2, 2, 3, 3)
ADOPTED_RANKS = (0, 2, 1, 0, 1, 0)


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]], ranks: Sequence[int]) -> list[PrintedColumn]:
    """Columns of which a negative rank leaves out."""
    cells = zip(*rows, strict=True)
    return [
        PrintedColumn(head.upper(), each, rank=rank, right=bool(i) and bool(head))
        for i, (head, each, rank) in enumerate(zip(heads, cells, ranks, strict=True))
        if rank >= 0
    ]


def _short(account: Account) -> str:
    return percent(account.missing_share)


def _money(amount: float | None) -> str:
    return UNKNOWN_AMOUNT if amount is None else f"{amount:.2f}"


def _amount(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"
