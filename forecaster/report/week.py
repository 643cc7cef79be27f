"""A look back on a week: figures of sizes, losses and adoptions beside the comparison of strategies.

The document for machines has hours, ratios 0-1, money in the currency of the prices, and null without a figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import NamedTuple

import msgspec

from forecaster.domain.amounts import UNKNOWN_AMOUNT
from forecaster.domain.window import HOUR
from forecaster.replay.comparison import BENEFIT_MEANS
from forecaster.replay.realised import SpareCost
from forecaster.replay.strategies import HPA, NAIVE
from forecaster.replay.weekly import SERVICE_STRATEGY, SizeFigures, WeekOutcome, total_figures
from forecaster.report.comparison import (
    ALL,
    EACH,
    POD_HOURS,
    REPLAY_LIMITS,
    left_out_lines,
    number_heads,
    sentences,
    workload_columns,
)
from forecaster.report.comparison_view import AccountView, ComparisonView, LeftOutView, account_view, comparison_view
from forecaster.report.formats import Output
from forecaster.report.page import items, page, paragraph, section
from forecaster.report.printed import (
    Printable,
    PrintedColumn,
    columns_from,
    flat,
    percent,
    print_as,
    print_table,
    print_text,
)

NAMES = (HPA.name, NAIVE, SERVICE_STRATEGY)
DECIDED_NOTE = "The decisions of the ledger as they were made, as floors of the HPAs, on the load that came."


class WeekSection(NamedTuple):
    """A table of the week: its heading and text on the page, and its introduction on a terminal."""

    title: str
    note: str
    spoken: str
    columns: list[PrintedColumn]
    total: bool = True
    """Whether the last row is a sum."""


def week_sections(week: WeekOutcome) -> Iterator[WeekSection]:
    """Yield the sections beside the comparison that have data: sizes, losses, adoptions."""
    if week.sizes:
        yield WeekSection("Requests and limits", SIZED, SIZES_SPOKEN, _size_columns(week))
    if week.losses:
        yield WeekSection("OOM kills and throttling as they happened", LOST, LOSSES_SPOKEN, _loss_columns(week))
    if week.spare:
        yield WeekSection("Spare pods", SPARED, SPARE_SPOKEN, _spare_columns(week))
    if week.adoptions:
        yield WeekSection("Expected and realised", ADOPTED, ADOPTIONS_SPOKEN, _adoption_columns(week), total=False)


SIZED = (
    "Of one pod, over the same time: with the requests and limits that the owners state, and with ours. A kill is five "
    "minutes in which more memory was wanted than the limit. What limits cut off then is in no history."
)
SIZES_SPOKEN = "Requests and limits of one pod, as their owners state them and ours:"
SIZE_HEADS = (
    "workload",
    *("OOM kills", "with ours"),
    *("throttled core-h", "throttled with ours"),
    *("idle core-h", "idle core-h with ours"),
    *("idle GiB-h", "idle GiB-h with ours"),
)


def _size_columns(week: WeekOutcome) -> list[PrintedColumn]:
    """Requests and limits of each workload as stated and ours, and of all."""
    rows = [(str(each.workload), each.stated, each.ours) for each in week.sizes]
    rows.append(
        (ALL, total_figures(each.stated for each in week.sizes), total_figures(each.ours for each in week.sizes))
    )
    cells = [
        (name, *(_amount(figure) for pair in zip(astuple(before), astuple(after), strict=True) for figure in pair))
        for name, before, after in rows
    ]
    return columns_from(SIZE_HEADS, cells, (0, 0, 0, 1, 1, 2, 2, 3, 3))


LOST = (
    "From Prometheus, with the limits that were in force: kills by the restarts that followed them, and the time "
    "for which CPU limits held containers back. Workloads without either are left out."
)
LOSSES_SPOKEN = "OOM kills and time held back by CPU limits, as they happened:"


def _loss_columns(week: WeekOutcome) -> list[PrintedColumn]:
    """OOM kills and throttling as they happened, of each workload that had any, and of all."""
    losses = week.losses or {}
    rows = [(str(id_), *map(_amount, loss)) for id_, loss in losses.items() if any(loss)]
    kills = [loss.oom_kills for loss in losses.values() if loss.oom_kills is not None]
    hours = [loss.throttled_hours for loss in losses.values() if loss.throttled_hours is not None]
    total = (ALL, _amount(sum(kills) if kills else None), _amount(sum(hours) if hours else None))
    return columns_from(("workload", "OOM kills", "throttled container-h"), [*sorted(rows), total], (0, 0, 0))


SPARED = (
    "What was decided beyond the need, so that enough pods stay when a node or zone is lost (survive), by the "
    "requests of the pods. Decisions that an older forecaster recorded do not say how many pods are spare."
)
SPARE_SPOKEN = "Pods to spare for the loss of a node or a zone, as they were decided:"
NOT_RECORDED = "not recorded"


def _spare_columns(week: WeekOutcome) -> list[PrintedColumn]:
    """Spare pod-hours of each workload and of all, with the hours for which the ledger has them."""
    rows = [_spare_row(str(each.workload), [each]) for each in week.spare]
    heads = ("workload", f"spare {POD_HOURS}", number_heads(week.comparison.prices)[-1], "hours recorded")
    return columns_from(heads, [*rows, _spare_row(ALL, week.spare)], (0, 0, 0, 1))


def _spare_row(name: str, costs: Sequence[SpareCost]) -> tuple[str, ...]:
    """Return the cells of some workloads; the hours are those of the workload with the fewest."""
    pod_hours = [each.pod_hours for each in costs if each.pod_hours is not None]
    if not pod_hours:
        return (name, NOT_RECORDED, NOT_RECORDED, "0")
    hours = min(each.recorded for each in costs) / HOUR
    return (name, f"{sum(pod_hours):.1f}", f"{sum(each.money or 0.0 for each in costs):.2f}", f"{hours:.0f}")


ADOPTED = (
    "Demand short for the pod-hours that the HPA alone spends: as the gate expected when it let a forecast act, judged "
    "on the days before by the signal of the HPA's target, and as it came over the whole time, by what fills a pod."
)
ADOPTIONS_SPOKEN = "Unserved demand for the HPA's pod-hours, expected when the gate let a forecast act, and as it came:"
ADOPTED_HEADS = ("workload", "acts from", "HPA expected", "ours expected", "HPA realised", "ours realised")


def _adoption_columns(week: WeekOutcome) -> list[PrintedColumn]:
    """Return columns: expected result when the gate let a forecast act, and actual one, at the HPA's pod-hours."""
    rows = [
        (
            str(each.workload),
            f"{each.at:%Y-%m-%d %H:%M}",
            *map(percent, (each.expected_reactive, each.expected, each.reactive, each.realised)),
        )
        for each in week.adoptions
    ]
    return columns_from(ADOPTED_HEADS, rows, (0, 2, 1, 0, 1, 0), texts=2)


