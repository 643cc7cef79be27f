"""The outcome as rows and sentences: the same on a terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from forecaster.domain.amounts import UNKNOWN
from forecaster.output.replay.gates import gate_sentence
from forecaster.replay.contestants import HPA

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.replay.account import Account
    from forecaster.replay.comparison import Compared, Comparison
    from forecaster.replay.contestants import Contestant

COLUMNS = ("", "pod-hours", "short, min", "demand short", "changes", "short at the HPA's cost", "saved at its shortage")


def rows_of(whole: Comparison, one: Compared | None = None) -> list[tuple[str, ...]]:
    """One row for each contestant, on one workload or on all, and what the demand needs at least."""
    rows = [_row(contestant, whole, one) for contestant in whole.contestants]
    needs = one.bound if one else whole.bound()
    return [*rows, ("needed at least", *_spent(needs), UNKNOWN, UNKNOWN)]


def table_of(whole: Comparison) -> Table:
    """All workloads together, for a terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(COLUMNS):
        table.add_column(name, justify="right" if i else "left", no_wrap=i == 0)
    for row in rows_of(whole):
        table.add_row(*row)
    return table


def sentences(whole: Comparison) -> list[str]:
    """What the figures say, whichever way it went."""
    if not whole.workloads:
        return ["Nothing could be replayed."]
    plain = whole.own(HPA.name)
    hours = (whole.until - whole.begin).total_seconds() / 3600
    begun = (
        f"{len(whole.workloads)} workload(s) over {hours:g} h. With the HPA alone {_percent(plain.missing_share)} of "
        f"the demand was above what the ready pods carried, for {plain.pod_hours:.1f} pod-hours."
    )
    told = [_told(one, whole) for one in whole.contestants if one.name != HPA.name]
    return [begun, *told, *filter(None, [gate_sentence(whole)])]


def _told(one: Contestant, whole: Comparison) -> str:
    own, plain = whole.own(one.name), whole.own(HPA.name)
    more = own.pod_hours / plain.pod_hours - 1.0 if plain.pod_hours else 0.0
    spends = f"{one.title}: {more:+.1%} pod-hours, {_percent(own.missing_share)} short"
    worse = [str(each.workload.id) for each in whole.workloads if (each.ratio(one.name) or 0.0) > 1.0]
    ratio = whole.ratio(one.name)
    equal = f"; at the HPA's own cost {ratio:.2f} of its shortage" if ratio is not None else ""
    return f"{spends}{equal}{'; worse than the HPA on ' + ', '.join(worse) if worse else ''}."


def _row(contestant: Contestant, whole: Comparison, one: Compared | None) -> tuple[str, ...]:
    name = contestant.name
    own = one.curves[name].own if one else whole.own(name)
    ratio = one.ratio(name) if one else whole.ratio(name)
    saved = one.saved(name) if one else whole.saved(name)
    return (contestant.title, *_spent(own), _or_dash(ratio, "{:.2f}".format), _or_dash(saved, "{:.1%}".format))


def _spent(account: Account) -> tuple[str, ...]:
    return (
        f"{account.pod_hours:.1f}",
        f"{account.short.total_seconds() / 60:.0f}",
        _percent(account.missing_share),
        str(account.changes),
    )


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.3%}"


def _or_dash(value: float | None, spoken: Callable[[float], str]) -> str:
    return UNKNOWN if value is None else spoken(value)
