"""A comparison of strategies on standard output: tables and sentences for people, a document for machines.

The document has hours, minutes, ratios 0-1, amounts in the signal's unit, and null where there is no figure.
"""

from __future__ import annotations

from datetime import datetime
from math import isnan

import msgspec

from forecaster.domain.window import MINUTE
from forecaster.replay.account import Account
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.comparison import Comparison, WorkloadComparison
from forecaster.report.comparison import COMPARISON_LEGEND, left_out_lines, limits_of, sentences, strategy_columns
from forecaster.report.formats import Output
from forecaster.report.printed import Printable, flat, print_as, print_table, print_text


class AccountView(msgspec.Struct, frozen=True, gc=False):
    """Cost and shortage; `money` only where prices were given."""

    pod_hours: float
    short_minutes: float
    short_share: float | None
    missing_share: float | None
    changes: int
    money: float | None = None


class PointView(msgspec.Struct, frozen=True):
    """One point of a frontier: every target of the HPA at this share."""

    target_share: float
    account: AccountView


class TrackView(msgspec.Struct, frozen=True, gc=False):
    """Minute by minute from `begin` on: requested pods, ready pods, the floor, and demand above their capacity."""

    asked: list[int]
    ready: list[int]
    floor: list[int]
    missing: list[float]


class CurveView(msgspec.Struct, frozen=True):
    """One strategy. `missing_at_equal_cost` is a ratio of what the HPA alone leaves short for the same pod-hours."""

    own: AccountView
    missing_at_equal_cost: float | None
    pod_hours_saved_at_equal_shortage: float | None
    frontier: list[PointView]
    track: TrackView | None = None


class WorkloadView(msgspec.Struct, frozen=True):
    """One workload; a pod is full at `pod_capacity` of `fills`."""

    namespace: str
    kind: str
    name: str
    fills: str
    pod_capacity: float
    needs: AccountView
    strategies: dict[str, CurveView]
    benefit: str | None = None
    """`better`, `same` or `worse` than the HPA alone with forecaster; null where it is not compared."""
    demand: list[float | None] | None = None
    """Demand of `fills` minute by minute, as the tracks are; null where it was not measured."""


class LeftOutView(msgspec.Struct, frozen=True, gc=False):
    """A workload that could not be replayed."""

    namespace: str
    kind: str
    name: str
    reason: str


class GateView(msgspec.Struct, frozen=True, gc=False):
    """State of the gate of one workload from an instant on, the forecaster that it judges, and why."""

    namespace: str
    kind: str
    name: str
    at: datetime
    state: str
    forecaster: str
    why: str


class AssumptionsView(msgspec.Struct, frozen=True, gc=False):
    """Assumptions of the replay."""

    start_up_seconds: list[float]
    hpa_sync_seconds: float
    metrics_delay_seconds: float
    decision_delay_seconds: float
    minutes_between_forecasts: int
    returns_share: float = 0.0
    cold_seconds: float = 0.0
    cold_share: float = 1.0


class ComparisonView(msgspec.Struct, frozen=True):
    """The outcome of a replay."""

    begin: datetime
    until: datetime
    origin: str
    assumed: AssumptionsView
    titles: dict[str, str]
    total: dict[str, CurveView]
    needs: AccountView
    workloads: list[WorkloadView]
    left_out: list[LeftOutView]
    seconds: dict[str, float]
    limits: tuple[str, ...]
    gates: list[GateView] = []
    """Gates of every workload, day by day."""
    summary: list[str] = []
    """The outcome in sentences, where forecaster was worse first."""


def comparison_view(whole: Comparison, *, tracks: bool = True) -> ComparisonView:
    """Return the comparison as one document."""
    priced = whole.prices is not None
    return ComparisonView(
        begin=whole.begin,
        until=whole.until,
        origin=whole.origin,
        assumed=_assumptions(whole.assumed),
        titles={strategy.name: strategy.title for strategy in whole.strategies},
        total={strategy.name: _total(whole, strategy.name) for strategy in whole.strategies},
        needs=account_view(whole.bound(), priced=priced),
        workloads=[_workload(each, whole, tracks=tracks) for each in whole.workloads],
        left_out=[LeftOutView(*id_, reason) for id_, reason in whole.left_out.items()],
        seconds=dict(whole.seconds),
        limits=limits_of(whole.assumed.feedback),
        summary=sentences(whole),
        gates=[
            GateView(*id_, whole.begin + at.minute * MINUTE, at.gate.state, at.gate.forecaster, at.gate.why)
            for id_, stood in whole.gates.items()
            for at in stood
        ],
    )