def _amount(value: float | None) -> str:
    if value is None:
        return UNKNOWN_AMOUNT
    return str(value) if isinstance(value, int) else f"{value:.1f}"


# On a terminal, and as a page.


def print_week(week: WeekOutcome, output: Output) -> None:
    """Print it; a row of CSV is a workload."""
    result = Printable(
        table=lambda wide: _print(week, wide=wide),
        document=lambda: week_view(week),
        rows=lambda: [flat(msgspec.to_builtins(each)) for each in week_view(week).workloads],
        ids=lambda: (each.workload.id for each in week.comparison.ordered()),
    )
    print_as(output, result)


def _print(week: WeekOutcome, *, wide: bool) -> None:
    print_text(*sentences(week.comparison))
    if week.decided:
        print_text("", DECIDED_NOTE, *sentences(week.decided))
        print_table(workload_columns(week.decided), wide=wide)
    if week.comparison.workloads:
        print_text("", EACH)
        print_table(workload_columns(week.comparison), wide=wide)
        print_text(BENEFIT_MEANS, style="dim")
    for each in week_sections(week):
        print_text("", each.spoken)
        print_table(each.columns, wide=wide)
    print_text(*left_out_lines(week.comparison.left_out))
    print_text(f"Beware: {REPLAY_LIMITS[0]} (--html and -o json say more.)", style="dim")


def week_page(week: WeekOutcome) -> str:
    """The whole page."""
    further = [part for each in week_sections(week) for part in section(*each[:2], each.columns, total=each.total)]
    if week.decided:
        decided = [paragraph(DECIDED_NOTE, "soft"), items(sentences(week.decided))]
        further = ["<h2>As it was decided</h2>", *decided, *further]
    return page(week.comparison, title="What forecaster was worth", further=further)


