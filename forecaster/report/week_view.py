"""A look back for machines: hours, ratios 0-1, money in the currency of the prices; null where there is no figure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it encodes
from typing import TYPE_CHECKING

import msgspec

from forecaster.replay.strategies import HPA, NAIVE
from forecaster.replay.weekly import SERVICE_STRATEGY, SizeFigures, total_figures
from forecaster.report.realised import OutcomeView, outcome_view
from forecaster.report.replay_table import REPLAY_LIMITS, lead_sentence, sentences, worse_of
from forecaster.report.replay_view import AccountView, LeftOutView, account_view

if TYPE_CHECKING:
    from forecaster.replay.account import Account
    from forecaster.replay.comparison import WorkloadComparison
    from forecaster.replay.weekly import WeekOutcome

STRATEGIES = {"hpa": HPA.name, "seasonal_naive": NAIVE, "ours": SERVICE_STRATEGY}
"""Strategies by name in the document."""


class SizesView(msgspec.Struct, frozen=True, gc=False):
    """What came of the requests and limits of one pod."""

    oom_kills: int
    throttled_core_hours: float
    idle_core_hours: float
    idle_gib_hours: float


class BothSizes(msgspec.Struct, frozen=True):
    """Sizes as the owner states them, and ours."""

    stated: SizesView
    ours: SizesView


class LossesView(msgspec.Struct, frozen=True, gc=False):
    """OOM kills and container-hours held back by CPU limits, as they happened; null is not known."""

    oom_kills: int | None
    throttled_container_hours: float | None


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
    """All of it, the workloads on which we were worse first."""

    begin: datetime
    until: datetime
    summary: list[str]
    worse: list[str]
    total: dict[str, AccountView]
    missing_at_equal_cost: float | None
    sizes: BothSizes | None
    workloads: list[WeekWorkload]
    decided: OutcomeView | None
    """The decisions of the ledger as they were made."""
    left_out: list[LeftOutView]
    limits: tuple[str, ...]


def week_view(one: WeekOutcome) -> WeekView:
    """The look back in plain numbers."""
    whole = one.comparison
    return WeekView(
        begin=whole.begin,
        until=whole.until,
        summary=[*filter(None, [lead_sentence(whole)]), *sentences(whole)],
        worse=[str(each.workload.id) for each in worse_of(whole, SERVICE_STRATEGY)],
        total={said: _account(whole.own(name), one.money(name)) for said, name in STRATEGIES.items()}
        if whole.workloads
        else {},
        missing_at_equal_cost=whole.ratio(SERVICE_STRATEGY) if whole.workloads else None,
        sizes=_both(total_figures(each.stated for each in one.sizes), total_figures(each.ours for each in one.sizes))
        if one.sizes
        else None,
        workloads=[_workload(one, each) for each in ordered(one)],
        decided=outcome_view(one.decided) if one.decided else None,
        left_out=[LeftOutView(*id_, reason) for id_, reason in whole.left_out.items()],
        limits=REPLAY_LIMITS,
    )


def ordered(one: WeekOutcome) -> list[WorkloadComparison]:
    """Sort workloads: those on which we were worse first, then by the shortage of the HPA alone."""
    worse = worse_of(one.comparison, SERVICE_STRATEGY)
    others = [each for each in one.comparison.workloads if each not in worse]
    return [*worse, *sorted(others, key=lambda each: -each.curves[HPA.name].own.missing)]


def _account(account: Account, money: float | None) -> AccountView:
    return msgspec.structs.replace(account_view(account), money=money)


def _workload(one: WeekOutcome, each: WorkloadComparison) -> WeekWorkload:
    sized = next((some for some in one.sizes if some.workload == each.workload.id), None)
    adopted = next((some for some in one.adoptions if some.workload == each.workload.id), None)
    return WeekWorkload(
        *each.workload.id,
        benefit=each.benefit(SERVICE_STRATEGY),
        strategies={said: _account(each.curves[name].own, one.money(name, each)) for said, name in STRATEGIES.items()},
        missing_at_equal_cost=each.ratio(SERVICE_STRATEGY),
        sizes=_both(sized.stated, sized.ours) if sized else None,
        losses=LossesView(*one.losses[each.workload.id]) if one.losses and each.workload.id in one.losses else None,
        adoption=AdoptionView(*adopted[1:]) if adopted else None,
    )


def _both(stated: SizeFigures, ours: SizeFigures) -> BothSizes:
    return BothSizes(SizesView(*stated), SizesView(*ours))