def account_view(account: Account, *, priced: bool) -> AccountView:
    """An account in plain numbers."""
    return AccountView(
        pod_hours=account.pod_hours,
        short_minutes=account.short_minutes,
        short_share=account.short_share,
        missing_share=account.missing_share,
        changes=account.changes,
        money=account.money if priced else None,
    )


def _assumptions(assumed: Assumptions) -> AssumptionsView:
    return AssumptionsView(
        start_up_seconds=[start_up.total_seconds() for start_up in assumed.start_ups],
        hpa_sync_seconds=assumed.timing.sync.total_seconds(),
        metrics_delay_seconds=assumed.timing.metrics_delay.total_seconds(),
        decision_delay_seconds=assumed.timing.decision_delay.total_seconds(),
        minutes_between_forecasts=assumed.every,
        returns_share=assumed.feedback.returns,
        cold_seconds=assumed.feedback.cold.total_seconds(),
        cold_share=assumed.feedback.cold_share,
    )


def _total(whole: Comparison, name: str) -> CurveView:
    """The sum over workloads."""
    priced = whole.prices is not None
    points = [PointView(share, account_view(account, priced=priced)) for share, account in whole.curve(name).items()]
    return CurveView(account_view(whole.own(name), priced=priced), whole.ratio(name), whole.saved(name), points)


def _workload(compared: WorkloadComparison, whole: Comparison, *, tracks: bool) -> WorkloadView:
    priced = whole.prices is not None
    return WorkloadView(
        *compared.workload.id,
        fills=str(compared.setup.capacity.signal),
        pod_capacity=compared.setup.capacity.amount,
        needs=account_view(compared.bound, priced=priced),
        strategies={name: _curve(compared, name, priced=priced, tracks=tracks) for name in compared.curves},
        benefit=str(compared.benefit(whole.forecaster)) if whole.forecaster in compared.curves else None,
        demand=[None if isnan(amount) else amount for amount in compared.demand.tolist()] if tracks else None,
    )


def _curve(compared: WorkloadComparison, name: str, *, priced: bool, tracks: bool) -> CurveView:
    curve = compared.curves[name]
    track = curve.track
    return CurveView(
        own=account_view(curve.own, priced=priced),
        missing_at_equal_cost=compared.ratio(name),
        pod_hours_saved_at_equal_shortage=compared.saved(name),
        frontier=[PointView(share, account_view(account, priced=priced)) for share, account in curve.points.items()],
        track=TrackView(track.desired.tolist(), track.ready.tolist(), track.floor.tolist(), track.missing.tolist())
        if tracks
        else None,
    )


def print_comparison(whole: Comparison, output: Output) -> None:
    """Print a comparison; a row of CSV is a strategy on a workload."""
    view = comparison_view(whole)
    result = Printable(
        table=lambda wide: _print(whole, wide=wide),
        document=lambda: view,
        rows=lambda: [
            {"namespace": workload.namespace, "kind": workload.kind, "name": workload.name, "strategy": name}
            | flat(msgspec.to_builtins(curve))
            for workload in view.workloads
            for name, curve in workload.strategies.items()
        ],
        ids=lambda: (compared.workload.id for compared in whole.workloads),
    )
    print_as(output, result)


def _print(whole: Comparison, *, wide: bool) -> None:
    print_text(*sentences(whole))
    if whole.workloads:
        print_table(strategy_columns(whole), wide=wide)
        print_text(COMPARISON_LEGEND, style="dim")
    print_text(*left_out_lines(whole.left_out))
    if whole.workloads and wide and whole.seconds:
        took = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in whole.seconds.items())
        print_text(f"It took: {took}.", style="dim")
    if whole.workloads:
        print_text(f"Beware: {limits_of(whole.assumed.feedback)[0]}", style="dim")