# For machines.


STRATEGIES = {"hpa": HPA.name, "seasonal_naive": NAIVE, "ours": SERVICE_STRATEGY}
"""Strategies by name in the document."""


class BothSizes(msgspec.Struct, frozen=True):
    """Sizes as the owner states them, and ours."""

    stated: SizeFigures
    ours: SizeFigures


class LossesView(msgspec.Struct, frozen=True, gc=False):
    """OOM kills and container-hours held back by CPU limits, as they happened; null is not known."""

    oom_kills: int | None
    throttled_container_hours: float | None


class SpareView(msgspec.Struct, frozen=True, gc=False):
    """Spare pods of one workload as decided; `pod_hours` is null where no decision says how many are spare."""

    namespace: str
    kind: str
    name: str
    pod_hours: float | None
    recorded_hours: float
    money: float | None


class AdoptionView(msgspec.Struct, frozen=True, gc=False):
    """Shares of the demand short for the HPA's pod-hours, as expected when it began to act, and as it came."""

    at: datetime
    expected_reactive_missing_share: float
    expected_missing_share: float
    reactive_missing_share: float
    realised_missing_share: float | None


class WeekWorkload(msgspec.Struct, frozen=True):
    """One workload; `benefit` is better, same or worse than the HPA alone for the same pod-hours."""

    namespace: str
    kind: str
    name: str
    benefit: str
    strategies: dict[str, AccountView]
    missing_at_equal_cost: float | None
    sizes: BothSizes | None
    losses: LossesView | None
    adoption: AdoptionView | None


class WeekView(msgspec.Struct, frozen=True):
    """Document of a week, the workloads on which we were worse first."""

    begin: datetime
    until: datetime
    summary: list[str]
    worse: list[str]
    total: dict[str, AccountView]
    missing_at_equal_cost: float | None
    sizes: BothSizes | None
    workloads: list[WeekWorkload]
    decided: ComparisonView | None
    """The decisions of the ledger as they were made."""
    spare: list[SpareView]
    """Pods for the loss of a node or a zone, of workloads with `survive`, where there is a ledger."""
    left_out: list[LeftOutView]
    limits: tuple[str, ...]


def week_view(week: WeekOutcome) -> WeekView:
    """The look back in plain numbers."""
    whole = week.comparison
    stated, recommended = (total_figures(getattr(each, name) for each in week.sizes) for name in ("stated", "ours"))
    accounts = {key: account_view(whole.own(name), priced=whole.prices is not None) for key, name in STRATEGIES.items()}
    return WeekView(
        begin=whole.begin,
        until=whole.until,
        summary=sentences(whole),
        worse=[str(each.workload.id) for each in whole.worse(SERVICE_STRATEGY)],
        total=accounts if whole.workloads else {},
        missing_at_equal_cost=whole.ratio(SERVICE_STRATEGY) if whole.workloads else None,
        sizes=BothSizes(stated, recommended) if week.sizes else None,
        workloads=_workloads(week),
        decided=comparison_view(week.decided, tracks=False) if week.decided else None,
        spare=[SpareView(*each.workload, each.pod_hours, each.recorded / HOUR, each.money) for each in week.spare],
        left_out=[LeftOutView(*id_, reason) for id_, reason in whole.left_out.items()],
        limits=REPLAY_LIMITS,
    )


def _workloads(week: WeekOutcome) -> list[WeekWorkload]:
    """All workloads, those on which we were worse first."""
    sizes = {size.workload: BothSizes(size.stated, size.ours) for size in week.sizes}
    adoptions = {adoption.workload: AdoptionView(*adoption[1:]) for adoption in week.adoptions}
    losses = {id_: LossesView(*loss) for id_, loss in (week.losses or {}).items()}
    priced = week.comparison.prices is not None
    return [
        WeekWorkload(
            *each.workload.id,
            benefit=each.benefit(SERVICE_STRATEGY),
            strategies={key: account_view(each.curves[name].own, priced=priced) for key, name in STRATEGIES.items()},
            missing_at_equal_cost=each.ratio(SERVICE_STRATEGY),
            sizes=sizes.get(each.workload.id),
            losses=losses.get(each.workload.id),
            adoption=adoptions.get(each.workload.id),
        )
        for each in week.comparison.ordered()
    ]
